//! Events over WebSocket, to a backend that comes and goes.

use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use portunus_events::WebSocket;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use crate::lifecycle::{Running, numbers, start, until};

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/events", listener.local_addr().unwrap());
    (listener, url)
}

async fn to(url: &str, keys: &str) -> Running {
    start::<WebSocket>(&format!("backend = \"{url}\"\n{keys}")).await
}

/// Accepts a connection with the offered subprotocol.
#[expect(clippy::result_large_err, reason = "the library's type")]
async fn accept(listener: &TcpListener) -> (WebSocketStream<TcpStream>, Option<String>) {
    let (stream, _) = listener.accept().await.unwrap();
    let offered = Arc::new(Mutex::new(None));
    let noted = offered.clone();
    let choose = move |request: &Request, mut response: Response| {
        let name = "sec-websocket-protocol";
        if let Some(value) = request.headers().get(name) {
            response.headers_mut().insert(name, value.clone());
            *noted.lock().unwrap() = Some(value.to_str().unwrap().to_owned());
        }
        Ok(response)
    };
    let socket = accept_hdr_async(stream, choose).await.unwrap();
    let offered = offered.lock().unwrap().clone();
    (socket, offered)
}

/// The numbers in the next text message.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> Vec<u64> {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return numbers(text.as_bytes()),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn batches_are_text_messages_in_order() {
    let (listener, url) = listen().await;
    let handler = to(&url, "subprotocol = \"janus-events\"\n").await;
    handler.publish(0..150);
    let (mut socket, offered) = accept(&listener).await;
    assert_eq!(offered.as_deref(), Some("janus-events"));
    assert_eq!(next(&mut socket).await, Vec::from_iter(0..100));
    assert_eq!(next(&mut socket).await, Vec::from_iter(100..150));
    assert_eq!(handler.tweak(json!({ "grouping": false })), Ok(()));
    handler.publish([150, 151]);
    let mut rest = next(&mut socket).await;
    while rest.len() < 2 {
        rest.extend(next(&mut socket).await);
    }
    assert_eq!(rest, [150, 151]);
    handler.until("sent", 152).await;
    handler.bus.end().await;
    let last = socket.next().await.unwrap().unwrap();
    assert!(last.is_close(), "{last:?}");
}

#[tokio::test]
async fn events_wait_while_the_backend_is_restarted() {
    let (listener, url) = listen().await;
    let address = listener.local_addr().unwrap();
    let handler = to(&url, "").await;
    let (mut socket, _) = accept(&listener).await;
    handler.publish([0]);
    assert_eq!(next(&mut socket).await, [0]);
    drop((socket, listener));
    until(|| handler.counter("failed") >= 1, || handler.last_error()).await;
    handler.publish(1..50);
    let again = TcpSocket::new_v4().unwrap();
    again.set_reuseaddr(true).unwrap();
    again.bind(address).unwrap();
    let listener = again.listen(8).unwrap();
    let (mut socket, _) = accept(&listener).await;
    assert_eq!(next(&mut socket).await, Vec::from_iter(1..50));
    handler.until("sent", 50).await;
    assert_eq!(handler.counter("connections"), 2);
    assert_eq!(handler.counter("lost") + handler.dropped(), 0);
}

#[tokio::test]
async fn of_what_waits_meanwhile_as_much_is_sent_as_is_configured() {
    let (listener, url) = listen().await;
    let handler = to(&url, "events_cap_on_reconnect = 10\n").await;
    handler.publish(0..50);
    let (mut socket, _) = accept(&listener).await;
    assert_eq!(next(&mut socket).await, Vec::from_iter(40..50));
    assert_eq!(handler.dropped(), 40);
    for (name, wrong) in [
        ("grouping", json!(0)),
        ("events_cap_on_reconnect", json!(-1)),
        ("events_cap_on_reconnect", json!("10")),
        ("events", json!([])),
    ] {
        let mut members = json!({});
        members[name] = wrong;
        assert_eq!(handler.tweak(members), Err(413), "{name}");
    }
    assert_eq!(
        handler.tweak(json!({ "events_cap_on_reconnect": 0 })),
        Ok(())
    );
}

#[tokio::test]
async fn who_is_no_websocket_server_is_told_of_and_asked_again() {
    let (listener, url) = listen().await;
    let handler = to(&url, "").await;
    handler.publish([1]);
    let (mut stream, _) = listener.accept().await.unwrap();
    let _ = stream.read(&mut [0; 1_024]).await;
    tokio::io::AsyncWriteExt::write_all(
        &mut stream,
        b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
    )
    .await
    .unwrap();
    until(|| handler.counter("failed") == 1, || handler.last_error()).await;
    assert!(
        handler.last_error().contains("404"),
        "{}",
        handler.last_error()
    );
    let (stream, _) = listener.accept().await.unwrap();
    drop(stream);
    until(|| handler.counter("failed") == 2, || handler.last_error()).await;
    let (mut socket, _) = accept(&listener).await;
    assert_eq!(next(&mut socket).await, [1]);
}

#[tokio::test]
async fn what_the_backend_says_does_not_disturb() {
    let (listener, url) = listen().await;
    let handler = to(&url, "").await;
    let (mut socket, _) = accept(&listener).await;
    for message in [Message::text("not json"), Message::binary(vec![0; 100])] {
        socket.send(message).await.unwrap();
    }
    handler.publish([1]);
    assert_eq!(next(&mut socket).await, [1]);
    // A message that is too large ends the connection, and the next one works.
    let _ = socket.send(Message::binary(vec![0; 1 << 20])).await;
    let (mut socket, _) = accept(&listener).await;
    handler.publish([2]);
    assert_eq!(next(&mut socket).await, [2]);
}

#[tokio::test]
async fn the_server_ends_at_once_though_the_backend_is_not_there() {
    let (listener, url) = listen().await;
    drop(listener);
    let handler = to(&url, "").await;
    handler.publish([1]);
    until(|| handler.counter("failed") >= 1, || handler.last_error()).await;
    let begun = std::time::Instant::now();
    handler.bus.end().await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(1));
}
