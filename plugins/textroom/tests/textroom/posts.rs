//! Messages that are posted to HTTP back-ends, which answer late, badly or not at all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use portunus_core::Networks;
use portunus_textroom::{ConfiguredRoom, TextRoomConfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::world::{ROOM, World, code, timeless};

/// The answer of a back-end to the n-th message.
type Answer = fn(usize) -> Option<Response>;

#[derive(Clone)]
struct BackEnd {
    answer: Answer,
    count: Arc<AtomicUsize>,
    got: mpsc::UnboundedSender<Value>,
}

/// Starts a back-end with these answers. Returns its address, and the messages that it gets.
async fn back_end(answer: Answer) -> (SocketAddr, mpsc::UnboundedReceiver<Value>) {
    let (got, messages) = mpsc::unbounded_channel();
    let count = Arc::default();
    let state = BackEnd { answer, count, got };
    let router = Router::new().route("/chat", post(take)).with_state(state);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, messages)
}

async fn take(State(back_end): State<BackEnd>, headers: HeaderMap, body: String) -> Response {
    assert_eq!(headers["content-type"], "application/json");
    let _ = back_end.got.send(serde_json::from_str(&body).unwrap());
    let n = back_end.count.fetch_add(1, Ordering::SeqCst);
    match (back_end.answer)(n) {
        Some(answer) => answer,
        None => std::future::pending().await,
    }
}

async fn next(messages: &mut mpsc::UnboundedReceiver<Value>) -> Value {
    let next = timeout(Duration::from_secs(20), messages.recv()).await;
    next.expect("a message in time").expect("a back-end")
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/chat")
}

fn ok(_: usize) -> Option<Response> {
    Some(StatusCode::OK.into_response())
}

fn impatient() -> TextRoomConfig {
    TextRoomConfig {
        post_timeout: Duration::from_secs(1),
        post_retries: 1,
        ..TextRoomConfig::default()
    }
}

/// Returns a counter of the plugin.
fn counted(world: &World, name: &str) -> u64 {
    let mut counters = world.server.gateway.plugin_counters().into_iter();
    let found = counters.find(|(_, counter)| counter.name == name);
    found.unwrap().1.value
}

/// Waits until a counter has a value.
async fn until(world: &World, name: &str, value: u64) {
    let reached = async {
        while counted(world, name) < value {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let reached = timeout(Duration::from_secs(20), reached).await;
    reached.unwrap_or_else(|_| panic!("{name} is {}", counted(world, name)));
}

#[tokio::test]
async fn what_is_said_to_all_and_announced_is_posted_in_its_order() {
    let (address, mut posted) = back_end(ok).await;
    let world = World::new(json!({ "post": url(address) })).await;
    let mut al = world
        .member_with(json!({ "username": "al", "display": "Al" }))
        .await;
    al.say(&world, "one").await;
    al.ask(&world, "message", json!({ "text": "psst", "to": "al" }))
        .await;
    al.ask(&world, "announcement", json!({ "text": "two" }))
        .await;
    al.say(&world, "three").await;
    let said =
        |text: &str| json!({ "textroom": "message", "room": ROOM, "from": "al", "text": text });
    assert_eq!(timeless(next(&mut posted).await), said("one"));
    let announced = json!({ "textroom": "announcement", "room": ROOM, "text": "two" });
    assert_eq!(timeless(next(&mut posted).await), announced);
    assert_eq!(timeless(next(&mut posted).await), said("three"));
    until(&world, "posted", 3).await;
    assert_eq!(counted(&world, "posts_failed"), 0);
}

#[tokio::test]
async fn a_message_that_fails_is_posted_again_before_the_next() {
    let fails_first = |n: usize| {
        let status = match n {
            0 => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::OK,
        };
        Some(status.into_response())
    };
    let (address, mut posted) = back_end(fails_first).await;
    let world = World::new(json!({ "post": url(address) })).await;
    let mut al = world.member("al").await;
    al.say(&world, "one").await;
    al.say(&world, "two").await;
    for text in ["one", "one", "two"] {
        assert_eq!(next(&mut posted).await["text"], text);
    }
    until(&world, "posted", 2).await;
    assert_eq!(
        (
            counted(&world, "posts_failed"),
            counted(&world, "posts_lost")
        ),
        (1, 0)
    );
}

#[tokio::test]
async fn what_is_refused_or_redirected_is_not_posted_again() {
    let refuses = |n: usize| match n {
        0 => Some(StatusCode::FORBIDDEN.into_response()),
        1 => Some(Redirect::temporary("http://192.0.2.1/").into_response()),
        _ => ok(n),
    };
    let (address, mut posted) = back_end(refuses).await;
    let world = World::new(json!({ "post": url(address) })).await;
    let mut al = world.member("al").await;
    for text in ["one", "two", "three"] {
        al.say(&world, text).await;
        assert_eq!(next(&mut posted).await["text"], text);
    }
    until(&world, "posted", 1).await;
    assert_eq!(
        (
            counted(&world, "posts_failed"),
            counted(&world, "posts_lost")
        ),
        (2, 2)
    );
}

#[tokio::test]
async fn a_back_end_that_hangs_delays_nobody() {
    let (address, mut posted) = back_end(|_| None).await;
    let world = World::empty(impatient());
    world.create(json!({ "post": url(address) })).await;
    let mut al = world.member("al").await;
    let start = std::time::Instant::now();
    for n in 0..20 {
        assert_eq!(al.say(&world, &n.to_string()).await["textroom"], "success");
    }
    assert_eq!(next(&mut posted).await["text"], "0");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    // It is dropped after the second attempt, and the next one follows.
    assert_eq!(next(&mut posted).await["text"], "0");
    assert_eq!(next(&mut posted).await["text"], "1");
    assert_eq!(counted(&world, "posts_lost"), 1);
}

#[tokio::test]
async fn what_waits_for_a_back_end_is_bounded() {
    let (address, _posted) = back_end(|_| None).await;
    let world = World::new(json!({ "post": url(address) })).await;
    let mut client = world.attach().await;
    for n in 0..1_100 {
        let announce = json!({ "request": "announcement", "room": ROOM, "text": n.to_string() });
        client.request(announce).await;
    }
    // One is on its way.
    assert!((98..=100).contains(&counted(&world, "posts_lost")));
}

#[tokio::test]
async fn a_room_that_ends_posts_what_waits_without_trying_again() {
    let (address, mut posted) =
        back_end(|_| Some(StatusCode::INTERNAL_SERVER_ERROR.into_response())).await;
    let world = World::new(json!({ "post": url(address) })).await;
    let mut al = world.member("al").await;
    for text in ["one", "two"] {
        al.say(&world, text).await;
    }
    al.ask(&world, "destroy", json!({})).await;
    until(&world, "posts_lost", 2).await;
    let mut texts = Vec::new();
    while let Ok(message) = posted.try_recv() {
        texts.push(message["text"].clone());
    }
    texts.dedup();
    assert_eq!(texts, ["one", "two"]);
    assert!(counted(&world, "posts_failed") <= 3);
}

#[tokio::test]
async fn requests_reach_only_where_the_server_may_send() {
    let (address, mut posted) = back_end(ok).await;
    // Without networks: public addresses only.
    let world = World::exactly(impatient());
    let mut client = world.attach().await;
    for host in [
        "127.0.0.1",
        "[::1]",
        "10.0.0.1",
        "[::ffff:127.0.0.1]",
        "0x7f000001",
    ] {
        let create = json!({ "request": "create", "room": 5, "post": format!("http://{host}/") });
        let refused = client.request(create).await;
        assert_eq!(code(&refused), 419, "{host}");
        let text = refused["error"].as_str().unwrap();
        assert!(text.contains("outgoing_networks"), "{text}");
    }
    // A name is resolved for each post, and its present address is checked.
    let by_name = format!("http://localhost:{}/chat", address.port());
    world.create(json!({ "post": by_name })).await;
    let announce = json!({ "request": "announcement", "room": ROOM, "text": "x" });
    client.request(announce.clone()).await;
    until(&world, "posts_lost", 1).await;
    assert!(posted.try_recv().is_err());

    // The configured networks are permitted, and so are the back-ends of the configuration.
    let outgoing = Networks(vec!["127.0.0.0/8".parse().unwrap()]);
    let networks = World::exactly(TextRoomConfig {
        outgoing,
        ..impatient()
    });
    networks.create(json!({ "post": by_name })).await;
    networks.attach().await.request(announce.clone()).await;
    assert_eq!(next(&mut posted).await["text"], "x");

    let room = json!({ "room": ROOM, "post": url(address) });
    let configured = World::exactly(TextRoomConfig {
        rooms: vec![ConfiguredRoom::read(room.as_object().unwrap(), false).unwrap()],
        ..impatient()
    });
    configured.attach().await.request(announce.clone()).await;
    assert_eq!(next(&mut posted).await["text"], "x");
    // It may be moved by a request, but not where requests may not.
    let edit = json!({ "request": "edit", "room": ROOM, "new_post": "http://127.0.0.1:9/" });
    assert_eq!(code(&configured.attach().await.request(edit).await), 419);
    configured.attach().await.request(announce).await;
    assert_eq!(next(&mut posted).await["text"], "x");
}

#[tokio::test]
async fn a_back_end_can_be_changed() {
    let (one, mut first) = back_end(ok).await;
    let (two, mut second) = back_end(ok).await;
    let world = World::new(json!({})).await;
    let mut al = world.member("al").await;
    al.say(&world, "nowhere").await;
    for (address, text) in [(one, "one"), (two, "two")] {
        let (answer, _) = al
            .ask(&world, "edit", json!({ "new_post": url(address) }))
            .await;
        assert_eq!(answer["textroom"], "success", "{answer}");
        al.say(&world, text).await;
    }
    assert_eq!(next(&mut first).await["text"], "one");
    assert_eq!(next(&mut second).await["text"], "two");
    assert!(first.try_recv().is_err());
}
