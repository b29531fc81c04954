//! A minimal HTTP client.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use portunus_admin::{AdminOptions, Administration};
use portunus_api::{ApiConfig, Transports};
use portunus_core::Gateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Serves HTTP on a port that the kernel chooses. Returns the server and its address.
pub async fn serve(gateway: &Gateway) -> (Transports, SocketAddr) {
    let mut config = ApiConfig::default();
    config.http.bind = vec![Ipv4Addr::LOCALHOST.into()];
    config.http.port = 0;
    config.websocket.enabled = false;
    config.admin.enabled = false;
    let transports = Transports::start(
        config,
        Administration::new(gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await
    .unwrap();
    let to = transports.http()[0];
    (transports, to)
}

/// Sends a request, such as `POST /whip/7`. Returns the status and the whole answer.
pub async fn http(to: SocketAddr, line: &str, headers: &[&str], body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let mut head = format!("{line} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that has refused already need not read everything.
    let _ = stream.write_all(body).await;
    let mut answer = String::new();
    let reading = timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    reading.expect("an answer").unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

/// Returns the first value of a header in an answer.
pub fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    answer.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}
