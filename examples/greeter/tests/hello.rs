//! Starts the server as a user would, and sends requests.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Ends the server with the test.
struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

/// Writes a configuration file, in a folder that is removed with it.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("greeter.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// Starts the server on a free port, with this section in its configuration. Returns its URL.
fn start(section: &str) -> (Server, String) {
    let (_folder, path) = file(&format!("[websocket]\nport = 0\n{section}"));
    let program = env!("CARGO_BIN_EXE_portunus-greeter");
    let mut process = Command::new(program)
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut server = Server { process, output };
    let line = server.line();
    let url = line.split(' ').next().unwrap();
    (server, url.to_owned())
}

/// Returns the replies to these bodies.
async fn replies<const N: usize>(url: &str, bodies: [Value; N]) -> [Value; N] {
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
    let mut replies = [const { Value::Null }; N];
    for (reply, body) in replies.iter_mut().zip(bodies) {
        *reply = ask(message(body)).await;
    }
    replies
}

#[tokio::test]
async fn says_hello() {
    let (_server, url) = start("");
    let bodies = [
        json!({ "request": "greet", "name": "Ada" }),
        json!({ "request": "greet", "name": 7 }),
    ];
    let [reply, refused] = replies(&url, bodies).await;
    let greeting = json!({ "greeting": "Hello, Ada!" });
    assert_eq!(reply["plugindata"]["data"], greeting);
    assert_eq!(refused["error"]["code"], 462);
    let reason = "Invalid element type (name should be a string)";
    assert_eq!(refused["error"]["reason"], reason);
}

#[tokio::test]
async fn says_what_its_section_of_the_configuration_says() {
    let (_server, url) = start("[greeter]\ngreeting = \"Welcome\"\ntimes = 2\n");
    let [reply] = replies(&url, [json!({ "request": "greet", "name": "Ada" })]).await;
    let greeting = json!({ "greeting": "Welcome, Ada! Welcome, Ada!" });
    assert_eq!(reply["plugindata"]["data"], greeting);
}

#[tokio::test]
async fn an_own_event_handler_prints_what_the_plugin_tells() {
    let section = "[events.printer]\nenabled = true\nevents = \"plugins\"\nprefix = \"> \"\n";
    let (mut server, url) = start(section);
    replies(&url, [json!({ "request": "greet", "name": "Ada" })]).await;
    let line = server.line();
    let event: Value = serde_json::from_str(line.strip_prefix("> ").unwrap()).unwrap();
    assert_eq!(event["emitter"], "Greeter");
    assert_eq!(event["type"], 64);
    let expected = json!({
        "plugin": "example.plugin.greeter", "data": { "event": "greeted", "name": "Ada" },
    });
    assert_eq!(event["event"], expected);
    assert!(event["handle_id"].is_u64());
}

#[test]
fn mistakes_in_its_section_are_told_with_those_of_other_sections() {
    let text = "[greeter]\ngreting = \"Hi\"\ntimes = 4\n[websocket]\nport = -1\n[greter]\n\
                [events.printer]\nprefx = 1\n";
    let (_folder, path) = file(text);
    let program = env!("CARGO_BIN_EXE_portunus-greeter");
    let output = Command::new(program).arg(path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    let told: Vec<&str> = told.lines().collect();
    let expected = [
        "line 2: greeter.greting: unknown key; did you mean greeter.greeting?",
        "line 3: greeter.times: expected 1 to 3, got 4",
        "line 5: websocket.port: expected a whole number from 0 to 65535, got -1",
        "line 6: greter: unknown key; did you mean greeter?",
        "line 8: events.printer.prefx: unknown key; did you mean events.printer.prefix?",
    ];
    assert_eq!(told, expected);
}
