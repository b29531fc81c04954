//! A SIP server and telephone that a test controls message by message.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_sip::message::{Message, Method, Request, Response, StatusCode};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// A far end: a socket for SIP, and one for RTP.
pub struct Phone {
    sip: UdpSocket,
    rtp: UdpSocket,
    /// The address from which the server sends.
    server: Option<SocketAddr>,
    /// Identifiers of the requests that it has handled.
    seen: Vec<(String, String)>,
    branches: u32,
}

/// A dialog, from the far end's side.
#[derive(Clone)]
pub struct Talk {
    call_id: String,
    /// From and To of its requests.
    from: String,
    to: String,
    target: String,
    pub cseq: u32,
}

impl Phone {
    pub async fn new() -> Self {
        Self::at("127.0.0.1").await
    }

    /// Creates a phone at another address of this machine.
    pub async fn at(address: &str) -> Self {
        Phone {
            sip: UdpSocket::bind((address, 0)).await.unwrap(),
            rtp: UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            server: None,
            seen: Vec::new(),
            branches: 0,
        }
    }

    /// Sets the address of a server that has not sent to it yet.
    pub fn reach(&mut self, server: SocketAddr) {
        self.server = Some(server);
    }

    /// Returns its URI `sip:USER@…`.
    pub fn uri(&self, user: &str) -> String {
        format!("sip:{user}@{}", self.sip.local_addr().unwrap())
    }

    /// Returns audio with telephone keys, and video, at its socket for RTP.
    pub fn sdp(&self) -> String {
        let port = self.rtp.local_addr().unwrap().port();
        format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
             m=audio {port} RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n\
             m=video {} RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack pli\r\n",
            port ^ 1
        )
    }

    /// Returns the next message that is no repetition.
    async fn next(&mut self) -> Message {
        let mut buffer = vec![0; 65_535];
        loop {
            let received = timeout(Duration::from_secs(20), self.sip.recv_from(&mut buffer)).await;
            let (len, from) = received.expect("a message in time").unwrap();
            self.server = Some(from);
            let Ok(message) = Message::parse(&buffer[..len]) else {
                continue;
            };
            let headers = match &message {
                Message::Request(request) => &request.headers,
                Message::Response(response) => &response.headers,
            };
            let text = |name| headers.get(name).unwrap_or_default().to_owned();
            let first = match &message {
                Message::Request(_) => String::new(),
                Message::Response(response) => response.status.code().to_string(),
            };
            let key = (
                text("Call-ID"),
                format!("{} {first} {}", text("CSeq"), text("Via")),
            );
            if !self.seen.contains(&key) {
                self.seen.push(key);
                return message;
            }
        }
    }

    /// Returns the next request, which must have this method.
    pub async fn request(&mut self, method: Method) -> Request {
        loop {
            match self.next().await {
                Message::Request(request) if request.method == method => return request,
                Message::Response(response) if response.status.is_provisional() => {}
                other => panic!("{other:?} and no {method}"),
            }
        }
    }

    /// Returns the next response, which must have this status.
    pub async fn response(&mut self, code: u16) -> Response {
        loop {
            match self.next().await {
                Message::Response(response) if response.status.code() == code => return response,
                Message::Response(response) if response.status.is_provisional() => {}
                other => panic!("{other:?} and no {code}"),
            }
        }
    }

    /// Returns the next final response.
    pub async fn response_of(&mut self) -> Response {
        loop {
            match self.next().await {
                Message::Response(response) if response.status.is_final() => return response,
                Message::Response(_) => {}
                other => panic!("{other:?} and no response"),
            }
        }
    }

    async fn send(&self, message: impl Into<Message>) {
        let server = self.server.expect("a server");
        let bytes = message.into().to_bytes();
        self.sip.send_to(&bytes, server).await.unwrap();
    }

    /// Answers a request. `more` are header fields.
    pub async fn answer(
        &mut self,
        request: &Request,
        code: u16,
        more: &[(&str, &str)],
        sdp: &str,
    ) -> Talk {
        let mut response = Response::to(request, StatusCode::new(code).unwrap());
        response.headers.set_to_tag("phone");
        response
            .headers
            .push("Contact", format!("<{}>", self.uri("phone")));
        for (name, value) in more {
            response.headers.set(name, value);
        }
        if !sdp.is_empty() {
            response.set_body("application/sdp", sdp);
        }
        let header = |name| response.headers.get(name).unwrap_or_default().to_owned();
        let talk = Talk {
            call_id: header("Call-ID"),
            from: header("To"),
            to: header("From"),
            target: contact(request.headers.get("Contact")),
            cseq: 100,
        };
        self.send(response).await;
        talk
    }

    /// Sends a request within a dialog.
    pub async fn ask(
        &mut self,
        talk: &mut Talk,
        method: Method,
        more: &[(&str, &str)],
        body: (&str, &str),
    ) -> Request {
        if method != Method::Ack {
            talk.cseq += 1;
        }
        let request = self.compose(talk, &method, more, body);
        self.send(request.clone()).await;
        request
    }

    fn compose(
        &mut self,
        talk: &Talk,
        method: &Method,
        more: &[(&str, &str)],
        (kind, body): (&str, &str),
    ) -> Request {
        let mut request = Request::new(method.clone(), talk.target.parse().unwrap());
        self.branches += 1;
        let own = self.sip.local_addr().unwrap();
        let via = format!("SIP/2.0/UDP {own};branch=z9hG4bKphone{}", self.branches);
        for (name, value) in [
            ("Via", via),
            ("Max-Forwards", "70".to_owned()),
            ("From", talk.from.clone()),
            ("To", talk.to.clone()),
            ("Call-ID", talk.call_id.clone()),
            ("CSeq", format!("{} {method}", talk.cseq)),
            ("Contact", format!("<{}>", self.uri("phone"))),
        ] {
            request.headers.push(name, value);
        }
        for (name, value) in more {
            request.headers.set(name, value);
        }
        if !body.is_empty() {
            request.set_body(kind, body);
        }
        request
    }

    /// Returns the common parts of a request to a contact outside of calls.
    pub fn stranger(&self, contact: &str, call_id: &str) -> Talk {
        Talk {
            call_id: call_id.to_owned(),
            from: format!("\"Phone\" <{}>;tag=phone", self.uri("phone")),
            to: "<sip:ann@portunus.test>".to_owned(),
            target: contact.to_owned(),
            cseq: 0,
        }
    }

    /// Calls the contact that a page has registered.
    pub async fn call(
        &mut self,
        contact: &str,
        call_id: &str,
        more: &[(&str, &str)],
        sdp: &str,
    ) -> (Request, Talk) {
        let mut talk = self.stranger(contact, call_id);
        let invite = self
            .ask(&mut talk, Method::Invite, more, ("application/sdp", sdp))
            .await;
        (invite, talk)
    }

    /// Acknowledges the response to its INVITE.
    pub async fn acknowledge(&mut self, talk: &mut Talk, response: &Response, sdp: &str) {
        talk.to = response.headers.get("To").unwrap_or_default().to_owned();
        if response.status.is_success() {
            talk.target = contact(response.headers.get("Contact"));
        }
        self.ask(talk, Method::Ack, &[], ("application/sdp", sdp))
            .await;
    }

    /// Cancels an INVITE.
    pub async fn cancel(&mut self, invite: &Request, talk: &Talk) {
        let mut cancel = self.compose(talk, &Method::Cancel, &[], ("", ""));
        for name in ["Via", "CSeq", "To"] {
            let value = invite
                .headers
                .get(name)
                .unwrap()
                .replace("INVITE", "CANCEL");
            cancel.headers.set(name, value);
        }
        self.send(cancel).await;
    }

    /// Presses key 5 within the sound to a port of the server: an RTP event of RFC 4733, with its
    /// three last packets.
    pub async fn press_five(&self, sdp: &str) {
        let port = sdp
            .split("m=audio ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        for (number, end) in [(1_u8, 0x0a_u8), (2, 0x8a), (3, 0x8a), (4, 0x8a)] {
            let marker = if number == 1 { 0x80 } else { 0 };
            let mut packet = vec![0x80, marker | 101, 0, number, 0, 0, 0, 160, 0, 0, 0, 7];
            packet.extend([5, end, 0x03, 0x20]);
            let to = format!("127.0.0.1:{port}");
            self.rtp.send_to(&packet, to).await.unwrap();
        }
    }
}

/// Returns the URI in a Contact.
pub fn contact(header: Option<&str>) -> String {
    let header = header.unwrap_or_default();
    let from = header.split('<').nth(1).unwrap_or_default();
    from.split('>').next().unwrap_or_default().to_owned()
}
