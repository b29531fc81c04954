//! The SIP side: REGISTER is granted after a digest, INVITE is answered by 200 at once.
//!
//! It has no sockets. It is a server only, and sends nothing by itself except retransmissions of a
//! 200 without an ACK.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_sdp::CodecName;
use portunus_sip::digest::{Algorithm, Credentials, Kind, Rules, Verdict, Verifier};
use portunus_sip::message::{Contacts, Message, Method, Request, Response, StatusCode};

use super::answer::answer;
use super::book::{Answered, Book, FarConfig};

/// The realm of registrations.
pub(crate) const REALM: &str = "hammer";
/// The password of all accounts.
pub(crate) const PASSWORD: &str = "nail";
/// The tag of its dialogs.
const TAG: &str = "hammer";

/// The first and the longest wait for an ACK (T1 and T2 of RFC 3261).
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(4));
/// The most transmissions of an answer without an ACK.
const MOST_SENT: u32 = 10;
/// The most calls and nonces remembered.
const MAX_CALLS: usize = 1 << 17;

/// A registrar and telephone.
pub(super) struct Phone {
    contact: String,
    rtp: SocketAddr,
    codec: CodecName,
    expires: Duration,
    verifier: Verifier,
    /// Calls by their Call-IDs.
    calls: HashMap<String, Call>,
    /// Answers without an ACK by Call-ID.
    unheard: HashMap<String, Unheard>,
}

/// An answered call.
struct Call {
    /// The CSeq of the last INVITE.
    cseq: u32,
    answer: Vec<u8>,
}

/// An answer that waits for its ACK.
struct Unheard {
    to: SocketAddr,
    due: Instant,
    sent: u32,
}

/// The datagrams to send.
pub(super) type Out = Vec<(SocketAddr, Vec<u8>)>;

impl Phone {
    /// Makes one with SIP at `sip` and RTP at the port `rtp` of the same address.
    pub(super) fn new(config: &FarConfig, sip: SocketAddr, rtp: u16) -> Self {
        let rules = Rules {
            algorithms: vec![Algorithm::Md5],
            lifetime: config.nonce,
            max_nonces: MAX_CALLS,
            ..Rules::new(REALM)
        };
        Self {
            contact: format!("<sip:echo@{sip}>"),
            rtp: SocketAddr::new(sip.ip(), rtp),
            codec: config.codec,
            expires: config.expires,
            verifier: Verifier::new(rules, rand::random(), Instant::now()),
            calls: HashMap::new(),
            unheard: HashMap::new(),
        }
    }

    /// Takes a datagram.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
        book: &mut Book,
        out: &mut Out,
    ) {
        // Responses answer no request of ours, and malformed messages are not answered.
        let Ok(Message::Request(request)) = Message::parse(bytes) else {
            return;
        };
        let call_id = request.headers.call_id().unwrap_or_default();
        let response = match request.method {
            Method::Ack => {
                self.unheard.remove(call_id);
                return;
            }
            Method::Invite => {
                let call_id = call_id.to_owned();
                self.invite(now, from, &request, call_id, book, out);
                return;
            }
            Method::Bye => {
                self.calls.remove(call_id);
                self.unheard.remove(call_id);
                Response::to(&request, StatusCode::OK)
            }
            Method::Register => self.register(now, &request, book),
            _ => Response::to(&request, StatusCode::OK),
        };
        reply(response, from, out);
    }

    /// Retransmits answers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Out) {
        let calls = &self.calls;
        self.unheard.retain(|call_id, unheard| {
            if unheard.due > now {
                return true;
            }
            let Some(call) = calls.get(call_id).filter(|_| unheard.sent < MOST_SENT) else {
                return false;
            };
            out.push((unheard.to, call.answer.clone()));
            let wait = WAITS.0.saturating_mul(1 << unheard.sent);
            unheard.due = now + wait.min(WAITS.1);
            unheard.sent += 1;
            true
        });
    }

    fn invite(
        &mut self,
        now: Instant,
        from: SocketAddr,
        request: &Request,
        call_id: String,
        book: &mut Book,
        out: &mut Out,
    ) {
        let cseq = request.headers.cseq().ok().flatten();
        let cseq = cseq.map_or(0, |cseq| cseq.number);
        let known = self.calls.get(&call_id);
        if let Some(call) = known.filter(|call| call.cseq == cseq) {
            book.counts.repeated += 1;
            out.push((from, call.answer.clone()));
            return;
        }
        let offer = String::from_utf8_lossy(&request.body);
        let Some(sdp) = answer(&offer, self.codec, self.rtp) else {
            return reply(
                Response::to(request, StatusCode::NOT_ACCEPTABLE_HERE),
                from,
                out,
            );
        };
        let is_new = known.is_none();
        let mut response = Response::to(request, StatusCode::OK);
        for route in request.headers.all("Record-Route") {
            response.headers.push("Record-Route", route);
        }
        response.headers.push("Contact", &self.contact);
        response.headers.set_to_tag(TAG);
        response.set_body("application/sdp", sdp);
        let bytes = response.to_bytes();
        out.push((from, bytes.clone()));
        if self.calls.len() >= MAX_CALLS {
            return;
        }
        if is_new {
            let answered = Answered {
                came: now,
                left: Instant::now(),
            };
            book.calls.insert(call_id.clone(), answered);
        }
        let unheard = Unheard {
            to: from,
            due: now + WAITS.0,
            sent: 1,
        };
        self.unheard.insert(call_id.clone(), unheard);
        let call = Call {
            cseq,
            answer: bytes,
        };
        self.calls.insert(call_id, call);
    }

    fn register(&mut self, now: Instant, request: &Request, book: &mut Book) -> Response {
        let lookup = |user: &str| Some(Credentials::password(user, PASSWORD));
        let verdict = self.verifier.verify(now, Kind::Server, request, lookup);
        if !matches!(verdict, Verdict::Accepted(_)) {
            book.counts.challenged += 1;
            let mut response = Response::to(request, StatusCode::UNAUTHORIZED);
            let stale = verdict == Verdict::Stale;
            for challenge in self.verifier.challenges(now, stale) {
                response.headers.push("WWW-Authenticate", challenge);
            }
            return response;
        }
        book.counts.granted += 1;
        let mut response = Response::to(request, StatusCode::OK);
        let asked = request.headers.expires().ok().flatten();
        if let Ok(Contacts::These(contacts)) = request.headers.contacts() {
            for contact in contacts {
                let own = contact.params.get("expires");
                let own = own.and_then(|text| text.parse().ok().map(Duration::from_secs));
                let granted = own.or(asked).unwrap_or(self.expires).min(self.expires);
                if !granted.is_zero() {
                    let (uri, seconds) = (&contact.uri, granted.as_secs());
                    let text = format!("<{uri}>;expires={seconds}");
                    response.headers.push("Contact", text);
                }
            }
        }
        response
    }
}

fn reply(mut response: Response, to: SocketAddr, out: &mut Out) {
    response.headers.set_to_tag(TAG);
    out.push((to, response.to_bytes()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const OFFER: &str = "v=0\r\nc=IN IP4 10.99.0.1\r\nm=audio 4000 RTP/AVP 0\r\n";

    fn phone() -> Phone {
        let sip: SocketAddr = "10.99.0.2:5060".parse().unwrap();
        let config = FarConfig {
            local: sip.ip(),
            codec: CodecName::Pcmu,
            expires: Duration::from_secs(60),
            nonce: Duration::from_secs(300),
        };
        Phone::new(&config, sip, 5_004)
    }

    fn request(method: &str, more: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "{method} sip:echo@10.99.0.2 SIP/2.0\r\nVia: SIP/2.0/UDP 10.99.0.1;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\n\
             To: <sip:b@h>\r\nCall-ID: c\r\nCSeq: 1 {method}\r\nMax-Forwards: 70\r\nContact: <sip:a@10.99.0.1>\r\n{more}\
             Content-Length: {length}\r\n\r\n{body}"
        )
    }

    fn take(phone: &mut Phone, text: &str, book: &mut Book) -> Vec<Response> {
        let (from, mut out) = ("10.99.0.1:5060".parse().unwrap(), Vec::new());
        phone.take(Instant::now(), from, text.as_bytes(), book, &mut out);
        responses(&out)
    }

    fn responses(out: &Out) -> Vec<Response> {
        let response = |(_, bytes): &(SocketAddr, Vec<u8>)| match Message::parse(bytes).unwrap() {
            Message::Response(response) => response,
            Message::Request(request) => unreachable!("{request:?}"),
        };
        out.iter().map(response).collect()
    }

    #[test]
    fn a_call_is_answered_at_once_and_again_until_the_ack_comes() {
        let (mut phone, mut book) = (phone(), Book::default());
        let invite = request("INVITE", "", OFFER);
        for repeated in [0, 1] {
            let answers = take(&mut phone, &invite, &mut book);
            let answer = answers.first().unwrap();
            assert_eq!(answer.status, StatusCode::OK);
            assert!(String::from_utf8_lossy(&answer.body).contains("m=audio 5004 RTP/AVP 0\r\n"));
            assert_eq!(book.counts.repeated, repeated);
        }
        assert!(book.calls.contains_key("c"));
        let (start, mut out) = (Instant::now(), Vec::new());
        phone.handle_timeout(start, &mut out);
        assert_eq!(out.len(), 0);
        phone.handle_timeout(start + WAITS.0, &mut out);
        assert_eq!(responses(&out).len(), 1);
        take(&mut phone, &request("ACK", "", ""), &mut book);
        phone.handle_timeout(start + Duration::from_secs(60), &mut out);
        assert_eq!(out.len(), 1);
        let byes = take(&mut phone, &request("BYE", "", ""), &mut book);
        assert!(byes.len() == 1 && phone.calls.is_empty());
        let none = OFFER.replace("AVP 0", "AVP 8");
        let refused = take(&mut phone, &request("INVITE", "", &none), &mut book);
        assert_eq!(
            refused.first().unwrap().status,
            StatusCode::NOT_ACCEPTABLE_HERE
        );
    }

    #[test]
    fn registrations_take_a_digest_and_are_granted_for_the_time_that_was_set() {
        use portunus_sip::digest::Client;
        let (mut phone, mut book) = (phone(), Book::default());
        let text = request("REGISTER", "Expires: 3600\r\n", "");
        let challenge = take(&mut phone, &text, &mut book).pop().unwrap();
        assert_eq!(challenge.status, StatusCode::UNAUTHORIZED);
        let Message::Request(mut asked) = Message::parse(text.as_bytes()).unwrap() else {
            unreachable!("it is one");
        };
        let (mut client, nail) = (Client::new(), Credentials::password("a", PASSWORD));
        client.start();
        client.challenged(&challenge, &nail).unwrap();
        client.authorize(&mut asked, &nail, "cnonce");
        let asked = String::from_utf8(asked.to_bytes()).unwrap();
        let granted = take(&mut phone, &asked, &mut book).pop().unwrap();
        assert_eq!(granted.status, StatusCode::OK);
        let contact = granted.headers.get("Contact").unwrap();
        assert_eq!(contact, "<sip:a@10.99.0.1>;expires=60");
        assert_eq!((book.counts.granted, book.counts.challenged), (1, 1));
    }
}
