use std::time::Duration;

use portunus_core::{Client, Credentials, Gateway, Requester};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{PROBE, World};

struct Http {
    gateway: Gateway,
    client: Client,
    session: u64,
    handle: u64,
}

impl Http {
    async fn new(world: &World) -> Self {
        let mut http = Http {
            gateway: world.gateway.clone(),
            client: Client::polled("janus.transport.http").on_behalf_of(Requester::unix()),
            session: 0,
            handle: 0,
        };
        let created = http
            .ask(json!({ "janus": "create", "transaction": "c" }))
            .await;
        http.session = created["data"]["id"].as_u64().unwrap();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": http.session, "plugin": PROBE,
        });
        http.handle = http.ask(attach).await["data"]["id"].as_u64().unwrap();
        http
    }

    async fn ask(&self, request: Value) -> Value {
        self.gateway
            .request(&self.client, request.to_string().as_bytes())
            .await
    }

    async fn message(&self) -> Value {
        let message = json!({
            "janus": "message", "transaction": "m", "session_id": self.session,
            "handle_id": self.handle, "body": { "do": "answer later" },
        });
        self.ask(message).await
    }

    async fn poll(&self, max: usize) -> Result<Vec<Value>, Value> {
        poll(self.gateway.clone(), self.session, max).await
    }
}

async fn poll(gateway: Gateway, session: u64, max: usize) -> Result<Vec<Value>, Value> {
    gateway
        .poll(
            session,
            Requester::unix(),
            Credentials::default(),
            max,
            Duration::from_secs(30),
        )
        .await
}

#[tokio::test(start_paused = true)]
async fn a_poll_gets_what_waits_or_a_keepalive() {
    let world = World::new();
    let http = Http::new(&world).await;
    assert_eq!(
        http.poll(1).await.unwrap(),
        [json!({ "janus": "keepalive" })]
    );
    for _ in 0..2 {
        assert_eq!(http.message().await["janus"], "ack");
    }
    let first = http.poll(1).await.unwrap();
    assert_eq!(first[0]["plugindata"]["data"]["number"], 1);
    let rest = http.poll(10).await.unwrap();
    assert_eq!(rest.len(), 3);
    assert_eq!(http.poll(0).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poll_gets_the_next_event_at_once() {
    let world = World::new();
    let http = Http::new(&world).await;
    let waiting = tokio::spawn(poll(world.gateway.clone(), http.session, 1));
    tokio::task::yield_now().await;
    let before = tokio::time::Instant::now();
    http.message().await;
    assert_eq!(waiting.await.unwrap().unwrap()[0]["transaction"], "m");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn polling_keeps_a_session_alive() {
    let world = World::new();
    let http = Http::new(&world).await;
    for _ in 0..5 {
        assert_eq!(
            http.poll(1).await.unwrap(),
            [json!({ "janus": "keepalive" })]
        );
    }
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert_eq!(http.poll(1).await.unwrap_err()["error"]["code"], 458);
}

#[tokio::test(start_paused = true)]
async fn a_newer_poll_relieves_the_older() {
    let world = World::new();
    let http = Http::new(&world).await;
    let older = tokio::spawn(poll(world.gateway.clone(), http.session, 1));
    tokio::task::yield_now().await;
    let newer = tokio::spawn(poll(world.gateway.clone(), http.session, 1));
    assert_eq!(
        older.await.unwrap().unwrap(),
        [json!({ "janus": "keepalive" })]
    );
    http.message().await;
    assert_eq!(newer.await.unwrap().unwrap()[0]["janus"], "event");
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_the_newest_events() {
    let world = World::new();
    let http = Http::new(&world).await;
    for _ in 0..300 {
        http.message().await;
    }
    let events = http.poll(1_000).await.unwrap();
    // For the session, and for its handle.
    assert_eq!(events.len(), 512 + 16);
    assert_eq!(events.last().unwrap()["plugindata"]["data"]["number"], 2);
    assert_eq!(world.gateway.counters().snapshot().events_dropped, 72);
}

#[tokio::test(start_paused = true)]
async fn a_session_claimed_from_http_pushes_its_events() {
    let world = World::new();
    let http = Http::new(&world).await;
    let waiting = tokio::spawn(poll(world.gateway.clone(), http.session, 1));
    tokio::task::yield_now().await;
    let mut websocket = world.connect();
    let claim = json!({ "janus": "claim", "transaction": "c", "session_id": http.session });
    assert_eq!(websocket.ask(claim).await["janus"], "success");
    assert_eq!(
        waiting.await.unwrap().unwrap(),
        [json!({ "janus": "keepalive" })]
    );
    http.message().await;
    assert_eq!(websocket.next().await["transaction"], "m");
}

#[tokio::test]
async fn a_detach_is_carried_out_even_if_the_client_does_not_wait_for_it() {
    let world = World::new();
    let http = Http::new(&world).await;
    let on_handle = |verb: &str, what: &str| {
        json!({
            "janus": verb, "transaction": "m", "session_id": http.session, "handle_id": http.handle,
            "body": { "do": what },
        })
    };
    // The handle is busy, and more requests wait for it than there is room for.
    for what in std::iter::once("wait").chain(["succeed"; 300]) {
        let (gateway, client) = (http.gateway.clone(), http.client.clone());
        let request = on_handle("message", what).to_string();
        tokio::spawn(async move { gateway.request(&client, request.as_bytes()).await });
        tokio::task::yield_now().await;
    }
    let detach = http.ask(on_handle("detach", ""));
    let gave_up = tokio::time::timeout(Duration::from_millis(50), detach).await;
    assert!(gave_up.is_err());
    world.plugin.release.notify_one();
    let detached = async {
        while !world.plugin.log().contains(&"detach".to_owned()) {
            tokio::task::yield_now().await;
        }
    };
    let detached = tokio::time::timeout(Duration::from_secs(10), detached).await;
    assert!(
        detached.is_ok(),
        "the handle lives on, and nobody can reach it"
    );
}

#[tokio::test(start_paused = true)]
async fn between_an_ack_and_a_poll_there_is_no_pause() {
    let world = World::pausing(1_000);
    let http = Http::new(&world).await;
    let start = Instant::now();
    http.message().await;
    assert_eq!(http.poll(10).await.unwrap().len(), 2);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_events_go_when_nothing_is_left_to_pay_for_more() {
    let world = World::with(portunus_core::CoreConfig {
        client_memory_mb: 1,
        ..portunus_core::CoreConfig::default()
    });
    let http = Http::new(&world).await;
    let held = || world.gateway.memory().totals().used;
    let before = held();
    for n in 0..30 {
        let transaction = format!("{n} {}", "x".repeat(100_000));
        let message = json!({
            "janus": "message", "transaction": transaction, "session_id": http.session,
            "handle_id": http.handle, "body": { "do": "answer later" },
        });
        assert_eq!(http.ask(message).await["janus"], "ack");
        assert!(held() <= 1 << 20);
    }
    let events = http.poll(100).await.unwrap();
    assert!((10..25).contains(&events.len()), "{}", events.len());
    let last = events
        .iter()
        .rev()
        .find_map(|it| it["transaction"].as_str());
    assert!(last.is_some_and(|last| last.starts_with("29 ")));
    assert_eq!(held(), before);
    let dropped = world.gateway.counters().snapshot().events_dropped;
    assert_eq!(dropped, 60 - events.len() as u64);
}
