//! Sessions and handles: which there are, and their end.

use std::time::Duration;

use portunus_core::testing::{Line, jsep};
use serde_json::json;
use tokio::time::sleep;

use crate::stage::{Stage, code};
use crate::world::PROBE;

#[tokio::test(start_paused = true)]
async fn sessions_and_their_handles_are_listed() {
    let stage = Stage::new();
    let reply = stage.ask("list_sessions", json!({})).await;
    assert_eq!(
        reply,
        json!({ "janus": "success", "transaction": "t", "sessions": [] })
    );
    let mut client = stage.attach().await;
    let second = client.attach(client.session, PROBE).await;
    let reply = stage.ask("list_sessions", json!({})).await;
    assert_eq!(reply["sessions"], json!([client.session]));
    let at = (Some(client.session), None);
    let reply = stage.ask_at("list_handles", at, json!({})).await;
    assert_eq!(reply["session_id"], client.session);
    let mut handles = [client.handle, second];
    handles.sort_unstable();
    assert_eq!(reply["handles"], json!(handles));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_destroyed_is_gone_without_a_word() {
    let stage = Stage::new();
    let mut client = stage.attach().await;
    let at = (Some(client.session), None);
    let reply = stage.ask_at("destroy_session", at, json!({})).await;
    assert_eq!(
        reply,
        json!({ "janus": "success", "session_id": client.session, "transaction": "t" })
    );
    client.expect_silence().await;
    let reply = client.on_handle("message", json!({ "body": {} })).await;
    assert_eq!(reply["error"]["code"], 458);
    assert_eq!(
        code(&stage.ask_at("list_handles", at, json!({})).await),
        458
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_may_be_silent_as_long_as_it_was_told() {
    let stage = Stage::new();
    let (never, short, as_all) = (
        stage.attach().await,
        stage.attach().await,
        stage.attach().await,
    );
    let set = |client: &portunus_core::testing::TestClient, timeout: i64| {
        let at = (Some(client.session), None);
        stage.ask_at("set_session_timeout", at, json!({ "timeout": timeout }))
    };
    let reply = set(&never, 0).await;
    assert_eq!(reply["timeout"], 0);
    assert_eq!(reply["session_id"], never.session);
    set(&short, 5).await;
    set(&as_all, 5).await;
    let reply = set(&as_all, -1).await;
    assert_eq!(reply["timeout"], -1);
    assert_eq!(code(&set(&short, -2).await), 467);
    let at = (Some(short.session), None);
    for wrong in [json!("5"), json!(1.5), json!(null)] {
        let reply = stage
            .ask_at("set_session_timeout", at, json!({ "timeout": wrong }))
            .await;
        assert_eq!(code(&reply), 467, "{wrong}");
    }
    assert_eq!(
        code(&stage.ask_at("set_session_timeout", at, json!({})).await),
        456
    );
    let there = async || stage.ask("list_sessions", json!({})).await["sessions"].clone();
    sleep(Duration::from_secs(8)).await;
    let mut left = [never.session, as_all.session];
    left.sort_unstable();
    assert_eq!(there().await, json!(left));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(there().await, json!([never.session]));
    // All follow what is said of all.
    let late = stage.attach().await;
    stage
        .ask("set_session_timeout", json!({ "timeout": 2 }))
        .await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(there().await, json!([never.session]), "{}", late.session);
}

#[tokio::test(start_paused = true)]
async fn no_new_sessions_are_made_where_none_are_accepted() {
    let stage = Stage::new();
    let reply = stage
        .ask("accept_new_sessions", json!({ "accept": false }))
        .await;
    assert_eq!(reply["accept"], false);
    let mut client = stage.world.connect();
    let create = json!({ "janus": "create", "transaction": "c" });
    assert_eq!(client.ask(create.clone()).await["error"]["code"], 472);
    let info = stage.ask("info", json!({})).await;
    assert_eq!(info["accepting-new-sessions"], false);
    stage
        .ask("accept_new_sessions", json!({ "accept": true }))
        .await;
    assert_eq!(client.ask(create).await["janus"], "success");
}

#[tokio::test(start_paused = true)]
async fn a_handle_that_is_detached_is_told_so() {
    let stage = Stage::new();
    let mut client = stage.attach().await;
    let reply = stage.ask_of("detach_handle", &client, json!({})).await;
    assert_eq!(
        reply,
        json!({ "janus": "success", "session_id": client.session, "transaction": "t" })
    );
    let event = client.next().await;
    assert_eq!(event["janus"], "detached");
    assert_eq!(event["sender"], client.handle);
    let reply = stage.ask_of("detach_handle", &client, json!({})).await;
    assert_eq!(code(&reply), 459);
}

#[tokio::test(start_paused = true)]
async fn a_peer_connection_that_is_hung_up_is_told_why() {
    let stage = Stage::new();
    let mut client = stage.attach().await;
    // Without one there is nothing to tell.
    assert_eq!(
        code(&stage.ask_of("hangup_webrtc", &client, json!({})).await),
        0
    );
    client.expect_silence().await;
    let offer = jsep("offer", "abcd", &[Line::Audio]);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    client.event().await;
    assert_eq!(
        code(&stage.ask_of("hangup_webrtc", &client, json!({})).await),
        0
    );
    let event = client.next().await;
    assert_eq!(event["janus"], "hangup");
    assert_eq!(event["reason"], "Admin API");
}
