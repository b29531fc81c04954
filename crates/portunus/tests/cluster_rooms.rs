//! A video room of one name on several nodes is one room: processes, a real nats-server, and
//! clients with real media. Skipped with a message where no nats-server of 2.11 or newer is
//! installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::time::{Duration, Instant};

use nodes::Site;
use nodes::guests::Guest;
use serde_json::{Value, json};

const ROOM: u64 = 1234;

/// The ids of publishers in data of the plugin.
fn publishers(data: &Value) -> Vec<u64> {
    let all = data["publishers"].as_array();
    let ids = all.into_iter().flatten();
    ids.filter_map(|it| it["id"].as_u64()).collect()
}

fn is_gone(id: u64) -> impl Fn(&Value) -> bool {
    move |data| data["leaving"] == id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_one_room_on_two_nodes() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let mut ada = Guest::publisher(a, ROOM, 11).await;
    // Who joins at the other node is told at once who is there.
    let (mut bob, joined) = Guest::listener(b, ROOM, 22).await;
    assert_eq!(publishers(&joined), [11], "{joined}");
    assert_eq!(joined["publishers"][0]["display"], "p11");
    assert_eq!(joined["publishers"][0]["streams"][1]["codec"], "vp8");
    let mut viewer = Guest::viewer(b, ROOM, 11).await;
    viewer.watch(&mut ada, 1).await;
    viewer.watch(&mut ada, 2).await;
    // The other way round, and soon.
    let begin = Instant::now();
    let mut cleo = Guest::publisher(b, ROOM, 33).await;
    ada.until(|data| publishers(data) == [33]);
    let took = begin.elapsed();
    println!("a publisher is announced on the other node after {took:?}, with its own join");
    let mut viewer = Guest::viewer(a, ROOM, 33).await;
    viewer.watch(&mut cleo, 3).await;
    let listed = ada.ask(json!({ "request": "listparticipants", "room": ROOM }));
    assert_eq!(
        listed["participants"].as_array().unwrap().len(),
        3,
        "{listed}"
    );
    // The link shows what it carries.
    let status = site.nodes[0].until("a round trip of media", |status| {
        status["links"][0]["media"]["round_trip_us"].is_u64()
    });
    let media = &status["links"][0]["media"];
    assert!(media["streams_out"].as_u64() >= Some(1), "{media}");
    let text = site.nodes[0].says(&["status"]);
    println!("{text}");
    assert!(text.contains("MEDIA ROUND TRIP"), "{text}");
    assert_eq!(server::metric(a, "portunus_cluster_media_links"), 1);
    // A moderator of the other node.
    let moderate = |mute: bool| json!({ "request": "moderate", "room": ROOM, "id": 11, "mid": "1", "mute": mute });
    assert_eq!(bob.ask(moderate(true))["videoroom"], "success");
    ada.until(|data| data["moderation"] == "muted" && data["mid"] == "1");
    assert_eq!(bob.ask(moderate(false))["videoroom"], "success");
    ada.until(|data| data["moderation"] == "unmuted");
    let kicked = bob.ask(json!({ "request": "kick", "room": ROOM, "id": 11 }));
    assert_eq!(kicked["videoroom"], "success", "{kicked}");
    ada.until(|data| data["leaving"] == "ok" && data["reason"] == "kicked");
    cleo.until(|data| data["kicked"] == 11 || data["leaving"] == 11);
    // Who leaves at one node leaves at the other one.
    cleo.send(json!({ "request": "leave" }), None);
    bob.until(is_gone(33));
    assert!(bob.peer.packets.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_at_a_dead_node_leaves_and_a_short_loss_is_not_seen() {
    let Some(mut site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api().to_owned());
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (mut bob, _) = Guest::listener(&b, ROOM, 22).await;
    let mut viewer = Guest::viewer(&b, ROOM, 11).await;
    viewer.watch(&mut ada, 1).await;
    // Shorter than a node may be silent.
    let process = &site.nodes[0].running.as_ref().unwrap().0;
    server::signal(process, "-STOP");
    assert!(!bob.comes_within(Duration::from_secs(1), is_gone(11)));
    server::signal(process, "-CONT");
    viewer.watch(&mut ada, 2).await;
    assert!(!bob.comes_within(Duration::from_millis(100), is_gone(11)));
    let begin = Instant::now();
    site.nodes[0].running = None;
    bob.until(is_gone(11));
    let took = begin.elapsed();
    println!("somebody at a dead node is gone after {took:?}");
    assert!(took < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_was_made_at_one_node_is_found_at_the_other_one() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let maker = Guest::idle(a).await;
    let made = maker.ask(json!({
        "request": "create", "room": 777, "description": "Hall", "pin": "4321", "secret": "s3cret",
        "publishers": 5,
    }));
    assert_eq!(made["videoroom"], "created", "{made}");
    let has_home = |status: &Value| {
        let homes = status["homes"].as_array();
        homes.is_some_and(|all| {
            all.iter()
                .any(|home| home["what"] == "room.videoroom \"777\"")
        })
    };
    site.nodes[1].until("the home of the room", has_home);
    // The PIN and the secret are those of the room, and no node has told them.
    let mut bob = Guest::idle(b).await;
    let join = |pin: &str| json!({ "request": "join", "ptype": "publisher", "room": 777, "id": 22, "pin": pin });
    bob.send(join("0000"), None);
    let refused = bob.until(|data| data.get("error").is_some());
    assert_eq!(refused["error_code"], 433, "{refused}");
    bob.send(join("4321"), None);
    let joined = bob.until(|data| data["videoroom"] == "joined");
    assert_eq!(joined["description"], "Hall");
    let kick = |secret: &str| json!({ "request": "kick", "room": 777, "id": 9, "secret": secret });
    assert_eq!(bob.ask(kick("guess"))["error_code"], 433);
    assert_eq!(bob.ask(kick("s3cret"))["error_code"], 428);
    // Nobody else makes rooms of it.
    bob.send(json!({ "request": "leave" }), None);
    let mut eve = Guest::idle(b).await;
    eve.send(
        json!({ "request": "join", "ptype": "publisher", "room": 778 }),
        None,
    );
    let refused = eve.until(|data| data.get("error").is_some());
    assert_eq!(refused["error_code"], 426, "{refused}");
    // Its end is the end on all nodes.
    let mut join = join("4321");
    join["id"] = json!(11);
    let (mut ada, _) = Guest::joined(a, join.clone()).await;
    join["id"] = json!(33);
    let (_cleo, joined) = Guest::joined(b, join).await;
    assert_eq!(joined["description"], "Hall");
    let destroyed = eve.ask(json!({ "request": "destroy", "room": 777, "secret": "s3cret" }));
    assert_eq!(destroyed["videoroom"], "destroyed", "{destroyed}");
    ada.until(|data| data["videoroom"] == "destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_data_channels_reach_those_who_receive_them_at_the_other_node() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let mut ada = Guest::writer(a, ROOM, 11).await;
    let (mut bob, joined) = Guest::listener(b, ROOM, 22).await;
    // It may learn of the media a moment later than of its publisher.
    let known = match publishers(&joined)[..] {
        [] => bob.until(|data| publishers(data) == [11]),
        _ => joined,
    };
    let streams = &known["publishers"][0]["streams"];
    assert_eq!(streams[2]["type"], "data", "{known}");
    let mut viewer = Guest::viewer(b, ROOM, 11).await;
    viewer.read(&mut ada, "11", "first").await;
    // The media of the same publisher is not in its way.
    viewer.watch(&mut ada, 1).await;
    viewer.read(&mut ada, "11", "second").await;
    // Who comes later gets what is written from then on.
    let mut later = Guest::viewer(b, ROOM, 11).await;
    later.read(&mut ada, "11", "third").await;
    assert!(!later.peer.texts("11").contains(&"first"));
}
