//! A server with the plugin, and its clients.

use std::sync::Arc;

use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_core::{CoreConfig, HandleId, SessionId};
use portunus_echotest::EchoTest;
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.echotest";
pub const LINES: [Line; 3] = [Line::Audio, Line::Video, Line::Data];

pub fn server() -> TestServer {
    TestServer::new(CoreConfig::default(), vec![Arc::new(EchoTest)])
}

pub fn ok() -> Value {
    json!({ "echotest": "event", "result": "ok" })
}

/// Offers `lines` with `body`, and returns the answer's text.
pub async fn call(client: &mut TestClient, body: Value, lines: &[Line]) -> String {
    client
        .message(body, Some(jsep("offer", "abcd", lines)))
        .await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data, ok());
    let answer = answer.unwrap();
    assert_eq!(answer["type"], "answer");
    answer["sdp"].as_str().unwrap().to_owned()
}

pub async fn state(server: &TestServer, client: &TestClient) -> Value {
    let (session, handle) = (SessionId(client.session), HandleId(client.handle));
    server.gateway.query(session, handle).await.unwrap()
}
