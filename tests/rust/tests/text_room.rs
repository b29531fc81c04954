//! A text room, end to end: members with PeerConnections of data channels alone, on several
//! workers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_tests::{Caller, Peer, Server};
use portunus_textroom::{TextRoom, TextRoomConfig};
use serde_json::{Value, json};

const ROOM: u64 = 1234;
/// The channel that the server sends on.
const LABEL: &str = "JanusDataChannel";

async fn server(config: TextRoomConfig, options: Value) -> Server {
    let server = Server::start(2, Arc::new(TextRoom::new(config).unwrap()));
    let mut create = json!({ "request": "create", "room": ROOM });
    let members = options.as_object().unwrap().clone();
    create.as_object_mut().unwrap().extend(members);
    let mut caller = server.attach("janus.plugin.textroom").await;
    let created = caller.manage(create).await;
    assert_eq!(created["textroom"], "created", "{created}");
    server
}

/// A client with a connected PeerConnection.
struct Guest {
    caller: Caller,
    peer: Peer,
    /// The channel that it writes on.
    label: &'static str,
    /// All messages that have been read.
    heard: Vec<Value>,
}

/// Reads new messages.
fn read(peer: &Peer, heard: &mut Vec<Value>) {
    let texts = peer.texts(LABEL).into_iter().skip(heard.len());
    heard.extend(texts.map(|text| serde_json::from_str::<Value>(text).unwrap()));
}

impl Guest {
    async fn new(server: &Server, label: &'static str) -> Self {
        let mut caller = server.attach("janus.plugin.textroom").await;
        caller.message(json!({ "request": "setup" }), None).await;
        let mut guest = Guest {
            caller,
            peer: Peer::answering().await,
            label,
            heard: Vec::new(),
        };
        guest.answer().await;
        guest.peer.connect().await;
        guest.caller.until("/janus", "webrtcup").await;
        guest
    }

    /// Answers the next offer.
    async fn answer(&mut self) {
        let offer = self.caller.until("/plugindata/data/result", "ok").await;
        let answer = self.peer.answer(offer["jsep"]["sdp"].as_str().unwrap());
        let ack = json!({ "request": "ack" });
        self.caller.message(ack, Some(("answer", &answer))).await;
        self.caller.until("/plugindata/data/result", "ok").await;
    }

    /// Returns a client that has joined.
    async fn member(server: &Server, username: &str, label: &'static str) -> Self {
        let mut guest = Guest::new(server, label).await;
        let answer = guest.ask("join", json!({ "username": username })).await;
        assert_eq!(answer["textroom"], "success", "{answer}");
        guest
    }

    /// Writes a request without waiting for its answer.
    fn write(&mut self, name: &str, transaction: &str, members: Value) {
        let mut request = json!({ "textroom": name, "transaction": transaction, "room": ROOM });
        let members = members.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(members);
        self.peer.send_text(self.label, &request.to_string());
    }

    async fn ask(&mut self, name: &str, members: Value) -> Value {
        read(&self.peer, &mut self.heard);
        let transaction = format!("{name}-{}", self.heard.len());
        self.write(name, &transaction, members);
        self.until(|message| message["transaction"] == transaction.as_str())
            .await
    }

    /// Returns the texts of messages.
    fn said(&mut self) -> Vec<&str> {
        read(&self.peer, &mut self.heard);
        let said = self.heard.iter();
        let said = said.filter(|message| message["textroom"] == "message");
        said.map(|message| message["text"].as_str().unwrap())
            .collect()
    }

    /// Returns the last message for which `is_it` is true, once it has arrived.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let heard = &mut self.heard;
        let mut found = heard.iter().rposition(&is_it);
        self.peer
            .run_until(|peer| {
                let known = heard.len();
                read(peer, heard);
                let new = heard.iter().skip(known).position(&is_it);
                found = found.or(new.map(|place| known + place));
                found.is_some()
            })
            .await;
        self.heard[found.unwrap()].clone()
    }

    /// Waits until this number of such messages has arrived.
    async fn count(&mut self, is_it: impl Fn(&Value) -> bool, expected: usize) {
        let heard = &mut self.heard;
        let mut count = heard.iter().filter(|message| is_it(message)).count();
        self.peer
            .run_until(|peer| {
                let known = heard.len();
                read(peer, heard);
                count += heard.iter().skip(known).filter(|it| is_it(it)).count();
                count >= expected
            })
            .await;
    }

    async fn hears(&mut self, text: &str) -> Value {
        self.until(|message| message["text"] == text).await
    }
}

#[tokio::test]
async fn members_on_two_workers_write_to_each_other() {
    let server = server(TextRoomConfig::default(), json!({ "history": 5 })).await;
    // One opens the server's channel, the other one a channel of its own.
    let mut al = Guest::member(&server, "al", LABEL).await;
    let mut bo = Guest::member(&server, "bo", "mine").await;
    al.until(|message| message["textroom"] == "join" && message["username"] == "bo")
        .await;
    al.ask("message", json!({ "text": "hi" })).await;
    assert_eq!(bo.hears("hi").await["from"], "al");
    bo.ask("message", json!({ "text": "hello" })).await;
    assert_eq!(al.hears("hello").await["from"], "bo");
    let sent = bo
        .ask("message", json!({ "text": "psst", "to": "al" }))
        .await;
    assert_eq!(sent["sent"], json!({ "al": true }));
    assert_eq!(al.hears("psst").await["whisper"], true);
    // A message of several packets.
    let long = "ä".repeat(25_000);
    bo.ask("message", json!({ "text": long })).await;
    al.hears(&long).await;
    let mut cy = Guest::member(&server, "cy", LABEL).await;
    assert_eq!(cy.said(), ["hi", "hello", long.as_str()]);
    drop(bo.caller);
}

#[tokio::test]
async fn messages_go_on_over_a_restart_and_end_with_the_connection() {
    let server = server(TextRoomConfig::default(), json!({})).await;
    let mut al = Guest::member(&server, "al", LABEL).await;
    let mut bo = Guest::member(&server, "bo", LABEL).await;
    bo.caller
        .message(json!({ "request": "restart" }), None)
        .await;
    bo.answer().await;
    al.ask("message", json!({ "text": "hi" })).await;
    bo.hears("hi").await;
    bo.caller.request("hangup", json!({})).await;
    let left = al.until(|message| message["textroom"] == "leave").await;
    assert_eq!(left["username"], "bo");
}

#[tokio::test]
async fn a_flood_of_one_member_gets_errors_and_disturbs_nobody() {
    const FLOOD: usize = 3_000;
    let server = server(TextRoomConfig::default(), json!({})).await;
    let mut flooder = Guest::member(&server, "flooder", LABEL).await;
    let mut al = Guest::member(&server, "al", LABEL).await;
    let mut bo = Guest::member(&server, "bo", LABEL).await;
    for n in 0..FLOOD {
        flooder.write("message", "flood", json!({ "text": format!("flood {n}") }));
    }
    let flood = flooder.count(|message| message["transaction"] == "flood", FLOOD);
    let talk = async {
        for n in 0..20 {
            let text = format!("calm {n}");
            al.ask("message", json!({ "text": text })).await;
            bo.hears(&text).await;
        }
    };
    tokio::join!(flood, talk);
    let heard = flooder.heard.iter();
    let refused = heard.filter(|message| message["error_code"] == 499).count();
    assert!(refused > FLOOD / 2, "{refused} were refused");
    // All received the messages that passed.
    bo.count(|message| message["from"] == "flooder", FLOOD - refused)
        .await;
    assert_eq!(server.gateway.media_totals().messages_dropped, 0);
}

#[tokio::test]
async fn who_reads_nothing_misses_messages_and_holds_nobody_up() {
    // Somewhat more than can wait for a member.
    const MESSAGES: usize = 24;
    let config = TextRoomConfig {
        byte_rate: 0,
        ..TextRoomConfig::default()
    };
    let server = server(config, json!({})).await;
    let mut al = Guest::member(&server, "al", LABEL).await;
    let mut slow = Guest::member(&server, "slow", LABEL).await;
    let mut quick = Guest::member(&server, "quick", LABEL).await;
    for n in 0..MESSAGES {
        let text = format!("{n:>60000}");
        al.ask("message", json!({ "text": text })).await;
        quick.hears(&text).await;
    }
    let dropped = server.gateway.media_totals().messages_dropped;
    assert!(
        dropped > 0,
        "all of {MESSAGES} wait for a member who is asleep"
    );
    let expected = MESSAGES - usize::try_from(dropped).unwrap();
    slow.count(|message| message["from"] == "al", expected)
        .await;
    // It is still a member.
    slow.ask("message", json!({ "text": "awake" })).await;
    quick.hears("awake").await;
}
