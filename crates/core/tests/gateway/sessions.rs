use std::time::Duration;

use portunus_core::CoreConfig;
use serde_json::json;
use tokio::time::sleep;

use crate::world::{PROBE, World};

#[tokio::test]
async fn creates_keeps_alive_and_destroys() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    assert!(session > 0 && session < 1 << 53);
    assert_eq!(
        client
            .ask(json!({ "janus": "keepalive", "session_id": session, "transaction": "k" }))
            .await,
        json!({ "janus": "ack", "session_id": session, "transaction": "k" })
    );
    assert_eq!(
        client
            .ask(json!({ "janus": "destroy", "session_id": session, "transaction": "d" }))
            .await,
        json!({ "janus": "success", "session_id": session, "transaction": "d" })
    );
    let gone =
        client.ask(json!({ "janus": "keepalive", "session_id": session, "transaction": "k" }));
    assert_eq!(gone.await["error"]["code"], 458);
    assert_eq!(world.gateway.counters().snapshot().sessions, 0);
}

#[tokio::test]
async fn a_client_may_choose_a_free_id() {
    let world = World::new();
    let mut client = world.connect();
    let create = json!({ "janus": "create", "transaction": "c", "id": 4711 });
    assert_eq!(client.ask(create.clone()).await["data"]["id"], 4711);
    let taken = client.ask(create).await;
    assert_eq!(
        taken["error"],
        json!({ "code": 468, "reason": "Session ID already in use" })
    );
}

#[tokio::test]
async fn ids_are_strings_if_so_configured() {
    let world = World::with(CoreConfig {
        string_ids: true,
        ..CoreConfig::default()
    });
    let mut client = world.connect();
    let create = json!({ "janus": "create", "transaction": "c", "id": "4711" });
    assert_eq!(client.ask(create).await["data"]["id"], "4711");
    let attach = json!({
        "janus": "attach", "transaction": "a", "session_id": "4711", "plugin": "janus.plugin.probe",
    });
    let attached = client.ask(attach).await;
    assert_eq!(attached["session_id"], "4711");
    let handle = attached["data"]["id"].as_str().unwrap().to_owned();
    let message = json!({
        "janus": "message", "transaction": "m", "session_id": "4711", "handle_id": handle,
        "body": { "do": "answer later" },
    });
    assert_eq!(client.ask(message).await["session_id"], "4711");
    let event = client.next().await;
    assert_eq!(event["session_id"], "4711");
    assert_eq!(event["sender"], json!(handle));
    assert_eq!(client.next().await["session_id"], "4711");
    let error = client.ask(json!({ "janus": "attach", "transaction": "a", "session_id": "12" }));
    assert_eq!(error.await["session_id"], "12");
}

#[tokio::test(start_paused = true)]
async fn a_silent_session_times_out() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    client.attach(session, PROBE).await;
    sleep(Duration::from_secs(55)).await;
    let keepalive = json!({ "janus": "keepalive", "session_id": session, "transaction": "k" });
    assert_eq!(client.ask(keepalive.clone()).await["janus"], "ack");
    sleep(Duration::from_secs(55)).await;
    client.expect_silence().await;
    sleep(Duration::from_secs(7)).await;
    assert_eq!(
        client.next().await,
        json!({ "janus": "timeout", "session_id": session })
    );
    client.expect_silence().await;
    assert_eq!(client.ask(keepalive).await["error"]["code"], 458);
    assert_eq!(world.plugin.log(), ["detach"]);
    assert_eq!(world.gateway.counters().snapshot().sessions_timed_out, 1);
}

#[tokio::test(start_paused = true)]
async fn sessions_last_for_ever_without_a_timeout() {
    let world = World::with(CoreConfig {
        session_timeout: 0,
        ..CoreConfig::default()
    });
    let mut client = world.connect();
    client.create().await;
    sleep(Duration::from_secs(100_000)).await;
    client.expect_silence().await;
}

#[tokio::test]
async fn a_session_ends_with_its_connection() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    world.gateway.client_gone(&client.client);
    let mut other = world.connect();
    let claim = json!({ "janus": "claim", "session_id": session, "transaction": "c" });
    assert_eq!(other.ask(claim).await["error"]["code"], 458);
}

#[tokio::test(start_paused = true)]
async fn a_session_can_be_claimed_by_another_connection() {
    let config = CoreConfig {
        reclaim_session_timeout: 10,
        ..CoreConfig::default()
    };
    let world = World::with(config);
    let mut old = world.connect();
    let session = old.create().await;
    let handle = old.attach(session, PROBE).await;
    world.gateway.client_gone(&old.client);
    sleep(Duration::from_secs(8)).await;

    let mut new = world.connect();
    let claim = json!({ "janus": "claim", "session_id": session, "transaction": "c" });
    let success = json!({ "janus": "success", "session_id": session, "transaction": "c" });
    assert_eq!(new.ask(claim.clone()).await, success);
    assert_eq!(new.ask(claim).await, success);
    let message = json!({
        "janus": "message", "session_id": session, "handle_id": handle, "transaction": "m",
        "body": { "do": "answer later" },
    });
    assert_eq!(new.ask(message).await["janus"], "ack");
    assert_eq!(new.next().await["plugindata"]["data"]["number"], 1);

    sleep(Duration::from_secs(20)).await;
    assert_eq!(new.next().await["plugindata"]["data"]["number"], 2);
    new.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_asks_for_it_outlives_its_connection_and_keeps_its_events() {
    let world = World::new();
    let mut old = world.connect();
    let create = json!({ "janus": "create", "transaction": "n", "reclaim_session_timeout": 40 });
    let session = old.ask(create).await["data"]["id"].as_u64().unwrap();
    let handle = old.attach(session, PROBE).await;
    let message = json!({
        "janus": "message", "session_id": session, "handle_id": handle, "transaction": "m",
        "body": { "do": "answer later" },
    });
    world.gateway.client_gone(&old.client);
    sleep(Duration::from_secs(20)).await;
    // Everybody who knows the ids may send. The answers wait for the client that claims the session.
    assert_eq!(world.connect().ask(message).await["janus"], "ack");
    sleep(Duration::from_secs(10)).await;

    let mut new = world.connect();
    let claim = json!({ "janus": "claim", "session_id": session, "transaction": "c" });
    let missed = new.ask(claim.clone()).await;
    assert_eq!(missed["plugindata"]["data"]["number"], 1);
    assert_eq!(new.next().await["plugindata"]["data"]["number"], 2);
    assert_eq!(new.next().await["janus"], "success");
    world.gateway.client_gone(&new.client);
    sleep(Duration::from_secs(42)).await;
    assert_eq!(world.connect().ask(claim).await["error"]["code"], 458);
}

#[tokio::test(start_paused = true)]
async fn an_unclaimed_session_ends() {
    let config = CoreConfig {
        reclaim_session_timeout: 10,
        ..CoreConfig::default()
    };
    let world = World::with(config);
    let mut old = world.connect();
    let session = old.create().await;
    world.gateway.client_gone(&old.client);
    sleep(Duration::from_secs(12)).await;
    let claim = json!({ "janus": "claim", "session_id": session, "transaction": "c" });
    assert_eq!(world.connect().ask(claim).await["error"]["code"], 458);
}

#[tokio::test]
async fn the_former_owner_of_a_claimed_session_gets_nothing_more() {
    let world = World::new();
    let (mut old, mut new) = (world.connect(), world.connect());
    let session = old.create().await;
    let handle = old.attach(session, PROBE).await;
    new.ask(json!({ "janus": "claim", "session_id": session, "transaction": "c" }))
        .await;
    // Any client that knows the ids may send requests; the events go to the owner.
    let message = json!({
        "janus": "message", "session_id": session, "handle_id": handle, "transaction": "m",
        "body": { "do": "answer later" },
    });
    assert_eq!(old.ask(message).await["janus"], "ack");
    assert_eq!(new.next().await["plugindata"]["data"]["number"], 1);
    old.expect_silence().await;
    // Its connection may end without harm.
    world.gateway.client_gone(&old.client);
    let keepalive = json!({ "janus": "keepalive", "session_id": session, "transaction": "k" });
    assert_eq!(new.next().await["plugindata"]["data"]["number"], 2);
    assert_eq!(new.ask(keepalive).await["janus"], "ack");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    let message = json!({
        "janus": "message", "session_id": session, "handle_id": handle, "transaction": "m",
        "body": { "do": "answer later" },
    });
    for _ in 0..400 {
        world
            .gateway
            .submit(&client.client, message.to_string().as_bytes())
            .await;
    }
    let mut received = 0;
    while client.try_next().await.is_some() {
        received += 1;
    }
    let room = portunus_core::OUTBOX + portunus_core::OUTBOX_OF_HANDLE;
    assert_eq!(received, room);
    assert!(world.gateway.counters().snapshot().events_dropped > 0);
}
