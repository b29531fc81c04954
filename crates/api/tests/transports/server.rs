//! The server under test, and the clients that talk to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use portunus_admin::{AdminOptions, Administration};
use portunus_api::{ApiConfig, Transports};
use portunus_core::CoreConfig;
use portunus_core::testing::TestServer;
use portunus_echotest::EchoTest;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// Longer than anything should take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const ECHOTEST: &str = "janus.plugin.echotest";

pub struct Server {
    pub core: TestServer,
    pub transports: Transports,
}

/// A configuration on loopback, on ports that the kernel chooses.
pub fn config() -> ApiConfig {
    let mut config = ApiConfig::default();
    for (bind, port) in [
        (&mut config.http.bind, &mut config.http.port),
        (&mut config.websocket.bind, &mut config.websocket.port),
    ] {
        *bind = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        *port = 0;
    }
    config.admin.bind = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    config.admin.port = 0;
    config
}

pub async fn start() -> Server {
    start_with(CoreConfig::default(), config()).await
}

pub async fn start_with(core: CoreConfig, config: ApiConfig) -> Server {
    let core = TestServer::new(core, vec![Arc::new(EchoTest)]);
    let transports = Transports::start(
        config,
        Administration::new(core.gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await
    .unwrap();
    Server { core, transports }
}

impl Server {
    pub fn http(&self) -> SocketAddr {
        self.transports.http()[0]
    }

    pub fn ws(&self) -> SocketAddr {
        self.transports.ws()[0]
    }

    /// Sends a request to a path of the API.
    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self
            .request("POST", path, &[], body.to_string().as_bytes())
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"").await
    }

    pub async fn request(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let stream = TcpStream::connect(self.http()).await.unwrap();
        request(stream, method, path, headers, body).await
    }

    /// The counters, as a program on this machine reads them.
    pub async fn metrics(&self) -> String {
        let stream = TcpStream::connect(self.http()).await.unwrap();
        let answer = request_to("Host: localhost\r\n", stream, "GET", "/metrics", &[], b"");
        answer.await.body
    }

    /// A new session over HTTP; its path.
    pub async fn session(&self) -> String {
        let reply = self
            .post("/janus", &json!({ "janus": "create", "transaction": "c" }))
            .await;
        format!("/janus/{}", reply["data"]["id"])
    }

    /// A new handle over HTTP; its path.
    pub async fn handle(&self, session: &str) -> String {
        let attach = json!({ "janus": "attach", "transaction": "a", "plugin": ECHOTEST });
        let reply = self.post(session, &attach).await;
        format!("{session}/{}", reply["data"]["id"])
    }

    pub async fn connect(&self) -> Socket<TcpStream> {
        let stream = TcpStream::connect(self.ws()).await.unwrap();
        Socket::open(stream, Some("janus-protocol")).await.unwrap()
    }

    /// Waits until a counter has a value.
    pub async fn until(&self, what: impl Fn(&portunus_api::Counters) -> u64, value: u64) {
        let reached = async {
            while what(self.transports.counters()) < value {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, reached)
            .await
            .expect("the counter did not reach its value");
        assert_eq!(what(self.transports.counters()), value);
    }
}

/// A response of the HTTP server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// All headers of a name.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.head.lines().skip(1).filter_map(move |line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn error(&self) -> u64 {
        error(&self.json())
    }
}

/// The code of an error reply.
pub fn error(reply: &Value) -> u64 {
    assert_eq!(reply["janus"], "error", "{reply}");
    reply["error"]["code"].as_u64().unwrap()
}

/// One request on a connection of its own.
pub async fn request<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Answer {
    send(&mut stream, method, path, headers, body).await;
    read_answer(stream).await
}

/// The same with other lines at the head's beginning than those that tell a host.
pub async fn request_to<S: AsyncRead + AsyncWrite + Unpin>(
    host: &str,
    mut stream: S,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Answer {
    send_to(host, &mut stream, method, path, headers, body).await;
    read_answer(stream).await
}

/// Writes a request whose answer closes the connection.
pub async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) {
    send_to("Host: test\r\n", stream, method, path, headers, body).await;
}

async fn send_to<S: AsyncWrite + Unpin>(
    host: &str,
    stream: &mut S,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) {
    let mut head = format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n");
    head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    stream
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .unwrap();
    // A server may answer and close before it has read everything.
    let _ = stream.write_all(body).await;
}

/// Reads until the server closes the connection.
pub async fn read_answer<S: AsyncRead + Unpin>(mut stream: S) -> Answer {
    let mut bytes = Vec::new();
    // After a refusal the rest of our request may meet a reset.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes))
        .await
        .expect("an answer");
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a response");
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// A WebSocket of a client.
pub struct Socket<S>(pub WebSocketStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Opens it; the error is the HTTP status.
    pub async fn open(stream: S, protocol: Option<&str>) -> Result<Self, u16> {
        Self::open_at(stream, "/", protocol).await
    }

    /// The same at a path.
    pub async fn open_at(stream: S, path: &str, protocol: Option<&str>) -> Result<Self, u16> {
        Self::open_by(stream, &format!("ws://test{path}"), protocol).await
    }

    /// Opens it as a program on the server's machine.
    pub async fn open_local(stream: S, to: SocketAddr, path: &str, protocol: Option<&str>) -> Self {
        let opened = Self::open_by(stream, &format!("ws://{to}{path}"), protocol).await;
        opened.map_err(|status| panic!("status {status}")).unwrap()
    }

    async fn open_by(stream: S, url: &str, protocol: Option<&str>) -> Result<Self, u16> {
        let mut request = url.into_client_request().unwrap();
        if let Some(protocol) = protocol {
            let value = protocol.parse().unwrap();
            request
                .headers_mut()
                .insert("Sec-WebSocket-Protocol", value);
        }
        use tokio_tungstenite::tungstenite::Error;
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, response)) => {
                let chosen = response.headers().get("Sec-WebSocket-Protocol").unwrap();
                let mut offered = protocol.into_iter().flat_map(|all| all.split(", "));
                assert!(offered.any(|one| chosen == one), "{chosen:?}");
                Ok(Self(socket))
            }
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_text(message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: String) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    pub async fn receive(&mut self) -> Value {
        loop {
            match timeout(PATIENCE, self.0.next())
                .await
                .expect("a message")
                .unwrap()
                .unwrap()
            {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    pub async fn ping(&mut self) {
        let reply = self
            .ask(&json!({ "janus": "ping", "transaction": "p" }))
            .await;
        assert_eq!(reply, json!({ "janus": "pong", "transaction": "p" }));
    }

    /// A new session; its id.
    pub async fn session(&mut self) -> u64 {
        let reply = self
            .ask(&json!({ "janus": "create", "transaction": "c" }))
            .await;
        reply["data"]["id"].as_u64().unwrap()
    }

    /// Reads until the server closes the connection.
    pub async fn closed(&mut self) -> Option<CloseFrame> {
        loop {
            match timeout(PATIENCE, self.0.next()).await.expect("an end") {
                Some(Ok(Message::Close(frame))) => return frame,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}
