//! A client of the Janus API over one HTTP connection.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Connects from an address of this machine.
pub async fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection that is kept open.
pub struct Http {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Http {
    pub async fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        let stream = connect(from, to).await?;
        let read = Vec::new();
        Ok(Http { stream, read })
    }

    /// Posts JSON. Returns the answer.
    pub async fn post(&mut self, path: &str, body: &Value) -> io::Result<Value> {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.ask(&request).await
    }

    pub async fn get(&mut self, path: &str) -> io::Result<Value> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await
    }

    async fn ask(&mut self, request: &str) -> io::Result<Value> {
        self.stream.write_all(request.as_bytes()).await?;
        loop {
            if let Some((head, len)) = self.head() {
                while self.read.len() < head + len {
                    self.fill().await?;
                }
                let body = serde_json::from_slice(&self.read[head..head + len]);
                self.read.drain(..head + len);
                return body.map_err(|error| io::Error::new(ErrorKind::InvalidData, error));
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Returns the lengths of an answer's head and body, once the head has arrived.
    fn head(&self) -> Option<(usize, usize)> {
        let end = self.read.windows(4).position(|it| it == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&self.read[..end]).to_lowercase();
        let mut lines = head.lines();
        let len = lines.find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        Some((end + 4, len.unwrap_or(0)))
    }

    /// Creates a session. Returns its path, or `None` if the server refuses.
    pub async fn session(&mut self) -> io::Result<Option<String>> {
        let create = json!({ "janus": "create", "transaction": "t" });
        let reply = self.post("/janus", &create).await?;
        Ok(reply["data"]["id"]
            .as_u64()
            .map(|id| format!("/janus/{id}")))
    }

    /// Creates a handle of the echo test. Returns its path, or `None` if the server refuses.
    pub async fn attach(&mut self, session: &str) -> io::Result<Option<String>> {
        let attach =
            json!({ "janus": "attach", "transaction": "t", "plugin": "janus.plugin.echotest" });
        let reply = self.post(session, &attach).await?;
        Ok(reply["data"]["id"]
            .as_u64()
            .map(|id| format!("{session}/{id}")))
    }

    /// Offers to the echo test. Returns the answer's SDP, or `None` if the server refuses the
    /// offer.
    pub async fn offer(&mut self, handle: &str, sdp: &str) -> io::Result<Option<String>> {
        let message = json!({
            "janus": "message", "transaction": "m", "body": { "audio": true, "video": true },
            "jsep": { "type": "offer", "sdp": sdp },
        });
        if self.post(handle, &message).await?["janus"] != "ack" {
            return Ok(None);
        }
        let (session, _) = handle.rsplit_once('/').unwrap();
        loop {
            let event = self.get(session).await?;
            if let Some(sdp) = event["jsep"]["sdp"].as_str() {
                return Ok(Some(sdp.to_owned()));
            }
            if event["janus"] == "error" || event["plugindata"]["data"]["error"].is_string() {
                return Ok(None);
            }
        }
    }
}
