//! Events as GELF, read as Graylog would.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::ZlibDecoder;
use portunus_events::Gelf;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, UdpSocket};

use crate::lifecycle::{Running, start, until};

async fn to(port: u16, keys: &str) -> Running {
    start::<Gelf>(&format!("backend = \"127.0.0.1\"\nport = {port}\n{keys}")).await
}

/// The next message over UDP, put together.
async fn message(socket: &UdpSocket) -> Vec<u8> {
    let mut parts: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    loop {
        let mut datagram = vec![0; 65_536];
        let length = socket.recv(&mut datagram).await.unwrap();
        datagram.truncate(length);
        if !datagram.starts_with(&[0x1e, 0x0f]) {
            assert!(parts.is_empty());
            return datagram;
        }
        let count = datagram[11];
        parts.insert(datagram[10], datagram.split_off(12));
        if parts.len() == usize::from(count) {
            return parts.into_values().flatten().collect();
        }
    }
}

#[tokio::test]
async fn messages_have_the_fields_of_the_format() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let handler = to(socket.local_addr().unwrap().port(), "").await;
    handler.publish([7]);
    let message: Value = serde_json::from_slice(&message(&socket).await).unwrap();
    assert_eq!(message["version"], "1.1");
    assert_eq!(message["host"], "here");
    assert_eq!(message["level"], 256);
    assert_eq!(message["short_message"], "Core");
    let event = &message["full_message"];
    assert_eq!(event["event"], json!({ "n": 7 }));
    let seconds = event["timestamp"].as_f64().unwrap() / 1e6;
    assert!((message["timestamp"].as_f64().unwrap() - seconds).abs() < 0.001);
}

#[tokio::test]
async fn long_messages_come_in_parts_compressed_or_not_and_too_long_ones_are_lost() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let handler = to(port, "max_message_len = 200\n").await;
    let long = "long ".repeat(500);
    handler.publish_body(json!({ "long": long }));
    let plain: Value = serde_json::from_slice(&message(&socket).await).unwrap();
    assert_eq!(plain["full_message"]["event"]["long"], long);
    handler.publish_body(json!({ "long": "x".repeat(30_000) }));
    handler.until("lost", 1).await;
    assert!(
        handler.last_error().contains("128 datagrams"),
        "{}",
        handler.last_error()
    );
    assert_eq!(
        handler.tweak(json!({ "compress": true, "compression": 9 })),
        Ok(())
    );
    handler.publish_body(json!({ "long": long }));
    let small = message(&socket).await;
    let mut text = Vec::new();
    ZlibDecoder::new(&small[..]).read_to_end(&mut text).unwrap();
    let whole: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(whole["full_message"]["event"]["long"], long);
}

#[tokio::test]
async fn over_tcp_messages_end_with_nul_and_wait_for_the_backend() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handler = to(port, "protocol = \"tcp\"\n").await;
    handler.publish([0, 1]);
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut next = async || {
        let mut message = Vec::new();
        stream.read_until(0, &mut message).await.unwrap();
        assert_eq!(message.pop(), Some(0));
        let message: Value = serde_json::from_slice(&message).unwrap();
        message["full_message"]["event"]["n"].as_u64().unwrap()
    };
    assert_eq!((next().await, next().await), (0, 1));
    handler.until("sent", 2).await;
    drop(stream);
    // The end of the connection is noticed before an event is lost on it.
    until(|| handler.counter("failed") == 1, || handler.last_error()).await;
    handler.publish([2]);
    let (stream, _) = listener.accept().await.unwrap();
    let mut message = Vec::new();
    let mut stream = BufReader::new(stream);
    stream.read_until(0, &mut message).await.unwrap();
    let text = String::from_utf8(message).unwrap();
    assert!(text.contains("{\"n\":2}"), "{text}");
    assert_eq!(handler.counter("lost"), 0);
}

#[tokio::test]
async fn a_closed_port_is_counted_and_delays_nothing() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let handler = to(port, "").await;
    for n in 0..10 {
        handler.publish([n]);
        until(
            || handler.counter("sent") + handler.counter("lost") == n + 1,
            || handler.last_error(),
        )
        .await;
    }
    assert!(handler.counter("lost") > 0);
    assert!(
        handler.last_error().contains("refused"),
        "{}",
        handler.last_error()
    );
}

#[tokio::test]
async fn tweaks_lead_elsewhere_and_wrong_ones_do_not() {
    let first = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let second = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let handler = to(first.local_addr().unwrap().port(), "").await;
    for (members, error) in [
        (json!({ "backend": "127.0.0.1" }), 412),
        (json!({ "port": "1" }), 412),
        (json!({ "backend": 1, "port": "1" }), 413),
        (json!({ "backend": "127.0.0.1", "port": 1 }), 413),
        (json!({ "backend": "127.0.0.1", "port": "0" }), 413),
        (json!({ "backend": "", "port": "1" }), 413),
        (json!({ "protocol": "sctp" }), 413),
        (json!({ "protocol": true }), 413),
        (json!({ "max_message_len": 1 }), 413),
        (json!({ "max_message_len": "500" }), 413),
        (json!({ "compress": "yes" }), 413),
        (json!({ "compression": 0 }), 413),
        (json!({ "events": {} }), 413),
    ] {
        assert_eq!(handler.tweak(members.clone()), Err(error), "{members}");
    }
    handler.publish([1]);
    assert!(message(&first).await.ends_with(b"{\"n\":1}}}"));
    let port = second.local_addr().unwrap().port().to_string();
    assert_eq!(
        handler.tweak(json!({ "backend": "127.0.0.1", "port": port })),
        Ok(())
    );
    handler.publish([2]);
    assert!(message(&second).await.ends_with(b"{\"n\":2}}}"));
}
