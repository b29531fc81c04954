//! `handle_info` without media. Statistics of media are tested in `tests/rust`, with real peers.

use std::time::Duration;

use portunus_core::media::{CloseReason, Event, IceAttempt};
use portunus_core::testing::{Line, TestClient, jsep};
use portunus_core::{CoreConfig, ServerFacts, StoredToken};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::stage::{Stage, code};
use crate::world::PROBE;

async fn info(stage: &Stage, client: &TestClient) -> Value {
    let reply = stage.ask_of("handle_info", client, json!({})).await;
    assert_eq!(code(&reply), 0, "{reply}");
    assert_eq!(reply["session_id"], client.session);
    assert_eq!(reply["handle_id"], client.handle);
    reply["info"].clone()
}

/// The flags that are true.
fn flags(info: &Value) -> Vec<&str> {
    let flags = info["flags"].as_object().unwrap();
    assert_eq!(flags.len(), 20);
    let set = flags.iter().filter(|(_, set)| set.as_bool().unwrap());
    set.map(|(name, _)| name.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fresh_handle_has_its_plugin_and_no_peer_connection() {
    let stage = Stage::new();
    let client = stage.attach().await;
    sleep(Duration::from_secs(2)).await;
    let told = info(&stage, &client).await;
    assert_eq!(told["session_id"], client.session);
    assert_eq!(told["session_timeout"], 60);
    assert_eq!(told["session_transport"], "janus.transport.test");
    assert_eq!(told["handle_id"], client.handle);
    assert_eq!(told["opaque_id"], "mine");
    assert_eq!(told["loop-running"], true);
    assert_eq!(told["plugin"], PROBE);
    assert!(told["plugin_specific"].is_object());
    let at = |name: &str| told[name].as_u64().unwrap();
    assert_eq!(at("current_time") - at("created"), 2_000_000);
    assert_eq!(at("current_time") - at("session_last_activity"), 2_000_000);
    assert_eq!(flags(&told), ["alert"]);
    assert_eq!(told["sdps"], json!({}));
    assert_eq!(told["queued-packets"], 0);
    assert!(told.get("webrtc").is_none() && told.get("token").is_none());
    let only = stage
        .ask_of("handle_info", &client, json!({ "plugin_only": true }))
        .await;
    let members = only["info"].as_object().unwrap();
    assert!(members.contains_key("plugin_specific") && !members.contains_key("flags"));
    let wrong = stage
        .ask_of("handle_info", &client, json!({ "plugin_only": 1 }))
        .await;
    assert_eq!(code(&wrong), 467);
}

#[tokio::test(start_paused = true)]
async fn a_peer_connection_has_its_descriptions_and_its_state() {
    let stage = Stage::new();
    let mut client = stage.attach().await;
    let lines = [Line::Audio, Line::Simulcast, Line::Data];
    let mut offer = jsep("offer", "abcd", &lines);
    offer["rid_order"] = "lmh".into();
    client
        .message(json!({ "do": "answer" }), Some(offer.clone()))
        .await;
    let (_, answer) = client.event_with_jsep().await;
    let told = info(&stage, &client).await;
    let expected = [
        "got-offer",
        "got-answer",
        "negotiated",
        "starting",
        "trickle",
        "data-channels",
        "new-datachan-sdp",
        "rfc4588-rtx",
    ];
    assert_eq!(flags(&told), expected);
    let sdps = json!({ "profile": "UDP/TLS/RTP/SAVPF", "local": answer.unwrap()["sdp"],
        "remote": offer["sdp"] });
    assert_eq!(told["sdps"], sdps);
    assert_eq!(
        (&told["ice-mode"], &told["ice-role"]),
        (&json!("full"), &json!("controlled"))
    );
    assert!(told["agent-created"].is_u64() && told["agent-started"].is_u64());
    let ice = &told["webrtc"]["ice"];
    assert_eq!(
        (&ice["stream_id"], &ice["component_id"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(ice["ready"], 0);
    let dtls = &told["webrtc"]["dtls"];
    assert_eq!(
        (&dtls["dtls-role"], &dtls["dtls-state"]),
        (&json!("passive"), &json!("created"))
    );
    assert_eq!(dtls["remote-fingerprint-hash"], "sha-256");
    assert_eq!(dtls["remote-fingerprint"], vec!["AB"; 32].join(":"));
    let completed = json!({ "candidate": { "completed": true } });
    client.on_handle("trickle", completed).await;
    let told = info(&stage, &client).await;
    assert!(flags(&told).contains(&"all-trickles"));
    let peer = stage.world.server.peers()[0];
    let up = Event::Connected {
        srtp_profile: "SRTP_AEAD_AES_128_GCM",
    };
    stage.world.server.happen(peer, up).await;
    client.next().await;
    let told = info(&stage, &client).await;
    let set = flags(&told);
    assert!(
        set.contains(&"ready") && !set.contains(&"starting"),
        "{set:?}"
    );
    assert_eq!(told["webrtc"]["ice"]["ready"], 1);
    client.on_handle("hangup", json!({})).await;
    client.next().await;
    assert_eq!(flags(&info(&stage, &client).await), ["stopped", "alert"]);
}

#[tokio::test(start_paused = true)]
async fn why_ice_failed_is_told_until_the_next_peer_connection() {
    let stage = Stage::new();
    let mut client = stage.attach().await;
    let offer = jsep("offer", "abcd", &[Line::Audio]);
    let answer = json!({ "do": "answer" });
    client.message(answer.clone(), Some(offer)).await;
    client.event_with_jsep().await;
    let gone = IceAttempt {
        was_connected: true,
        ..IceAttempt::default()
    };
    let lost = Event::Closed(CloseReason::ConsentLost(gone.clone().into()));
    stage
        .world
        .server
        .happen(stage.world.server.peers()[0], lost)
        .await;
    let hangup = client.next().await;
    let cause = gone.cause();
    assert_eq!(
        (&hangup["cause"], &hangup["text"]),
        (&json!(cause.code), &json!(cause.text))
    );
    let told = json!([{ "cause": "connection-lost", "text": cause.text }]);
    assert_eq!(info(&stage, &client).await["diagnosis"], told);
    client
        .message(answer, Some(jsep("offer", "efgh", &[Line::Audio])))
        .await;
    client.event_with_jsep().await;
    assert_eq!(info(&stage, &client).await["diagnosis"], json!([]));
    client.on_handle("hangup", json!({})).await;
    client.next().await;
    assert_eq!(info(&stage, &client).await["diagnosis"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn the_token_that_a_handle_was_attached_with_is_told() {
    let known = StoredToken {
        token: "t1".to_owned(),
        plugins: Vec::new(),
        rights: Vec::new(),
    };
    let core = CoreConfig {
        tokens: vec![known],
        ..CoreConfig::default()
    };
    let stage = Stage::with(core, ServerFacts::default());
    let mut client = stage.attach().await;
    let attach = json!({ "janus": "attach", "transaction": "a", "session_id": client.session,
        "plugin": PROBE, "token": "t1" });
    let reply = client.ask(attach).await;
    client.handle = reply["data"]["id"].as_u64().unwrap();
    let told = info(&stage, &client).await;
    assert_eq!(told["token"], "t1");
    assert!(told.get("opaque_id").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_handle_whose_plugin_is_busy_is_told_all_the_same() {
    let stage = Stage::new();
    let client = stage.attach().await;
    let message = json!({ "janus": "message", "transaction": "m", "session_id": client.session,
        "handle_id": client.handle, "body": { "do": "wait" } });
    let gateway = &stage.world.gateway;
    let text = message.to_string();
    let waiting = gateway
        .begin(&client.client, text.as_bytes())
        .await
        .unwrap();
    let told = info(&stage, &client).await;
    assert_eq!(told["plugin_specific"], json!({}));
    assert_eq!(told["plugin"], PROBE);
    stage.world.plugin.release.notify_one();
    waiting.await;
}
