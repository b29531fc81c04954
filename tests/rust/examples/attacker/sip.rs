//! Unsolicited SIP requests.

use std::net::SocketAddr;
use std::time::Duration;

use rand::Rng;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::flood::Flood;
use crate::http::connect;
use crate::{Options, Tally, address};

/// Different requests of a flood.
const KINDS: usize = 4_096;
/// TCP connections that send the same.
const CONNECTIONS: usize = 200;

fn requests(from: &[SocketAddr], transport: &str, server: SocketAddr) -> Vec<Vec<u8>> {
    let mut random = rand::rng();
    let request = |n: usize| {
        let method = ["INVITE", "OPTIONS", "REGISTER", "MESSAGE", "BYE", "CANCEL"][n % 6];
        let (from, tag): (_, u64) = (from[n % from.len()], random.random());
        let body = match method {
            "INVITE" => {
                "v=0\r\no=- 1 1 IN IP4 127.66.0.1\r\ns=-\r\nc=IN IP4 127.66.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n"
            }
            _ => "",
        };
        let length = body.len();
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let text = format!(
            "{method} sip:user{n}@{server} SIP/2.0\r\nVia: SIP/2.0/{transport} {from};branch=z9hG4bK{tag:x};rport\r\n\
             Max-Forwards: 70\r\nFrom: <sip:a{n}@127.66.0.1>;tag={tag:x}\r\nTo: <sip:user{n}@{server}>\r\n\
             Call-ID: {tag:x}@127.66.0.1\r\nCSeq: 1 {method}\r\nContact: <sip:a@{from}>\r\n{kind}Content-Length: {length}\r\n\r\n{body}"
        );
        text.into_bytes()
    };
    (0..KINDS).map(request).collect()
}

/// Sends requests by UDP at the given rate, and by TCP as they are taken, some of them truncated.
pub async fn flood(options: &Options) -> Tally {
    let (server, rate, time) = (options.sip, options.rate, options.time());
    let flood = std::thread::spawn(move || {
        let flood = Flood::new();
        let addresses: Vec<_> = flood.addresses().collect();
        flood.run(server, &requests(&addresses, "UDP", server), rate, time)
    });
    let mut connections = JoinSet::new();
    for n in 0..CONNECTIONS {
        let Ok(mut stream) = connect(address(n), server).await else {
            continue;
        };
        let all = requests(&[stream.local_addr().unwrap()], "TCP", server);
        connections.spawn(async move {
            for request in all.iter().cycle() {
                // A third of the connections stops in the middle of a request.
                let part = if n % 3 == 0 {
                    request.len() / 2
                } else {
                    request.len()
                };
                if stream.write_all(&request[..part]).await.is_err() {
                    return;
                }
                let pause = if n % 3 == 0 { 60_000 } else { 10 };
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        });
    }
    let tally = tokio::task::spawn_blocking(|| flood.join().unwrap()).await;
    connections.shutdown().await;
    tally.unwrap()
}
