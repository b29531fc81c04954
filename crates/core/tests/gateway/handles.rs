use std::time::Duration;

use portunus_core::{CoreConfig, HandleId, SessionId};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{PROBE, World};

fn message(session: u64, handle: u64, what: &str) -> Value {
    json!({
        "janus": "message", "session_id": session, "handle_id": handle, "transaction": "m",
        "body": { "do": what },
    })
}

#[tokio::test]
async fn attaches_and_detaches() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let attach = json!({
        "janus": "attach", "session_id": session, "transaction": "a", "plugin": PROBE,
        "opaque_id": "mine", "force-bundle": true, "loop_index": 1,
    });
    let reply = client.ask(attach).await;
    let handle = reply["data"]["id"].as_u64().unwrap();
    assert_eq!(
        reply,
        json!({
            "janus": "success", "session_id": session, "transaction": "a", "data": { "id": handle },
        })
    );
    let state = world
        .gateway
        .query(SessionId(session), HandleId(handle))
        .await;
    assert_eq!(state, Some(json!({ "opaque": "mine" })));

    let detach = json!({
        "janus": "detach", "session_id": session, "handle_id": handle, "transaction": "d",
    });
    assert_eq!(
        client.ask(detach.clone()).await,
        json!({ "janus": "success", "session_id": session, "transaction": "d" })
    );
    assert_eq!(
        client.next().await,
        json!({ "janus": "detached", "session_id": session, "sender": handle })
    );
    client.expect_silence().await;
    assert_eq!(client.ask(detach).await["error"]["code"], 459);
    assert_eq!(world.plugin.log(), ["detach"]);
}

#[tokio::test]
async fn a_synchronous_result_is_the_reply() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    assert_eq!(
        client.ask(message(session, handle, "succeed")).await,
        json!({
            "janus": "success", "session_id": session, "transaction": "m", "sender": handle,
            "plugindata": { "plugin": PROBE, "data": { "done": true } },
        })
    );
}

#[tokio::test]
async fn events_follow_the_ack_in_order() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    for _ in 0..100 {
        assert_eq!(
            client.ask(message(session, handle, "answer later")).await,
            json!({
                "janus": "ack", "session_id": session, "transaction": "m", "hint": "soon",
            })
        );
        assert_eq!(
            client.next().await,
            json!({
                "janus": "event", "session_id": session, "transaction": "m", "sender": handle,
                "plugindata": { "plugin": PROBE, "data": { "number": 1 } },
            })
        );
        assert_eq!(
            client.next().await,
            json!({
                "janus": "event", "session_id": session, "sender": handle,
                "plugindata": { "plugin": PROBE, "data": { "number": 2 } },
            })
        );
    }
}

#[tokio::test]
async fn opaque_ids_are_in_events_if_so_configured() {
    let world = World::with(CoreConfig {
        opaqueid_in_api: true,
        ..CoreConfig::default()
    });
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    assert_eq!(
        client.ask(message(session, handle, "succeed")).await["opaque_id"],
        "mine"
    );
    let ack = client.ask(message(session, handle, "answer later")).await;
    assert_eq!(ack.get("opaque_id"), None);
    assert_eq!(client.next().await["opaque_id"], "mine");
}

#[tokio::test]
async fn a_plugin_may_refuse_or_fail() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    assert_eq!(
        client.ask(message(session, handle, "refuse")).await,
        json!({
            "janus": "error", "session_id": session, "transaction": "m",
            "error": { "code": 462, "reason": "no" },
        })
    );
    let reply = client
        .ask(message(session, handle, "succeed with nonsense"))
        .await;
    assert_eq!(
        reply["error"]["reason"],
        "Plugin returned an invalid JSON response"
    );
}

#[tokio::test]
async fn a_plugin_that_panics_takes_only_the_handle_with_it() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let (broken, other) = (
        client.attach(session, PROBE).await,
        client.attach(session, PROBE).await,
    );
    world
        .gateway
        .submit(
            &client.client,
            message(session, broken, "panic").to_string().as_bytes(),
        )
        .await;
    let mut messages = [client.next().await, client.next().await];
    messages.sort_by_key(|message| message["janus"].to_string());
    assert_eq!(messages[0]["janus"], "detached");
    assert_eq!(messages[1]["error"]["code"], 462);
    assert_eq!(
        client.ask(message(session, broken, "succeed")).await["error"]["code"],
        459
    );
    assert_eq!(
        client.ask(message(session, other, "succeed")).await["janus"],
        "success"
    );
}

#[tokio::test]
async fn a_request_that_takes_long_holds_up_no_other_handle() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let (slow, other) = (
        client.attach(session, PROBE).await,
        client.attach(session, PROBE).await,
    );
    let begin = async |message: Value| {
        let text = message.to_string();
        world.gateway.begin(&client.client, text.as_bytes()).await
    };
    let waits = begin(message(session, slow, "wait")).await.unwrap();
    let behind = begin(message(session, slow, "succeed")).await.unwrap();
    let quick = begin(message(session, other, "succeed")).await.unwrap();
    quick.await;
    world.plugin.release.notify_one();
    waits.await;
    behind.await;
    let mut senders = Vec::new();
    for _ in 0..3 {
        senders.push(client.next().await["sender"].clone());
    }
    assert_eq!(senders, [json!(other), json!(slow), json!(slow)]);
}

#[tokio::test]
async fn a_plugin_may_end_a_handle() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    assert_eq!(
        client.ask(message(session, handle, "end")).await["janus"],
        "ack"
    );
    assert_eq!(client.next().await["janus"], "detached");
    assert_eq!(
        client.ask(message(session, handle, "succeed")).await["error"]["code"],
        459
    );
}

#[tokio::test]
async fn a_hangup_without_a_peer_connection_does_nothing() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    let hangup = json!({
        "janus": "hangup", "session_id": session, "handle_id": handle, "transaction": "h",
    });
    assert_eq!(
        client.ask(hangup).await,
        json!({ "janus": "success", "session_id": session, "transaction": "h" })
    );
    client.expect_silence().await;
}

#[tokio::test]
async fn candidates_are_acknowledged_before_there_is_a_peer_connection() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    let line = "candidate:1 1 udp 1 192.0.2.1 5000 typ host";
    for member in [
        json!({ "candidate": { "sdpMid": "0", "sdpMLineIndex": 0, "candidate": line } }),
        json!({ "candidate": { "completed": true } }),
        json!({ "candidate": null }),
        json!({ "candidates": [{ "sdpMid": "0", "candidate": line }, { "completed": true }] }),
        json!({ "candidates": ["nonsense"] }),
    ] {
        let mut trickle = json!({
            "janus": "trickle", "session_id": session, "handle_id": handle, "transaction": "t",
        });
        trickle
            .as_object_mut()
            .unwrap()
            .extend(member.as_object().unwrap().clone());
        assert_eq!(
            client.ask(trickle).await,
            json!({ "janus": "ack", "session_id": session, "transaction": "t" })
        );
    }
}

#[tokio::test]
async fn destroying_a_session_detaches_its_handles_silently() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    client.attach(session, PROBE).await;
    client.attach(session, PROBE).await;
    let destroy = json!({ "janus": "destroy", "session_id": session, "transaction": "d" });
    assert_eq!(client.ask(destroy).await["janus"], "success");
    client.expect_silence().await;
    assert_eq!(world.plugin.log(), ["detach", "detach"]);
    assert_eq!(world.gateway.counters().snapshot().handles, 0);
}

#[tokio::test(start_paused = true)]
async fn the_event_that_answers_a_request_comes_a_pause_after_the_ack() {
    let world = World::pausing(20);
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    let start = Instant::now();
    let ack = client.ask(message(session, handle, "answer later")).await;
    assert_eq!(
        (&ack["janus"], start.elapsed()),
        (&json!("ack"), Duration::ZERO)
    );
    // Another request is answered meanwhile, and its reply is none that anything waits behind.
    let done = client.ask(message(session, handle, "succeed")).await;
    assert_eq!(
        (&done["janus"], start.elapsed()),
        (&json!("success"), Duration::ZERO)
    );
    for number in [1, 2] {
        assert_eq!(client.next().await["plugindata"]["data"]["number"], number);
        assert_eq!(start.elapsed(), Duration::from_millis(20));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_is_told_before_the_handle_is_detached() {
    let world = World::pausing(20);
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    client.ask(message(session, handle, "answer later")).await;
    let detach = json!({
        "janus": "detach", "session_id": session, "handle_id": handle, "transaction": "d",
    });
    let first = client.ask(detach).await;
    assert_eq!(first["plugindata"]["data"]["number"], 1);
    assert_eq!(client.next().await["plugindata"]["data"]["number"], 2);
    assert_eq!(client.next().await["transaction"], "d");
    assert_eq!(client.next().await["janus"], "detached");
}
