//! WebSocket: messages, limits, and clients that do not behave.

use std::time::Duration;

use futures_util::SinkExt;
use portunus_core::CoreConfig;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::server::{ECHOTEST, PATIENCE, Socket, config, error, start, start_with};

#[tokio::test]
async fn replies_come_before_the_events_that_they_announce() {
    let server = start().await;
    let mut client = server.connect().await;
    let session = client.session().await;
    let attach =
        json!({ "janus": "attach", "transaction": "a", "session_id": session, "plugin": ECHOTEST });
    let handle = client.ask(&attach).await["data"]["id"].clone();
    for n in 0..50 {
        let transaction = n.to_string();
        let message = json!({ "janus": "message", "transaction": transaction, "session_id": session,
            "handle_id": handle, "body": { "audio": true } });
        let reply = client.ask(&message).await;
        assert_eq!(
            (&reply["janus"], &reply["transaction"]),
            (&Value::from("ack"), &Value::from(transaction.clone()))
        );
        let event = client.receive().await;
        assert_eq!(
            (&event["janus"], &event["transaction"]),
            (&Value::from("event"), &Value::from(transaction))
        );
    }
}

#[tokio::test]
async fn a_client_that_asks_without_end_holds_up_others_for_a_few_of_its_requests() {
    const REQUESTS: u64 = 1_000;
    let server = start().await;
    let (mut greedy, mut modest) = (server.connect().await, server.connect().await);
    modest.ping().await;
    let ping = json!({ "janus": "ping", "transaction": "g" }).to_string();
    for _ in 0..REQUESTS {
        greedy.0.feed(Message::text(ping.clone())).await.unwrap();
    }
    greedy.0.flush().await.unwrap();
    // The server is on this thread: it has begun with the requests only if they did not leave at
    // once.
    let taken = || server.transports.counters().websocket_messages.value();
    let before = taken();
    modest.ping().await;
    let meanwhile = taken() - before;
    assert!(taken() < REQUESTS, "none waits any more");
    assert!(meanwhile <= 20, "{meanwhile} others were answered first");
}

#[tokio::test]
async fn the_subprotocol_is_required() {
    let server = start().await;
    for protocol in [None, Some("chat"), Some("janus-admin-protocol")] {
        let stream = TcpStream::connect(server.ws()).await.unwrap();
        assert_eq!(
            Socket::open(stream, protocol).await.err(),
            Some(400),
            "{protocol:?}"
        );
    }
    let stream = TcpStream::connect(server.ws()).await.unwrap();
    Socket::open(stream, Some("chat, janus-protocol"))
        .await
        .unwrap()
        .ping()
        .await;
}

#[tokio::test]
async fn a_plain_request_is_refused() {
    let server = start().await;
    let stream = TcpStream::connect(server.ws()).await.unwrap();
    let answer = crate::server::request(stream, "GET", "/", &[], b"").await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_websocket_can_be_opened_at_the_base_path_of_http() {
    let server = start().await;
    let stream = TcpStream::connect(server.http()).await.unwrap();
    let request = tokio_tungstenite::tungstenite::http::Request::builder()
        .uri("ws://test/janus")
        .header("Host", "test")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Protocol", "janus-protocol")
        .body(())
        .unwrap();
    let (socket, _) = tokio_tungstenite::client_async(request, stream)
        .await
        .unwrap();
    Socket(socket).ping().await;
}

#[tokio::test]
async fn malformed_messages_are_answered_and_the_connection_stays() {
    let server = start().await;
    let mut client = server.connect().await;
    for (text, code) in [
        ("", 454),
        ("{", 454),
        ("nonsense", 454),
        (&*"[".repeat(100_000), 454),
        ("5", 454),
        ("\"create\"", 454),
        ("null", 454),
        ("true", 454),
        ("[]", 456),
        ("{\"janus\":\"ping\"}", 456),
        ("{\"janus\":1,\"transaction\":\"t\"}", 467),
    ] {
        client.send_text(text.to_owned()).await;
        assert_eq!(error(&client.receive().await), code, "{:.40}", text);
    }
    client.ping().await;
}

#[tokio::test]
async fn messages_may_be_fragmented_or_binary() {
    let server = start().await;
    let mut client = server.connect().await;
    let ping = json!({ "janus": "ping", "transaction": "b" }).to_string();
    client
        .0
        .send(Message::binary(ping.into_bytes()))
        .await
        .unwrap();
    assert_eq!(client.receive().await["janus"], "pong");
    client.0.send(Message::Ping("x".into())).await.unwrap();
    client.ping().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_is_answered_and_a_huge_one_ends_the_connection() {
    let mut config = config();
    config.websocket.max_message = 2_000;
    let server = start_with(CoreConfig::default(), config).await;
    let mut client = server.connect().await;
    client.send_text(" ".repeat(2_001)).await;
    assert_eq!(error(&client.receive().await), 454);
    client.ping().await;
    let mut other = server.connect().await;
    // It may be cut off in the middle.
    let _ = client.0.send(Message::text(" ".repeat(8_001))).await;
    client.closed().await;
    other.ping().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let mut config = config();
    config.websocket.write_timeout = Duration::from_millis(100);
    let server = start_with(CoreConfig::default(), config).await;
    let mut slow = server.connect().await;
    let mut other = server.connect().await;
    // Replies carry the transaction: they fill all buffers between us.
    let ping = json!({ "janus": "ping", "transaction": "x".repeat(1_000_000) }).to_string();
    let flood = async {
        for _ in 0..100 {
            if slow.0.send(Message::text(ping.clone())).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = flood => {}
        () = server.until(|counters| counters.slow_clients.value(), 1) => {}
    }
    server
        .until(|counters| counters.slow_clients.value(), 1)
        .await;
    other.ping().await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_disconnected() {
    let mut config = config();
    config.websocket.ping_interval = Duration::from_millis(20);
    config.websocket.ping_timeout = Duration::from_millis(200);
    let server = start_with(CoreConfig::default(), config).await;
    let mut silent = server.connect().await;
    let mut present = server.connect().await;
    // Reading answers pings.
    tokio::select! {
        () = server.until(|counters| counters.silent_clients.value(), 1) => {}
        _ = present.closed() => panic!("it was there"),
    }
    present.ping().await;
    let frame = silent.closed().await;
    assert!(frame.is_none_or(|frame| frame.code == CloseCode::Policy));
}

#[tokio::test]
async fn a_session_ends_with_its_connection_unless_it_is_claimed() {
    let core = CoreConfig {
        reclaim_session_timeout: 60,
        ..CoreConfig::default()
    };
    for (core, survives) in [(CoreConfig::default(), false), (core, true)] {
        let server = start_with(core, config()).await;
        let mut client = server.connect().await;
        let session = client.session().await;
        client.0.close(None).await.unwrap();
        client.closed().await;
        let mut heir = server.connect().await;
        let claim = json!({ "janus": "claim", "transaction": "c", "session_id": session });
        if survives {
            assert_eq!(heir.ask(&claim).await["janus"], "success");
            continue;
        }
        // The server may notice the end a moment after us; until then its owner is asked for
        // nothing.
        let keepalive = json!({ "janus": "keepalive", "transaction": "k", "session_id": session });
        let gone = async { while heir.ask(&keepalive).await["janus"] == "ack" {} };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
        assert_eq!(error(&heir.ask(&claim).await), 458);
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_until_one_ends() {
    let mut config = config();
    config.websocket.max_connections = 1;
    let server = start_with(CoreConfig::default(), config).await;
    let mut first = server.connect().await;
    first.ping().await;
    let second = TcpStream::connect(server.ws()).await.unwrap();
    let refused = Socket::open(second, Some("janus-protocol")).await;
    assert_eq!(refused.err(), Some(503));
    first.0.close(None).await.unwrap();
    first.closed().await;
    drop(first);
    let reconnected = async {
        loop {
            let stream = TcpStream::connect(server.ws()).await.unwrap();
            let opened = tokio::spawn(Socket::open(stream, Some("janus-protocol"))).await;
            if let Ok(Ok(mut socket)) = opened {
                return socket.ping().await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reconnected).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_tells_clients_what_ended_and_closes() {
    let server = start().await;
    let mut client = server.connect().await;
    let session = client.session().await;
    let attach =
        json!({ "janus": "attach", "transaction": "a", "session_id": session, "plugin": ECHOTEST });
    client.ask(&attach).await;
    server.core.gateway.shutdown().await;
    let create = json!({ "janus": "create", "transaction": "c" });
    server.transports.shutdown().await;
    let event = client.receive().await;
    assert_eq!(event["janus"], "detached");
    let frame = client.closed().await.unwrap();
    assert_eq!(frame.code, CloseCode::Away);
    assert!(
        client
            .0
            .send(Message::text(create.to_string()))
            .await
            .is_err()
    );
}
