//! Clients of text rooms, by HTTP and with data channels of real PeerConnections.

use std::time::{Duration, Instant};

use portunus_tests::Peer;
use serde_json::{Value, json};

use crate::server::{PATIENCE, attach_to, get, post};

const PACKAGE: &str = "janus.plugin.textroom";
const LABEL: &str = "JanusDataChannel";

/// A client of text rooms.
pub struct Writer {
    pub handle: String,
    pub peer: Peer,
    /// The number of messages that it has looked at.
    read: usize,
    transactions: u32,
}

fn send(handle: &str, body: Value, answer: Option<&str>) {
    let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
    if let Some(sdp) = answer {
        message["jsep"] = json!({ "type": "answer", "sdp": sdp });
    }
    let reply = post(handle, &message);
    assert_eq!(reply["janus"], "ack", "{reply}");
}

impl Writer {
    /// A client that is connected.
    pub async fn new(api: &str) -> Self {
        let handle = attach_to(api, PACKAGE);
        let session = handle.rsplit_once('/').unwrap().0;
        send(&handle, json!({ "request": "setup" }), None);
        let begin = Instant::now();
        let offer = loop {
            assert!(begin.elapsed() < PATIENCE, "no offer");
            let event: Value = serde_json::from_str(&get(session)).unwrap();
            if let Some(sdp) = event["jsep"]["sdp"].as_str() {
                break sdp.to_owned();
            }
        };
        let mut peer = Peer::answering().await;
        let answer = peer.answer(&offer);
        send(&handle, json!({ "request": "ack" }), Some(&answer));
        peer.connect().await;
        Writer {
            handle,
            peer,
            read: 0,
            transactions: 0,
        }
    }

    /// A member of a room.
    pub async fn member(api: &str, room: u64, username: &str) -> Self {
        let mut writer = Writer::new(api).await;
        let joined = writer
            .ask("join", json!({ "room": room, "username": username }))
            .await;
        assert_eq!(joined["textroom"], "success", "{joined}");
        writer
    }

    fn texts(&self) -> Vec<Value> {
        let texts = self.peer.texts(LABEL).into_iter();
        let texts = texts.map(|text| serde_json::from_str(text).unwrap());
        texts.collect()
    }

    /// Sends a request, and returns its answer.
    pub async fn ask(&mut self, request: &str, mut members: Value) -> Value {
        self.transactions += 1;
        let transaction = format!("t{}", self.transactions);
        members["textroom"] = request.into();
        members["transaction"] = transaction.as_str().into();
        self.peer.send_text(LABEL, &members.to_string());
        let begin = Instant::now();
        loop {
            let mut texts = self.texts().into_iter();
            if let Some(answer) = texts.find(|text| text["transaction"] == transaction.as_str()) {
                return answer;
            }
            assert!(begin.elapsed() < PATIENCE, "no answer to {members}");
            self.peer.run_for(Duration::from_millis(10)).await;
        }
    }

    /// Waits for a message that is none of those that it has waited for.
    pub async fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let texts = self.texts();
            for (index, text) in texts.iter().enumerate().skip(self.read) {
                if holds(text) {
                    self.read = index + 1;
                    return text.clone();
                }
            }
            assert!(begin.elapsed() < PATIENCE, "{texts:#?}");
            self.peer.run_for(Duration::from_millis(10)).await;
        }
    }

    /// Returns whether such a message has come.
    pub fn has(&self, holds: impl Fn(&Value) -> bool) -> bool {
        self.texts().iter().any(holds)
    }
}
