//! A blocked media worker is named, and the server reports that it is not healthy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use portunus_echotest::EchoTest;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Peer, Server, http, serve};
use serde_json::json;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Blocks the thread that logs a refused candidate, as long as it is shut.
#[derive(Clone, Default)]
struct Trap(Arc<(Mutex<bool>, Condvar)>);

impl Trap {
    fn open(&self) {
        let (is_open, changed) = &*self.0;
        *is_open.lock().unwrap() = true;
        changed.notify_all();
    }
}

impl<S: Subscriber> Layer<S> for Trap {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let is_refused = event.metadata().fields().field("candidate").is_some();
        if is_refused && event.metadata().target().starts_with("portunus_media") {
            let (is_open, changed) = &*self.0;
            let is_open = is_open.lock().unwrap();
            drop(changed.wait_while(is_open, |is_open| !*is_open).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_worker_is_named_until_it_moves_again() {
    let trap = Trap::default();
    tracing_subscriber::registry().with(trap.clone()).init();
    let server = Server::start(1, Arc::new(EchoTest));
    let (_transports, address) = serve(&server.gateway).await;
    let livez = async || http(address, "GET /livez", &[], b"").await;
    let mut caller = server.attach("janus.plugin.echotest").await;
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    let mut peer = Peer::offering().await;
    let offer = peer.offer(Description::offer(OfferOptions {
        media: vec![audio],
        ..Default::default()
    }));
    caller
        .message(json!({ "audio": true }), Some(("offer", &offer)))
        .await;
    assert_eq!(livez().await.0, 200);
    let candidate = json!({ "candidate": "candidate:nonsense", "sdpMid": "0", "sdpMLineIndex": 0 });
    caller
        .request("trickle", json!({ "candidate": candidate }))
        .await;
    let told = loop {
        match livez().await {
            (503, told) => break told,
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    assert!(
        told.contains("media worker 0 has been stuck for 5 s"),
        "{told}"
    );
    let ready = http(address, "GET /readyz", &[], b"").await;
    assert!(
        ready.0 == 503 && ready.1.contains("media worker 0"),
        "{ready:?}"
    );
    trap.open();
    while livez().await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
