//! Calls of the echo test with a program that runs: by HTTP, with real PeerConnections.
#![allow(dead_code, reason = "each test uses some of it")]

use std::time::Duration;

use futures_util::future::join_all;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::server::{PATIENCE, attach_to, get, post};

/// How long a waiting call answers, and how long it rests then.
const ANSWERS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(400));

/// A call.
pub struct Call {
    /// Where its handle is.
    pub handle: String,
    pub peer: Peer,
}

fn session(handle: &str) -> &str {
    handle.rsplit_once('/').unwrap().0
}

/// The next event of a session.
fn poll(session: &str) -> Value {
    let answer = get(session);
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

impl Call {
    /// A call that is connected.
    pub async fn start(api: &str) -> Self {
        let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
        audio.add_codec(CodecName::Opus, None, None);
        let offer = Description::offer(OfferOptions {
            media: vec![audio],
            ..Default::default()
        });
        let mut peer = Peer::offering().await;
        let offer = peer.offer(offer);
        let handle = attach_to(api, "janus.plugin.echotest");
        let message = json!({
            "janus": "message", "transaction": "m", "body": { "audio": true },
            "jsep": { "type": "offer", "sdp": offer },
        });
        assert_eq!(post(&handle, &message)["janus"], "ack");
        let answer = loop {
            let event = poll(session(&handle));
            if let Some(sdp) = event["jsep"]["sdp"].as_str() {
                break sdp.to_owned();
            }
        };
        peer.accept(&answer);
        peer.connect().await;
        Call { handle, peer }
    }

    /// Whether what it sends comes back.
    pub async fn echoes(&mut self, timestamp: u32) {
        let before = self.peer.packets.len();
        for n in 0..5 {
            self.peer.send(0, timestamp + n * 960, &[7; 20]).await;
        }
        self.peer
            .run_until(|peer| peer.packets.len() >= before + 5)
            .await;
    }

    /// The names of the events of its end, as a client fetches them that polls all the time.
    pub fn last_events(&self) -> JoinHandle<Vec<String>> {
        let session = session(&self.handle).to_owned();
        tokio::task::spawn_blocking(move || {
            let mut names = Vec::new();
            loop {
                let name = poll(&session)["janus"]
                    .as_str()
                    .unwrap_or("none")
                    .to_owned();
                let is_last = name == "timeout" || name == "error";
                if !["event", "webrtcup", "media", "keepalive", "slowlink"].contains(&name.as_str())
                {
                    names.push(name);
                }
                if is_last {
                    return names;
                }
            }
        })
    }

    pub fn hang_up(&self) {
        post(
            &self.handle,
            &json!({ "janus": "hangup", "transaction": "h" }),
        );
    }
}

/// Many calls. Each answers the server's checks while others come.
pub async fn call_many(api: &str, count: usize) -> Vec<Call> {
    let (done, is_done) = watch::channel(false);
    let mut waiting = Vec::new();
    for _ in 0..count {
        let mut call = Call::start(api).await;
        let is_done = is_done.clone();
        waiting.push(tokio::spawn(async move {
            while !*is_done.borrow() {
                call.peer.run_for(ANSWERS.0).await;
                tokio::time::sleep(ANSWERS.1).await;
            }
            call
        }));
    }
    done.send_replace(true);
    let calls = join_all(waiting).await.into_iter();
    calls.map(|call| call.unwrap()).collect()
}

/// Lets media flow in all of them; fails if one has ended.
pub async fn run_all(calls: &mut [Call]) {
    let echoes = calls.iter_mut().map(|call| call.echoes(960));
    let in_time = tokio::time::timeout(PATIENCE, join_all(echoes)).await;
    in_time.expect("media of every call");
}
