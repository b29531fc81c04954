//! Rooms of a cluster of two nodes, whose messages go from one to the other without a network.

use portunus_textroom::TextRooms;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::world::{Guest, World, code, timeless};

/// The names of the nodes.
const NAMES: [&str; 2] = ["a", "b"];

/// Two nodes.
struct Pair {
    worlds: [World; 2],
    rooms: [TextRooms; 2],
    /// The ways between them.
    ways: Vec<JoinHandle<()>>,
}

impl Pair {
    fn new() -> Self {
        let rooms = [TextRooms::default(), TextRooms::default()];
        let worlds = [0, 1].map(|node| World::of_cluster(rooms[node].clone()));
        for (rooms, name) in rooms.iter().zip(NAMES) {
            assert!(rooms.begin(name).is_some());
        }
        let mut pair = Pair {
            worlds,
            rooms,
            ways: Vec::new(),
        };
        pair.connect();
        pair
    }

    /// Connects the nodes.
    fn connect(&mut self) {
        for (from, to) in [(0, 1), (1, 0)] {
            self.rooms[to].resumed(NAMES[from]);
            let (source, sink) = (self.rooms[from].clone(), self.rooms[to].clone());
            self.ways.push(tokio::spawn(async move {
                loop {
                    let (node, message) = source.next_message().await;
                    assert_eq!(node, NAMES[to]);
                    sink.take(NAMES[from], &message);
                }
            }));
        }
    }

    /// Disconnects them for so long that each takes the other one for dead.
    fn disconnect(&mut self) {
        for way in self.ways.drain(..) {
            way.abort();
        }
        for (from, to) in [(0, 1), (1, 0)] {
            self.rooms[to].lost(NAMES[from]);
        }
    }

    /// Each node tells the other one its rooms.
    async fn share(&mut self) {
        for rooms in &self.rooms {
            rooms.look();
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Makes the room at the first node.
    async fn create(&mut self, options: Value) {
        self.worlds[0].create(options).await;
        self.share().await;
    }

    async fn member(&self, node: usize, username: &str, pin: &str) -> Guest {
        let mut guest = self.worlds[node].guest().await;
        let join = json!({ "username": username, "pin": pin });
        let answer = guest.join(&self.worlds[node], join).await;
        assert_eq!(answer["textroom"], "success", "{answer}");
        guest
    }
}

fn event(what: &str, username: &str) -> Value {
    json!({ "textroom": what, "room": 1234, "username": username })
}

/// Reads that two members have come or are gone, in any order.
async fn for_all(guest: &mut Guest, world: &World, what: &str) {
    let mut names = Vec::new();
    for _ in 0..2 {
        let event = guest.next(world).await;
        assert_eq!(event["textroom"], what, "{event}");
        names.push(event["username"].as_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["bo", "cy"]);
}

#[tokio::test]
async fn a_guest_of_another_node_is_a_member_like_any_other() {
    let mut pair = Pair::new();
    let options = json!({ "pin": "4321", "secret": "s3cret", "history": 2, "description": "Hall" });
    pair.create(options).await;
    let mut al = pair.member(0, "al", "4321").await;
    al.say(&pair.worlds[0], "before").await;
    al.skip(&pair.worlds[0]).await;
    let there = &pair.worlds[1];
    let mut bo = there.guest().await;
    let wrong = json!({ "username": "bo", "pin": "0000" });
    assert_eq!(code(&bo.join(there, wrong).await), 419);
    let taken = json!({ "username": "al", "pin": "4321" });
    assert_eq!(code(&bo.join(there, taken).await), 420);
    let join = json!({ "username": "bo", "pin": "4321" });
    let (answer, before) = bo.ask(there, "join", join).await;
    assert_eq!(answer["participants"], json!([{ "username": "al" }]));
    let texts: Vec<&Value> = before.iter().map(|it| &it["textroom"]).collect();
    assert_eq!(texts, ["message", "join"], "the history, and its own join");
    assert_eq!(al.next(&pair.worlds[0]).await, event("join", "bo"));
    let state = there.state(&bo.client).await;
    assert_eq!(state["rooms"], json!([{ "room": 1234, "username": "bo" }]));

    // It is answered after its own message, as everywhere.
    let (answer, before) = bo.ask(there, "message", json!({ "text": "hi" })).await;
    assert_eq!(answer["textroom"], "success");
    let said = json!({ "textroom": "message", "room": 1234, "from": "bo", "text": "hi" });
    assert_eq!(before.len(), 1);
    assert_eq!(timeless(before[0].clone()), said);
    assert_eq!(timeless(al.next(&pair.worlds[0]).await), said);
    let whisper = json!({ "text": "psst", "tos": ["bo", "cy"] });
    let (answer, _) = al.ask(&pair.worlds[0], "message", whisper).await;
    assert_eq!(answer["sent"], json!({ "bo": true, "cy": false }));
    assert_eq!(bo.next(there).await["text"], "psst");

    // A moderator there, by the API and by a data channel.
    let mut moderator = there.attach().await;
    let list = moderator.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["description"], "Hall", "{list}");
    let people = json!({ "request": "listparticipants", "room": 1234 });
    let people = moderator.request(people).await;
    assert_eq!(people["participants"].as_array().unwrap().len(), 2);
    let create = json!({ "request": "create", "room": 1234 });
    assert_eq!(code(&moderator.request(create).await), 418);
    let kick = json!({ "request": "kick", "room": 1234, "username": "al", "secret": "no" });
    assert_eq!(code(&moderator.request(kick).await), 419);
    let (answer, _) = bo
        .ask(
            there,
            "kick",
            json!({ "username": "al", "secret": "s3cret" }),
        )
        .await;
    assert_eq!(answer["textroom"], "success");
    al.skip(&pair.worlds[0]).await;
    assert_eq!(code(&al.say(&pair.worlds[0], "?").await), 422);
    let destroy = json!({ "request": "destroy", "room": 1234, "secret": "s3cret" });
    let answer = moderator.request(destroy).await;
    assert_eq!(answer["textroom"], "destroyed", "{answer}");
    let destroyed = json!({ "textroom": "destroyed", "room": 1234 });
    assert_eq!(bo.next(there).await, destroyed);
    pair.share().await;
    let (answer, _) = bo
        .ask(&pair.worlds[1], "message", json!({ "text": "?" }))
        .await;
    assert_eq!(code(&answer), 417);
}

#[tokio::test]
async fn who_is_gone_at_one_node_leaves_at_the_other_one() {
    let mut pair = Pair::new();
    pair.create(json!({})).await;
    let mut al = pair.member(0, "al", "").await;
    let mut bo = pair.member(1, "bo", "").await;
    al.skip(&pair.worlds[0]).await;
    bo.client.on_handle("detach", json!({})).await;
    assert_eq!(al.next(&pair.worlds[0]).await, event("leave", "bo"));
    let mut cy = pair.member(1, "cy", "").await;
    cy.skip(&pair.worlds[1]).await;
    al.client.on_handle("detach", json!({})).await;
    assert_eq!(cy.next(&pair.worlds[1]).await, event("leave", "al"));
}

#[tokio::test]
async fn a_room_goes_on_without_its_home_and_is_one_room_again_later() {
    let mut pair = Pair::new();
    pair.create(json!({ "pin": "4321", "history": 5 })).await;
    let mut al = pair.member(0, "al", "4321").await;
    let mut bo = pair.member(1, "bo", "4321").await;
    let mut cy = pair.member(1, "cy", "4321").await;
    let here = &pair.worlds[0];
    al.say(here, "of the home").await;
    bo.say(&pair.worlds[1], "of the other node").await;
    for (guest, node) in [(&mut al, 0), (&mut bo, 1), (&mut cy, 1)] {
        guest.skip(&pair.worlds[node]).await;
    }
    pair.disconnect();
    // Each side loses those of the other one, and keeps its own.
    for_all(&mut al, &pair.worlds[0], "leave").await;
    assert_eq!(bo.next(&pair.worlds[1]).await, event("leave", "al"));
    assert_eq!(cy.next(&pair.worlds[1]).await, event("leave", "al"));
    let answer = bo.say(&pair.worlds[1], "just us").await;
    assert_eq!(answer["textroom"], "success", "{answer}");
    assert_eq!(cy.next(&pair.worlds[1]).await["text"], "just us");
    let mut dan = pair.worlds[1].guest().await;
    let wrong = json!({ "username": "dan", "pin": "0000" });
    assert_eq!(code(&dan.join(&pair.worlds[1], wrong).await), 419);
    let right = json!({ "username": "dan", "pin": "4321" });
    let (_, before) = dan.ask(&pair.worlds[1], "join", right).await;
    let texts = before.iter().filter_map(|it| it["text"].as_str());
    let texts: Vec<&str> = texts.collect();
    assert_eq!(texts, ["of the home", "of the other node", "just us"]);
    dan.client.on_handle("detach", json!({})).await;
    for (guest, node) in [(&mut bo, 1), (&mut cy, 1)] {
        guest.skip(&pair.worlds[node]).await;
    }

    pair.connect();
    for_all(&mut al, &pair.worlds[0], "join").await;
    assert_eq!(bo.next(&pair.worlds[1]).await, event("join", "al"));
    assert_eq!(cy.next(&pair.worlds[1]).await, event("join", "al"));
    pair.share().await;
    let answer = al.say(&pair.worlds[0], "all of us").await;
    assert_eq!(answer["textroom"], "success", "{answer}");
    assert_eq!(bo.next(&pair.worlds[1]).await["text"], "all of us");
    assert_eq!(cy.next(&pair.worlds[1]).await["text"], "all of us");
    // Who has come back to the home is gone there when the client is gone.
    al.skip(&pair.worlds[0]).await;
    bo.client.on_handle("detach", json!({})).await;
    assert_eq!(al.next(&pair.worlds[0]).await, event("leave", "bo"));
}

#[tokio::test]
async fn both_nodes_agree_again_after_messages_were_lost() {
    let mut pair = Pair::new();
    pair.create(json!({})).await;
    let mut al = pair.member(0, "al", "").await;
    let mut bo = pair.member(1, "bo", "").await;
    let mut cy = pair.member(1, "cy", "").await;
    al.skip(&pair.worlds[0]).await;
    cy.skip(&pair.worlds[1]).await;
    // The connection breaks for a moment, in which somebody goes.
    for way in pair.ways.drain(..) {
        way.abort();
    }
    bo.client.on_handle("detach", json!({})).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    for rooms in &pair.rooms {
        while tokio::time::timeout(std::time::Duration::ZERO, rooms.next_message())
            .await
            .is_ok()
        {}
    }
    pair.connect();
    assert_eq!(al.next(&pair.worlds[0]).await, event("leave", "bo"));
    cy.skip(&pair.worlds[1]).await;
    al.expect_silence(&pair.worlds[0]).await;
    al.say(&pair.worlds[0], "still here").await;
    assert_eq!(cy.next(&pair.worlds[1]).await["text"], "still here");
}
