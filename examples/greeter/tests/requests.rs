//! All requests without a network: their rights, answers and refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_core::CoreConfig;
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_greeter::Greeter;
use serde_json::{Value, json};

const PACKAGE: &str = "example.plugin.greeter";

fn server() -> TestServer {
    TestServer::new(CoreConfig::default(), vec![Arc::new(Greeter::default())])
}

fn offer() -> Value {
    jsep("offer", "abcd", &[Line::Audio])
}

/// Returns the reason of a refusal.
async fn refused(client: &mut TestClient, body: Value, jsep: Option<Value>) -> String {
    let mut members = json!({ "body": body });
    if let Some(jsep) = jsep {
        members["jsep"] = jsep;
    }
    let reply = client.on_handle("message", members).await;
    assert_eq!(reply["error"]["code"], 462, "{reply}");
    reply["error"]["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_call_is_answered_and_greeted() {
    let server = server();
    let mut client = server.attach_stranger(PACKAGE).await;
    let call = json!({ "request": "call", "name": "Ada" });
    client.message(call, Some(offer())).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data, json!({ "greeting": "Hello, Ada!" }));
    assert_eq!(answer.unwrap()["type"], "answer");
}

#[tokio::test]
async fn an_offer_that_nobody_answers_is_forgotten() {
    let server = server();
    let mut client = server.attach_stranger(PACKAGE).await;
    let nameless = json!({ "request": "call", "name": 7 });
    let reason = refused(&mut client, nameless, Some(offer())).await;
    assert_eq!(reason, "Invalid element type (name should be a string)");
    let greet = json!({ "body": { "request": "greet" }, "jsep": offer() });
    let reply = client.on_handle("message", greet).await;
    assert_eq!(reply["janus"], "success", "{reply}");
    let call = json!({ "request": "CALL" });
    client.message(call, Some(offer())).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data, json!({ "greeting": "Hello, stranger!" }));
    assert!(answer.is_some());
}

#[tokio::test]
async fn only_who_may_administer_changes_how_everybody_is_greeted() {
    let server = server();
    let mut stranger = server.attach_stranger(PACKAGE).await;
    let lesson = json!({ "request": "teach", "greeting": "Welcome", "times": 2 });
    let reason = refused(&mut stranger, lesson.clone(), None).await;
    assert!(reason.starts_with("Unauthorized ("), "{reason}");
    let ada = json!({ "request": "greet", "name": "Ada" });
    let greeted = stranger.request(ada.clone()).await;
    assert_eq!(greeted["greeting"], "Hello, Ada!");

    let mut trusted = server.attach(PACKAGE).await;
    let taught = trusted.request(lesson).await;
    assert_eq!(taught["greeting"], "Welcome, stranger! Welcome, stranger!");
    let greeted = stranger.request(ada).await;
    assert_eq!(greeted["greeting"], "Welcome, Ada! Welcome, Ada!");
}

#[tokio::test]
async fn the_first_mistake_is_told() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    for (body, reason) in [
        (json!({}), "Missing mandatory element (request)"),
        (json!({ "request": "sing" }), "Unknown request (sing)"),
        (
            json!({ "request": "teach", "times": "often" }),
            "Missing mandatory element (greeting)",
        ),
        (
            json!({ "request": "teach", "greeting": "Hi", "times": -1 }),
            "Invalid element type (times should be a positive integer)",
        ),
        (
            json!({ "request": "teach", "greeting": "Hi", "times": 4 }),
            "Invalid value (times should be 1 to 3)",
        ),
        (json!({ "request": "call" }), "Missing offer"),
    ] {
        assert_eq!(refused(&mut client, body, None).await, reason);
    }
}
