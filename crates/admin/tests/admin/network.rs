//! Names and STUN servers.

use serde_json::json;
use tokio::net::UdpSocket;

use crate::stage::{Stage, code};

#[tokio::test]
async fn names_are_resolved() {
    let stage = Stage::new();
    for (name, ip) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1")] {
        let reply = stage
            .ask("resolve_address", json!({ "address": name }))
            .await;
        assert_eq!(reply["ip"], ip, "{reply}");
        assert!(reply["elapsed"].is_u64());
    }
    for name in ["no such name", ""] {
        let reply = stage
            .ask("resolve_address", json!({ "address": name }))
            .await;
        assert_eq!(code(&reply), 490, "{name:?}: {reply}");
    }
}

/// Answers binding requests (RFC 8489) with the address that they come from, after some nonsense.
async fn stun_server(socket: UdpSocket) {
    let mut buffer = [0; 100];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        let request = &buffer[..length];
        assert!(request.starts_with(&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]));
        let mut answer = vec![1, 1, 0, 12];
        answer.extend(&request[4..20]);
        answer.extend([0, 0x20, 0, 8, 0, 1]);
        let ip = match from.ip() {
            std::net::IpAddr::V4(ip) => ip.octets(),
            std::net::IpAddr::V6(_) => unreachable!(),
        };
        let bytes = from.port().to_be_bytes();
        answer.extend(
            bytes
                .iter()
                .zip(&request[4..])
                .map(|(byte, mask)| byte ^ mask),
        );
        answer.extend(ip.iter().zip(&request[4..]).map(|(byte, mask)| byte ^ mask));
        let mut other = answer.clone();
        other[8] ^= 1;
        for datagram in [b"nonsense".to_vec(), other, answer] {
            socket.send_to(&datagram, from).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_stun_server_tells_what_it_sees() {
    let stage = Stage::new();
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let server = tokio::spawn(stun_server(server));
    let members = json!({ "address": "127.0.0.1", "port": port });
    let reply = stage.ask("test_stun", members).await;
    assert_eq!(reply["public_ip"], "127.0.0.1", "{reply}");
    assert!(reply["public_port"].is_u64() && reply["elapsed"].is_u64());
    // From a port that was asked for.
    let free = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let local = free.local_addr().unwrap().port();
    let taken = json!({ "address": "127.0.0.1", "port": port, "localport": local });
    assert_eq!(code(&stage.ask("test_stun", taken.clone()).await), 490);
    drop(free);
    assert_eq!(stage.ask("test_stun", taken).await["public_port"], local);
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn a_stun_server_that_is_silent_is_told() {
    let stage = Stage::new();
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let members = json!({ "address": "127.0.0.1", "port": port });
    let reply = stage.ask("test_stun", members).await;
    assert_eq!(code(&reply), 490);
    let reason = reply["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("no answer"), "{reason}");
}
