//! Starts the server as anybody would, and speaks to it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Ends the server with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the server on a port that the kernel chooses; gives its URL.
fn start() -> (Server, String) {
    let program = env!("CARGO_BIN_EXE_portunus-greeter");
    let mut child = Command::new(program)
        .arg("0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    let url = line.split(' ').next().unwrap();
    (Server(child), url.to_owned())
}

#[tokio::test]
async fn says_hello() {
    let (_server, url) = start();
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("Sec-WebSocket-Protocol", "janus-protocol".parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    let mut ask = async |request: Value| -> Value {
        socket
            .send(Message::text(request.to_string()))
            .await
            .unwrap();
        let reply = socket.next().await.unwrap().unwrap();
        serde_json::from_str(reply.to_text().unwrap()).unwrap()
    };

    let created = ask(json!({ "janus": "create", "transaction": "1" })).await;
    let session = &created["data"]["id"];
    let attached = ask(json!({
        "janus": "attach", "transaction": "2", "session_id": session,
        "plugin": "example.plugin.greeter",
    }))
    .await;
    let message = |body: Value| {
        json!({
            "janus": "message", "transaction": "3", "session_id": session,
            "handle_id": attached["data"]["id"], "body": body,
        })
    };
    let reply = ask(message(json!({ "name": "Ada" }))).await;
    assert_eq!(
        reply["plugindata"]["data"],
        json!({ "greeting": "Hello, Ada!" })
    );
    let reply = ask(message(json!({ "name": 7 }))).await;
    assert_eq!(reply["error"]["code"], 462);
    let reason = "Invalid element type (name should be a string)";
    assert_eq!(reply["error"]["reason"], reason);
}
