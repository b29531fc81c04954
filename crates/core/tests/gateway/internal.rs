//! Clients that are a part of the server, and what they may do beyond the API.

use std::time::Duration;

use portunus_core::sdp::IceCredentials;
use portunus_core::testing::{Line, jsep, stranger};
use portunus_core::{Client, CoreConfig, Credentials, HandleId, Rights, SessionId, StoredToken};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::world::{PROBE, World};

/// A session and a handle of an internal client.
async fn attach(world: &World, client: &Client) -> (u64, u64) {
    let create = json!({ "janus": "create", "transaction": "c" });
    let id = |reply: Value| reply["data"]["id"].as_u64().unwrap();
    let session = id(world.gateway.request_value(client, create).await);
    let attach = json!({
        "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
    });
    let handle = id(world.gateway.request_value(client, attach).await);
    (session, handle)
}

#[tokio::test(start_paused = true)]
async fn it_is_let_in_and_does_not_time_out() {
    let world = World::with(CoreConfig {
        api_secret: Some("s3cret".into()),
        token_auth: true,
        reclaim_session_timeout: 100,
        ..CoreConfig::default()
    });
    let (client, _messages) = Client::internal("test", stranger(), Rights::NONE);
    attach(&world, &client).await;
    sleep(Duration::from_secs(1_000)).await;
    assert_eq!(world.gateway.counters().snapshot().sessions, 1);
    world.gateway.client_gone(&client);
    assert_eq!(world.gateway.counters().snapshot().sessions, 0);
}

#[tokio::test]
async fn its_sessions_are_ended_by_others_but_not_claimed() {
    let world = World::new();
    let (client, mut messages) = Client::internal("test", stranger(), Rights::NONE);
    let (session, handle) = attach(&world, &client).await;
    let ids = (SessionId(session), HandleId(handle));
    let mut other = world.connect();
    let mut ask = async |verb: &str| {
        let request = json!({ "janus": verb, "transaction": "t", "session_id": session });
        other.ask(request).await
    };
    let claimed = ask("claim").await;
    assert_eq!(claimed["error"]["code"], 450, "{claimed}");
    assert!(world.gateway.has_handle(ids.0, ids.1));
    assert_eq!(ask("destroy").await["janus"], "success");
    assert!(!world.gateway.has_handle(ids.0, ids.1));
    assert_eq!(messages.recv().await, Some(json!({ "janus": "destroyed" })));
    // An internal client gets no event for an end of its own.
    attach(&world, &client).await;
    world.gateway.client_gone(&client);
    assert_eq!(world.gateway.counters().snapshot().sessions, 0);
    assert_eq!(messages.recv().await, None);
}

#[tokio::test]
async fn others_can_be_checked_as_the_api_would() {
    let world = World::with(CoreConfig {
        token_auth: true,
        tokens: vec![StoredToken {
            token: "t".into(),
            plugins: vec![PROBE.into()],
            rights: Vec::new(),
        }],
        ..CoreConfig::default()
    });
    let admits = |token, package| {
        let credentials = Credentials {
            api_secret: None,
            token,
        };
        world
            .gateway
            .admits(credentials, package)
            .map_err(|error| error.code())
    };
    assert_eq!(admits(Some("t"), PROBE), Ok(()));
    assert_eq!(admits(Some("t"), "janus.plugin.other"), Err(405));
    assert_eq!(admits(Some("u"), PROBE), Err(403));
    assert_eq!(admits(None, PROBE), Err(403));
}

#[tokio::test]
async fn it_restarts_ice_without_a_negotiation() {
    let world = World::with(CoreConfig {
        full_trickle: true,
        ..CoreConfig::default()
    });
    let (client, mut messages) = Client::internal("test", stranger(), Rights::NONE);
    let (session, handle) = attach(&world, &client).await;
    let restart = async || {
        let remote = IceCredentials {
            ufrag: "restarted".into(),
            pwd: "0123456789012345678901".into(),
        };
        let (session, handle) = (SessionId(session), HandleId(handle));
        world.gateway.restart_ice(session, handle, remote).await
    };
    assert_eq!(restart().await, None, "there is nothing to restart");

    let offer = |ufrag| {
        json!({
            "janus": "message", "transaction": "m", "session_id": session, "handle_id": handle,
            "body": { "do": "answer" }, "jsep": jsep("offer", ufrag, &[Line::Audio]),
        })
    };
    world.gateway.request_value(&client, offer("first")).await;
    let answer = messages.recv().await.unwrap();
    let sdp = answer["jsep"]["sdp"].as_str().unwrap();
    assert!(sdp.contains("a=end-of-candidates"), "no trickle: {sdp}");
    let restarted = restart().await.unwrap();
    assert!(!sdp.contains(&restarted.ice.ufrag));
    assert_eq!(restarted.mid.as_str(), "0");

    // The credentials are known: an offer with them is no further restart.
    world
        .gateway
        .request_value(&client, offer("restarted"))
        .await;
    let answer = messages.recv().await.unwrap();
    let sdp = answer["jsep"]["sdp"].as_str().unwrap();
    assert!(sdp.contains(&restarted.ice.ufrag), "{sdp}");
}
