#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::sync::Mutex;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use livekit_protocol::Room;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;

/// A backend that refuses the first requests.
struct Backend {
    refusals: AtomicI32,
    got: mpsc::Sender<(HeaderMap, String)>,
    seen: Mutex<usize>,
}

async fn take(State(backend): State<Arc<Backend>>, headers: HeaderMap, body: String) -> StatusCode {
    *backend.seen.lock().unwrap() += 1;
    if backend.refusals.fetch_sub(1, Ordering::Relaxed) > 0 {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    backend.got.send((headers, body)).await.unwrap();
    StatusCode::OK
}

fn keys() -> Keys {
    Keys::new([("devkey".to_owned(), "secret".into())])
}

async fn backend(refusals: i32) -> (Webhooks, mpsc::Receiver<(HeaderMap, String)>, Arc<Backend>) {
    let (got, events) = mpsc::channel(MAX_WAITING * 2);
    let backend = Arc::new(Backend {
        refusals: AtomicI32::new(refusals),
        got,
        seen: Mutex::default(),
    });
    let router = Router::new()
        .route("/hook", post(take))
        .with_state(backend.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = WebhookConfig {
        urls: vec![url],
        api_key: "devkey".to_owned(),
    };
    let webhooks = Webhooks::default();
    webhooks.configure(&config, &keys()).unwrap();
    (webhooks, events, backend)
}

fn started(name: &str) -> Happening {
    Happening::RoomStarted(Room {
        name: name.to_owned(),
        ..Room::default()
    })
}

async fn next(events: &mut mpsc::Receiver<(HeaderMap, String)>) -> (HeaderMap, WebhookEvent) {
    let next = timeout(Duration::from_secs(10), events.recv()).await;
    let (headers, body) = next.unwrap().unwrap();
    (headers, serde_json::from_str(&body).unwrap())
}

#[tokio::test]
async fn an_event_is_signed_and_posted_again_until_it_is_taken() {
    let (webhooks, mut events, backend) = backend(1).await;
    webhooks.send(started("den"));
    webhooks.send(started("attic"));
    let (headers, event) = next(&mut events).await;
    assert_eq!(event.event, "room_started");
    assert_eq!(event.room.unwrap().name, "den");
    assert!(event.id.starts_with("EV_"));
    assert_eq!(headers[CONTENT_TYPE], JSON);
    let token = headers[AUTHORIZATION].to_str().unwrap();
    assert!(
        !keys()
            .verify(token, now())
            .unwrap()
            .grants
            .sha256
            .is_empty()
    );
    let (_, event) = next(&mut events).await;
    assert_eq!(event.room.unwrap().name, "attic");
    assert_eq!(*backend.seen.lock().unwrap(), 3);
}

#[tokio::test]
async fn a_full_queue_drops_events_and_says_how_many() {
    let (webhooks, mut events, _) = backend(0).await;
    // Nobody takes events before this task waits.
    for _ in 0..MAX_WAITING + 3 {
        webhooks.send(started("den"));
    }
    let mut dropped = 0;
    for _ in 0..MAX_WAITING {
        dropped += next(&mut events).await.1.num_dropped;
    }
    assert_eq!(dropped, 3);
}

#[tokio::test]
async fn without_urls_nothing_is_made() {
    let webhooks = Webhooks::default();
    assert!(!webhooks.is_used());
    webhooks.send(started("den"));
}
