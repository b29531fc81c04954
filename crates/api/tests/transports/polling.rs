//! HTTP: events by long polls.

use std::time::Duration;

use portunus_core::CoreConfig;
use serde_json::{Value, json};

use crate::server::{Server, config, start, start_with};

async fn toggle(server: &Server, handle: &str, transaction: &str) {
    let body = json!({ "audio": true });
    let message = json!({ "janus": "message", "transaction": transaction, "body": body });
    assert_eq!(server.post(handle, &message).await["janus"], "ack");
}

#[tokio::test]
async fn an_event_waits_for_the_next_poll() {
    let server = start().await;
    let session = server.session().await;
    let handle = server.handle(&session).await;
    toggle(&server, &handle, "one").await;
    let event = server.get(&format!("{session}?rid=17")).await.json();
    assert_eq!(event["janus"], "event");
    assert_eq!(event["transaction"], "one");
    assert_eq!(
        event["plugindata"]["data"],
        json!({ "echotest": "event", "result": "ok" })
    );
}

#[tokio::test]
async fn a_poll_waits_for_the_next_event() {
    let server = start().await;
    let session = server.session().await;
    let handle = server.handle(&session).await;
    let (answer, ()) = tokio::join!(server.get(&session), toggle(&server, &handle, "two"));
    assert_eq!(answer.json()["transaction"], "two");
}

#[tokio::test]
async fn several_events_come_as_a_list_in_their_order() {
    let server = start().await;
    let session = server.session().await;
    let handle = server.handle(&session).await;
    let mut seen = Vec::new();
    for transaction in ["1", "2", "3"] {
        toggle(&server, &handle, transaction).await;
    }
    while seen.len() < 3 {
        let events = server.get(&format!("{session}?maxev=2")).await.json();
        let events = events.as_array().unwrap().clone();
        assert!(events.len() <= 2);
        seen.extend(events.iter().map(|event| event["transaction"].clone()));
    }
    assert_eq!(seen, ["1", "2", "3"].map(Value::from));
}

#[tokio::test]
async fn a_poll_without_events_ends_with_a_keepalive() {
    let mut config = config();
    config.http.long_poll = Duration::from_millis(20);
    let server = start_with(CoreConfig::default(), config).await;
    let session = server.session().await;
    let keepalive = json!({ "janus": "keepalive" });
    assert_eq!(server.get(&session).await.json(), keepalive);
    let list = server.get(&format!("{session}?maxev=5")).await.json();
    assert_eq!(list, json!([keepalive]));
}

#[tokio::test]
async fn a_session_that_is_gone_is_an_error() {
    let server = start().await;
    let answer = server.get("/janus/12345").await;
    assert_eq!((answer.status, answer.error()), (404, 458));
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_poll() {
    let server = start().await;
    let session = server.session().await;
    let destroy = json!({ "janus": "destroy", "transaction": "d" });
    let (answer, reply) = tokio::join!(server.get(&session), server.post(&session, &destroy));
    assert_eq!(reply["janus"], "success");
    // Whichever of the two came first.
    assert!([200, 404].contains(&answer.status));
}

#[tokio::test]
async fn polls_need_the_secret_or_a_token() {
    let core = CoreConfig {
        api_secret: Some("s3 cret".into()),
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    let create = json!({ "janus": "create", "transaction": "c", "apisecret": "s3 cret" });
    let reply = server.post("/janus", &create).await;
    let session = format!("/janus/{}", reply["data"]["id"]);
    for path in [session.clone(), format!("{session}?apisecret=wrong")] {
        let answer = server.get(&path).await;
        assert_eq!((answer.status, answer.error()), (403, 403));
    }
    let destroy = json!({ "janus": "destroy", "transaction": "d", "apisecret": "s3 cret" });
    let path = format!("{session}?apisecret=s3%20cret");
    let (answer, _) = tokio::join!(server.get(&path), server.post(&session, &destroy));
    assert_ne!(answer.status, 403);
}
