//! An audio room of one node on other nodes: processes, a real nats-server, and clients with real
//! Opus. Skipped with a message where no nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;
mod talkers;

use std::time::{Duration, Instant};

use nodes::{Node, Site};
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach_to, metric};
use talkers::{PACKAGE, Talker, talk};

const ROOM: u64 = 77;
/// The tones of participants, in Hz.
const ADA: f32 = 440.0;
const BOB: f32 = 1_000.0;

/// Waits until a node lists a room like this, or none.
fn listed(node: &Node, room: u64, holds: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
    let handle = attach_to(node.api(), PACKAGE);
    let begin = Instant::now();
    loop {
        let answer = ask(&handle, json!({ "request": "list" }));
        let list = answer["list"].as_array().unwrap();
        let found = list.iter().find(|it| it["room"] == room);
        if holds(found) {
            return found.cloned();
        }
        assert!(begin.elapsed() < PATIENCE, "{room}: {answer:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes the room at a node.
fn create(node: &Node) {
    let created = ask(
        &attach_to(node.api(), PACKAGE),
        json!({
            "request": "create", "room": ROOM, "description": "Hall", "pin": "4321",
            "secret": "s3cret", "audiolevel_event": true, "audio_active_packets": 10,
            "audio_level_average": 40,
        }),
    );
    assert_eq!(created["audiobridge"], "created", "{created}");
}

fn join(room: u64, id: u64) -> Value {
    json!({
        "request": "join", "room": room, "id": id, "pin": "4321", "display": format!("p{id}"),
    })
}

/// The ids of the participants in data of the plugin.
fn people(data: &Value) -> Vec<u64> {
    let all = data["participants"].as_array();
    let ids = all.into_iter().flatten();
    ids.filter_map(|it| it["id"].as_u64()).collect()
}

fn is_gone(id: u64) -> impl Fn(&Value) -> bool {
    move |data| data["leaving"] == id
}

fn is_muted(id: u64, muted: bool) -> impl Fn(&Value) -> bool {
    move |data| people(data) == [id] && data["participants"][0]["muted"] == muted
}

/// Returns the number of streams that a node sends to others.
fn crossing(node: &Node) -> u64 {
    metric(
        node.api(),
        "portunus_cluster_media_streams{direction=\"out\"}",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audio_room_is_heard_and_talked_in_at_another_node() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    create(a);
    let entry = listed(b, ROOM, |entry| entry.is_some()).unwrap();
    assert_eq!(
        (
            &entry["node"],
            &entry["description"],
            &entry["pin_required"]
        ),
        (&json!("a"), &json!("Hall"), &json!(true))
    );
    let mut eve = Talker::idle(b.api(), 0.0).await;
    let exists = eve.ask(json!({ "request": "exists", "room": ROOM }));
    assert_eq!(exists["exists"], true, "{exists}");
    let again = eve.ask(json!({ "request": "create", "room": ROOM }));
    assert_eq!(again["error_code"], 486, "{again}");
    // Pins and secrets are checked at the home.
    let mut wrong = join(ROOM, 22);
    wrong["pin"] = json!("0000");
    let refused = eve.request(wrong);
    assert_eq!(refused["error_code"], 489, "{refused}");
    let mute = |secret: &str, muted: bool| {
        let request = if muted { "mute" } else { "unmute" };
        json!({ "request": request, "room": ROOM, "id": 11, "secret": secret })
    };
    assert_eq!(eve.ask(mute("guess", true))["error_code"], 489);
    assert_eq!(eve.ask(mute("s3cret", true))["error_code"], 492);

    let (mut ada, joined) = Talker::join(a.api(), ADA, join(ROOM, 11)).await;
    assert_eq!(joined["audiobridge"], "joined", "{joined}");
    let (mut bob, joined) = Talker::join(b.api(), BOB, join(ROOM, 22)).await;
    assert_eq!(
        (&joined["audiobridge"], people(&joined)),
        (&json!("joined"), vec![11])
    );
    ada.until(|data| data["audiobridge"] == "joined" && people(data) == [22]);
    ada.until(|data| people(data) == [22] && data["participants"][0]["setup"] == true);
    // Each hears the other, and not itself.
    let mut frames = 0;
    talk(&mut [&mut ada, &mut bob], "a talk", |all| {
        frames += 1;
        let hear = all[0].hears(BOB) && all[1].hears(ADA);
        // Long enough to count as talking.
        frames > 100 && hear && all[0].is_deaf_to(ADA) && all[1].is_deaf_to(BOB)
    })
    .await;
    ada.until(|data| data["audiobridge"] == "talking" && data["id"] == 22);
    bob.until(|data| data["audiobridge"] == "talking" && data["id"] == 11);
    assert_eq!((crossing(a), crossing(b)), (1, 1));

    // All listeners of a node share one stream.
    let listen = json!({ "request": "listen", "room": ROOM, "pin": "4321" });
    let mut one = Talker::listen(b.api(), listen.clone()).await;
    let mut two = Talker::listen(b.api(), listen).await;
    talk(
        &mut [&mut ada, &mut bob, &mut one, &mut two],
        "listening",
        |all| {
            let hear = |who: &Talker| who.hears(ADA) && who.hears(BOB);
            hear(all[2]) && hear(all[3])
        },
    )
    .await;
    assert_eq!(crossing(a), 2);
    listed(b, ROOM, |entry| {
        let entry = entry.unwrap();
        entry["num_participants"] == 2 && entry["num_listeners"] == 2
    });

    // A moderator of the other node.
    assert_eq!(eve.ask(mute("s3cret", true))["audiobridge"], "success");
    ada.until(is_muted(11, true));
    bob.until(is_muted(11, true));
    talk(
        &mut [&mut ada, &mut bob, &mut one, &mut two],
        "silence",
        |all| all[1].is_deaf_to(ADA) && all[2].is_deaf_to(ADA) && all[2].hears(BOB),
    )
    .await;
    assert_eq!(eve.ask(mute("s3cret", false))["audiobridge"], "success");
    bob.until(is_muted(11, false));
    // The participant itself.
    let configured = bob.request(json!({ "request": "configure", "muted": true }));
    assert_eq!(configured["result"], "ok", "{configured}");
    ada.until(is_muted(22, true));
    talk(&mut [&mut ada, &mut bob], "silence", |all| {
        all[0].is_deaf_to(BOB) && all[1].hears(ADA)
    })
    .await;
    let people = eve.ask(json!({ "request": "listparticipants", "room": ROOM }));
    assert_eq!(
        people["participants"].as_array().unwrap().len(),
        2,
        "{people}"
    );

    // It leaves, comes back, and is kicked.
    let left = bob.request(json!({ "request": "leave" }));
    assert_eq!(
        (&left["audiobridge"], &left["id"]),
        (&json!("left"), &json!(22))
    );
    ada.until(is_gone(22));
    let (mut bob, _) = Talker::join(b.api(), BOB, join(ROOM, 22)).await;
    let kick = json!({ "request": "kick", "room": ROOM, "id": 22, "secret": "s3cret" });
    let kicked = ada.ask(kick);
    assert_eq!(kicked["audiobridge"], "success", "{kicked}");
    bob.until(|data| data["kicked"] == 22);
    bob.until_event(|event| event["janus"] == "hangup");
    ada.until(is_gone(22));

    // The end of the room, asked for at the other node.
    let (mut bob, _) = Talker::join(b.api(), BOB, join(ROOM, 22)).await;
    let destroyed = eve.ask(json!({ "request": "destroy", "room": ROOM, "secret": "s3cret" }));
    assert_eq!(destroyed["audiobridge"], "destroyed", "{destroyed}");
    for who in [&mut ada, &mut bob, &mut one] {
        who.until(|data| data["audiobridge"] == "destroyed");
    }
    listed(b, ROOM, |entry| entry.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_at_a_dead_node_leaves_an_audio_room() {
    let Some(mut site) = Site::start(&["a", "b"]) else {
        return;
    };
    create(&site.nodes[0]);
    listed(&site.nodes[1], ROOM, |entry| entry.is_some());
    let [a, b] = [0, 1].map(|index| site.nodes[index].api().to_owned());
    let (mut ada, _) = Talker::join(&a, ADA, join(ROOM, 11)).await;
    let (mut bob, _) = Talker::join(&b, BOB, join(ROOM, 22)).await;
    talk(&mut [&mut ada, &mut bob], "a talk", |all| {
        all[0].hears(BOB) && all[1].hears(ADA)
    })
    .await;
    let begin = Instant::now();
    site.nodes[1].running = None;
    ada.until(is_gone(22));
    let took = begin.elapsed();
    println!("somebody at a dead node has left after {took:?}");
    assert!(took < Duration::from_secs(10));
}

/// A room of the configuration of both nodes.
const BOTH: &str = "[[audiobridge.room]]\nroom = 88\nsampling_rate = 16000\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_room_of_both_nodes_is_one_room_and_its_home_may_die() {
    let Some(mut site) = Site::with(&[("a", BOTH), ("b", BOTH)]) else {
        return;
    };
    // Nobody uses it, so the lowest name is its home.
    listed(&site.nodes[1], 88, |entry| entry.unwrap()["node"] == "a");
    let [a, b] = [0, 1].map(|index| site.nodes[index].api().to_owned());
    let (mut bob, joined) = Talker::join(&b, BOB, join(88, 22)).await;
    assert!(people(&joined).is_empty(), "{joined}");
    let (mut ada, joined) = Talker::join(&a, ADA, join(88, 11)).await;
    assert_eq!(people(&joined), [22], "{joined}");
    talk(&mut [&mut ada, &mut bob], "a talk", |all| {
        all[0].hears(BOB) && all[1].hears(ADA)
    })
    .await;

    let begin = Instant::now();
    site.nodes[0].running = None;
    bob.until(|data| data["audiobridge"] == "destroyed" && data["room"] == 88);
    println!("the end of a home is told after {:?}", begin.elapsed());
    listed(&site.nodes[1], 88, |entry| entry.unwrap()["node"].is_null());
    let (mut bob, joined) = Talker::join(&b, BOB, join(88, 22)).await;
    assert!(people(&joined).is_empty(), "{joined}");

    // It stays where it is used.
    site.nodes[0].start();
    listed(&site.nodes[0], 88, |entry| entry.unwrap()["node"] == "b");
    let a = site.nodes[0].api().to_owned();
    let (mut ada, joined) = Talker::join(&a, ADA, join(88, 11)).await;
    assert_eq!(people(&joined), [22], "{joined}");
    bob.until(|data| data["audiobridge"] == "joined" && people(data) == [11]);
    talk(&mut [&mut ada, &mut bob], "a talk", |all| {
        all[0].hears(BOB) && all[1].hears(ADA)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_moves_between_rooms_of_two_nodes_keeps_its_connection() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    create(a);
    let of_b = json!({ "request": "create", "room": 5 });
    let created = ask(&attach_to(b.api(), PACKAGE), of_b);
    assert_eq!(created["audiobridge"], "created", "{created}");
    listed(b, ROOM, |entry| entry.is_some());
    let (mut ada, _) = Talker::join(a.api(), ADA, join(ROOM, 11)).await;
    let (mut bob, _) = Talker::join(b.api(), BOB, join(5, 22)).await;
    let (mut cleo, joined) = Talker::join(b.api(), 0.0, join(5, 33)).await;
    assert_eq!(people(&joined), [22]);
    let moved =
        |room: u64| json!({ "request": "changeroom", "room": room, "id": 22, "pin": "4321" });
    let changed = bob.request(moved(ROOM));
    assert_eq!(changed["audiobridge"], "roomchanged", "{changed}");
    assert_eq!(people(&changed), [11]);
    cleo.until(is_gone(22));
    talk(&mut [&mut ada, &mut bob], "a talk", |all| {
        all[0].hears(BOB) && all[1].hears(ADA)
    })
    .await;
    let changed = bob.request(moved(5));
    assert_eq!(changed["audiobridge"], "roomchanged", "{changed}");
    ada.until(is_gone(22));
    cleo.is_silent = true;
    talk(&mut [&mut bob, &mut cleo], "a talk", |all| {
        all[1].hears(BOB)
    })
    .await;
}
