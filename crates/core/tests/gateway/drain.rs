//! Drains: refused clients, continuing calls, and the notifications at the end.

use std::time::Duration;

use portunus_core::testing::{Line, TestClient, jsep};
use portunus_core::{Client, Credentials, Requester};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::world::{PROBE, World};

const CREATE: &str = r#"{ "janus": "create", "transaction": "c" }"#;

async fn call(client: &mut TestClient) {
    let offer = jsep("offer", "abcd", &[Line::Audio]);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    client.event_with_jsep().await;
}

fn code(reply: &Value) -> &Value {
    &reply["error"]["code"]
}

#[tokio::test(start_paused = true)]
async fn newcomers_are_refused_and_those_in_a_call_go_on() {
    let world = World::new();
    let (mut caller, mut idle) = (
        world.server.attach(PROBE).await,
        world.server.attach(PROBE).await,
    );
    call(&mut caller).await;
    assert!(!world.gateway.drain(None));
    assert_eq!(
        (world.gateway.calls(), world.gateway.drain(None)),
        (1, true)
    );
    let mut new = world.connect();
    let refused = new.ask_raw(CREATE).await;
    assert_eq!(code(&refused), 472);
    let reason = refused["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("drained"), "{reason}");
    assert_eq!(world.gateway.info(None)["accepting-new-sessions"], false);
    // One that is in no call may ask, but begin nothing.
    assert_eq!(idle.request(json!({ "do": "succeed" })).await["done"], true);
    for body in [json!({ "request": "begin" }), json!({ "request": "BEGIN" })] {
        let refused = idle.on_handle("message", json!({ "body": body })).await;
        assert_eq!(code(&refused), 472, "{refused}");
    }
    let offer = jsep("offer", "abcd", &[Line::Audio]);
    let offered = json!({ "body": { "do": "answer" }, "jsep": offer });
    assert_eq!(code(&idle.on_handle("message", offered).await), 472);
    let attach = |session: u64| json!({ "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE });
    assert_eq!(code(&idle.ask(attach(idle.session)).await), 472);
    // One in a call may do all that it could do before.
    let attached = caller.ask(attach(caller.session)).await;
    assert_eq!(attached["janus"], "success", "{attached}");
    let begun = json!({ "body": { "request": "begin" } });
    assert_eq!(caller.on_handle("message", begun).await["janus"], "ack");
    call(&mut caller).await;
    assert_eq!(world.gateway.undrain(), Ok(true));
    assert_eq!(world.gateway.undrain(), Ok(false));
    assert_eq!(new.ask_raw(CREATE).await["janus"], "success");
    assert_eq!(idle.ask(attach(idle.session)).await["janus"], "success");
    assert_eq!(world.gateway.info(None)["accepting-new-sessions"], true);
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_of_a_drain_everybody_is_told_and_sessions_end() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    call(&mut client).await;
    let begin = Instant::now();
    world.gateway.drain(Some(Duration::from_secs(30)));
    let hangup = client.next().await;
    assert!(begin.elapsed() >= Duration::from_secs(30));
    assert_eq!(hangup["janus"], "hangup");
    assert_eq!(hangup["reason"], "Server drained");
    assert_eq!(client.next().await["janus"], "detached");
    let timeout = json!({ "janus": "timeout", "session_id": client.session });
    assert_eq!(client.next().await, timeout);
    assert_eq!(
        world.plugin.log().last().map(String::as_str),
        Some("detach")
    );
    while world.gateway.counters().snapshot().sessions > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    // The server stays, and stays drained.
    assert_eq!(code(&client.ask_raw(CREATE).await), 472);
    assert_eq!(world.gateway.undrain(), Ok(true));
    assert_eq!(client.ask_raw(CREATE).await["janus"], "success");
}

#[tokio::test(start_paused = true)]
async fn the_drain_before_the_end_lasts_until_the_last_call_or_the_deadline() {
    for hangs_up in [false, true] {
        let world = World::new();
        let mut client = world.server.attach(PROBE).await;
        call(&mut client).await;
        let begin = Instant::now();
        let gateway = world.gateway.clone();
        let drained = tokio::spawn(async move {
            gateway.drain_before_end(Duration::from_secs(30)).await;
            begin.elapsed()
        });
        sleep(Duration::from_secs(5)).await;
        assert!(world.gateway.undrain().is_err());
        assert!(world.gateway.draining().unwrap().is_final);
        if hangs_up {
            client.on_handle("hangup", json!({})).await;
        }
        let seconds = drained.await.unwrap().as_secs();
        assert_eq!(seconds, if hangs_up { 5 } else { 30 });
        // The session is there until the shutdown.
        assert_eq!(world.gateway.counters().snapshot().sessions, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_drain_before_the_end_does_not_wait_for_sessions_without_calls() {
    let world = World::new();
    let _idle = world.server.attach(PROBE).await;
    let begin = Instant::now();
    world
        .gateway
        .drain_before_end(Duration::from_secs(60))
        .await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_client_of_http_can_fetch_its_last_events() {
    let world = World::new();
    let client = Client::polled("janus.transport.http").on_behalf_of(Requester::unix());
    let ask = async |request: Value| world.gateway.request_value(&client, request).await;
    let created = ask(json!({ "janus": "create", "transaction": "c" })).await;
    let session = created["data"]["id"].as_u64().unwrap();
    let attach = json!({
        "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
    });
    ask(attach).await;
    let gateway = world.gateway.clone();
    let ended = tokio::spawn(async move { gateway.shutdown().await });
    let mut told = Vec::new();
    while told.last() != Some(&json!("timeout")) {
        let requester = Requester::unix();
        let wait = Duration::from_secs(30);
        let polled = world
            .gateway
            .poll(session, requester, Credentials::default(), 1, wait);
        told.extend(polled.await.unwrap().iter().map(|it| it["janus"].clone()));
        // As long as a request is on its way.
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(told, ["detached", "timeout"]);
    ended.await.unwrap();
}
