//! The cost of a join to a large room: the time of the server, and the bytes to everybody else.
//!
//! `cargo run --release -p portunus-videoroom --example join_cost -- 500`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement ends by a panic"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_core::CoreConfig;
use portunus_core::media::Event;
use portunus_core::record::Recorder;
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

const PACKAGE: &str = "janus.plugin.videoroom";

fn main() {
    let people = std::env::args().nth(1);
    let people: u64 = people.map_or(500, |people| people.parse().expect("a number"));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().expect("a runtime");
    runtime.block_on(measure(people));
}

/// Fills a room half with publishers and half with other participants. Ten more join and publish.
async fn measure(people: u64) {
    let server = TestServer::with_media(CoreConfig::default(), async |media| {
        let plugin = VideoRoom::new(VideoRoomConfig::default(), media, Recorder::default())
            .expect("a plugin");
        vec![Arc::new(plugin) as _]
    });
    let server = server.await;
    let mut admin = server.attach(PACKAGE).await;
    let create = json!({ "request": "create", "room": 1, "publishers": 100_000 });
    admin.request(create).await;
    let mut others = Vec::new();
    for id in 1..=people {
        let (mut client, _) = join(&server, id).await;
        if id <= people / 2 {
            publish(&server, &mut client).await;
        }
        others.push(client);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    for client in &mut others {
        drain(client).await;
    }
    let (mut joins, mut news, mut bytes) = (Vec::new(), Vec::new(), 0);
    for id in people + 1..=people + 10 {
        let start = Instant::now();
        let (mut client, joined) = join(&server, id).await;
        joins.push((start.elapsed(), joined.to_string().len()));
        let start = Instant::now();
        publish(&server, &mut client).await;
        for other in &mut others {
            bytes += next_told(other).await.to_string().len();
        }
        news.push(start.elapsed());
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    joins.sort_unstable();
    news.sort_unstable();
    let (median, answer) = joins.get(joins.len() / 2).expect("ten joins");
    let told = news.get(news.len() / 2).expect("ten joins");
    let each = bytes / usize::try_from(people).expect("a small number") / 10;
    println!("room of {people}, half of whom publish");
    println!("join until answered:                {median:?} (an answer of {answer} bytes)");
    println!("publish until {people} others are told: {told:?}");
    println!("bytes for each of the others:       {each}");
}

async fn join(server: &TestServer, id: u64) -> (TestClient, Value) {
    let mut client = server.attach(PACKAGE).await;
    let join = json!({ "request": "join", "room": 1, "ptype": "publisher", "id": id });
    client.message(join, None).await;
    let joined = client.event().await;
    (client, joined)
}

/// Publishes audio and video. Returns when the media is up.
async fn publish(server: &TestServer, client: &mut TestClient) {
    let offer = jsep("offer", "join", &[Line::Audio, Line::Video]);
    client
        .message(json!({ "request": "publish" }), Some(offer))
        .await;
    let peer = *server.peers().last().expect("a PeerConnection");
    let srtp_profile = "SRTP_AEAD_AES_128_GCM";
    server.happen(peer, Event::Connected { srtp_profile }).await;
    while client.next().await.get("janus") != Some(&json!("webrtcup")) {}
}

/// Returns the next event about a publisher.
async fn next_told(client: &mut TestClient) -> Value {
    loop {
        let message = client.next().await;
        if message.pointer("/plugindata/data/publishers").is_some() {
            return message;
        }
    }
}

/// Takes all that has come.
async fn drain(client: &mut TestClient) {
    let soon = Duration::from_millis(1);
    while tokio::time::timeout(soon, client.next()).await.is_ok() {}
}
