//! A text room of one id on several nodes is one room: processes, a real nats-server, and clients
//! with real data channels. Skipped with a message where no nats-server of 2.11 or newer is
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
use nodes::writers::Writer;
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach_to};

const PACKAGE: &str = "janus.plugin.textroom";
const ROOM: u64 = 1234;

fn is(what: &'static str, username: &'static str) -> impl Fn(&Value) -> bool {
    move |text| text["textroom"] == what && text["username"] == username
}

fn says(text: &'static str) -> impl Fn(&Value) -> bool {
    move |message| message["textroom"] == "message" && message["text"] == text
}

/// Waits until a node lists a room so.
fn until_listed(api: &str, room: u64, holds: impl Fn(&Value) -> bool) -> Value {
    let handle = attach_to(api, PACKAGE);
    let begin = Instant::now();
    loop {
        let list = ask(&handle, json!({ "request": "list" }));
        let mut rooms = list["list"].as_array().unwrap().iter();
        if let Some(found) = rooms.find(|it| it["room"] == room && holds(it)) {
            return found.clone();
        }
        assert!(begin.elapsed() < PATIENCE, "{list}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_was_made_at_one_node_is_joined_at_the_other_one() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let maker = attach_to(a, PACKAGE);
    let made = ask(
        &maker,
        json!({
            "request": "create", "room": 777, "description": "Hall", "pin": "4321",
            "secret": "s3cret", "history": 3,
        }),
    );
    assert_eq!(made["textroom"], "created", "{made}");
    let listed = until_listed(b, 777, |_| true);
    assert_eq!(listed["description"], "Hall", "{listed}");
    assert_eq!(listed["pin_required"], true, "{listed}");
    let elsewhere = attach_to(b, PACKAGE);
    let exists = ask(&elsewhere, json!({ "request": "exists", "room": 777 }));
    assert_eq!(exists["exists"], true, "{exists}");
    let again = ask(&elsewhere, json!({ "request": "create", "room": 777 }));
    assert_eq!(again["error_code"], 418, "{again}");

    // Its home checks the PIN and the name.
    let join = |name: &str, pin: &str| json!({ "room": 777, "username": name, "pin": pin });
    let mut ada = Writer::new(a).await;
    assert_eq!(
        ada.ask("join", join("ada", "4321")).await["textroom"],
        "success"
    );
    let announce = json!({ "room": 777, "text": "welcome", "secret": "s3cret" });
    assert_eq!(
        ada.ask("announcement", announce).await["textroom"],
        "success"
    );
    let mut bob = Writer::new(b).await;
    assert_eq!(
        bob.ask("join", join("bob", "0000")).await["error_code"],
        419
    );
    assert_eq!(
        bob.ask("join", join("ada", "4321")).await["error_code"],
        420
    );
    let joined = bob.ask("join", join("bob", "4321")).await;
    assert_eq!(
        joined["participants"],
        json!([{ "username": "ada" }]),
        "{joined}"
    );
    // It has its history, its own join, and the others learn of it.
    bob.until(|text| text["textroom"] == "announcement" && text["text"] == "welcome")
        .await;
    bob.until(is("join", "bob")).await;
    ada.until(is("join", "bob")).await;

    // Messages in both directions, to all and to some, with their answers.
    let say = |text: &str| json!({ "room": 777, "text": text });
    assert_eq!(bob.ask("message", say("hi")).await["textroom"], "success");
    assert_eq!(ada.until(says("hi")).await["from"], "bob");
    bob.until(says("hi")).await;
    assert_eq!(
        ada.ask("message", say("hello")).await["textroom"],
        "success"
    );
    assert_eq!(bob.until(says("hello")).await["from"], "ada");
    let mut cy = Writer::new(b).await;
    assert_eq!(
        cy.ask("join", join("cy", "4321")).await["textroom"],
        "success"
    );
    cy.until(says("hello")).await;
    let whisper = json!({ "room": 777, "text": "psst", "tos": ["bob", "eve"] });
    let sent = ada.ask("message", whisper).await;
    assert_eq!(sent["sent"], json!({ "bob": true, "eve": false }), "{sent}");
    assert_eq!(bob.until(says("psst")).await["whisper"], true);
    let whisper = json!({ "room": 777, "text": "back", "to": "ada" });
    assert_eq!(bob.ask("message", whisper).await["sent"]["ada"], true);
    ada.until(says("back")).await;
    // As long as a data channel takes, in both directions.
    let long = "x".repeat(60_000) + "end";
    let says_long = |text: &Value| text["text"].as_str().is_some_and(|it| it.len() == 60_003);
    assert_eq!(bob.ask("message", say(&long)).await["textroom"], "success");
    ada.until(says_long).await;
    cy.until(says_long).await;
    assert!(!cy.has(says("psst")) && !cy.has(says("back")));

    // By the API too.
    let people = json!({ "request": "listparticipants", "room": 777 });
    let people = ask(&elsewhere, people);
    let names: Vec<&str> = people["participants"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["username"].as_str())
        .collect();
    assert_eq!(names, ["ada", "bob", "cy"], "{people}");
    until_listed(b, 777, |room| room["num_participants"] == 3);

    // Moderators at the node that is not the home.
    let edit = |secret: &str| json!({ "request": "edit", "room": 777, "secret": secret, "new_description": "Attic" });
    assert_eq!(ask(&elsewhere, edit("guess"))["error_code"], 419);
    assert_eq!(ask(&elsewhere, edit("s3cret"))["textroom"], "edited");
    until_listed(a, 777, |room| room["description"] == "Attic");
    until_listed(b, 777, |room| room["description"] == "Attic");
    let kick = json!({ "request": "kick", "room": 777, "secret": "s3cret", "username": "cy" });
    assert_eq!(ask(&elsewhere, kick)["textroom"], "success");
    ada.until(is("kicked", "cy")).await;
    bob.until(is("kicked", "cy")).await;
    cy.until(is("kicked", "cy")).await;
    assert_eq!(cy.ask("message", say("?")).await["error_code"], 422);
    // Who leaves, or is gone, at one node leaves at the other one.
    assert_eq!(
        bob.ask("leave", json!({ "room": 777 })).await["textroom"],
        "success"
    );
    ada.until(is("leave", "bob")).await;
    assert_eq!(
        bob.ask("join", join("bob", "4321")).await["textroom"],
        "success"
    );
    ada.until(is("join", "bob")).await;
    assert_eq!(
        cy.ask("join", join("cy", "4321")).await["textroom"],
        "success"
    );
    server::post(
        &cy.handle,
        &json!({ "janus": "detach", "transaction": "d" }),
    );
    ada.until(is("leave", "cy")).await;
    let destroy = json!({ "request": "destroy", "room": 777, "secret": "s3cret" });
    let destroyed = ask(&elsewhere, destroy);
    assert_eq!(destroyed["textroom"], "destroyed", "{destroyed}");
    ada.until(|text| text["textroom"] == "destroyed").await;
    bob.until(|text| text["textroom"] == "destroyed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_at_a_dead_node_leaves_and_the_others_go_on() {
    let Some(mut site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api().to_owned());
    // The node that was started first is the home of the room of both configurations.
    let mut ada = Writer::member(&a, ROOM, "ada").await;
    until_listed(&b, ROOM, |room| room["num_participants"] == 1);
    let mut bob = Writer::member(&b, ROOM, "bob").await;
    let mut cy = Writer::member(&b, ROOM, "cy").await;
    ada.until(is("join", "cy")).await;
    let made = json!({ "request": "create", "room": 777, "pin": "4321" });
    assert_eq!(ask(&attach_to(&a, PACKAGE), made)["textroom"], "created");
    until_listed(&b, 777, |_| true);
    let join = |name: &str, pin: &str| json!({ "room": 777, "username": name, "pin": pin });
    assert_eq!(
        bob.ask("join", join("bo", "4321")).await["textroom"],
        "success"
    );

    // A connection that is silent for a moment loses nobody.
    let process = &site.nodes[0].running.as_ref().unwrap().0;
    server::signal(process, "-STOP");
    bob.peer.run_for(Duration::from_millis(1_000)).await;
    server::signal(process, "-CONT");
    let say = |room: u64, text: &str| json!({ "room": room, "text": text });
    assert_eq!(
        bob.ask("message", say(ROOM, "still here")).await["textroom"],
        "success"
    );
    ada.until(says("still here")).await;
    assert!(!bob.has(|text| text["textroom"] == "leave"));

    // The home dies. Who was there leaves, and the rooms go on with the others.
    let begin = Instant::now();
    site.nodes[0].running = None;
    bob.until(is("leave", "ada")).await;
    let took = begin.elapsed();
    println!("somebody at a dead node is gone after {took:?}");
    assert!(took < Duration::from_secs(10));
    cy.until(is("leave", "ada")).await;
    assert_eq!(
        bob.ask("message", say(ROOM, "just us")).await["textroom"],
        "success"
    );
    cy.until(says("just us")).await;
    assert!(!bob.has(is("leave", "cy")) && !bob.has(is("leave", "bob")));
    let people = json!({ "request": "listparticipants", "room": ROOM });
    let people = ask(&attach_to(&b, PACKAGE), people);
    assert_eq!(
        people["participants"].as_array().unwrap().len(),
        2,
        "{people}"
    );
    // The room of the dead node has its PIN here, too.
    let mut eve = Writer::new(&b).await;
    assert_eq!(
        eve.ask("join", join("eve", "0000")).await["error_code"],
        419
    );
    assert_eq!(
        eve.ask("join", join("eve", "4321")).await["textroom"],
        "success"
    );
    bob.until(is("join", "eve")).await;

    // It is started again, and finds the rooms where they are.
    site.nodes[0].start();
    let a = site.nodes[0].api().to_owned();
    until_listed(&a, ROOM, |room| room["num_participants"] == 2);
    let mut dan = Writer::member(&a, ROOM, "dan").await;
    bob.until(is("join", "dan")).await;
    assert_eq!(
        dan.ask("message", say(ROOM, "back")).await["textroom"],
        "success"
    );
    assert_eq!(cy.until(says("back")).await["from"], "dan");
    // A node of members that are not at home there dies.
    let begin = Instant::now();
    site.nodes[0].running = None;
    bob.until(is("leave", "dan")).await;
    println!("and another one after {:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_nodes_are_one_room_again_after_its_home_has_died() {
    let Some(mut site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api().to_owned());
    let made = json!({ "request": "create", "room": 777, "history": 5 });
    assert_eq!(ask(&attach_to(&a, PACKAGE), made)["textroom"], "created");
    until_listed(&b, 777, |_| true);
    until_listed(&c, 777, |_| true);
    let mut ada = Writer::member(&a, 777, "ada").await;
    let mut bob = Writer::member(&b, 777, "bob").await;
    let mut cy = Writer::member(&c, 777, "cy").await;
    ada.until(is("join", "cy")).await;
    bob.until(is("join", "cy")).await;
    let say = |text: &str| json!({ "room": 777, "text": text });
    assert_eq!(
        cy.ask("message", say("before")).await["textroom"],
        "success"
    );
    bob.until(says("before")).await;

    let begin = Instant::now();
    site.nodes[0].running = None;
    bob.until(is("leave", "ada")).await;
    cy.until(is("leave", "ada")).await;
    println!(
        "who was at the dead home is gone after {:?}",
        begin.elapsed()
    );
    // Each of them has the room, until both know which one counts.
    let mut number = 0;
    loop {
        number += 1;
        let text = format!("after {number}");
        assert_eq!(cy.ask("message", say(&text)).await["textroom"], "success");
        bob.peer.run_for(Duration::from_millis(200)).await;
        if bob.has(|message| message["text"] == text.as_str()) {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "two rooms of one id");
    }
    println!("and the others are one room after {:?}", begin.elapsed());
    let people = json!({ "request": "listparticipants", "room": 777 });
    for api in [&b, &c] {
        let people = ask(&attach_to(api, PACKAGE), people.clone());
        let count = people["participants"].as_array().map(Vec::len);
        assert_eq!(count, Some(2), "{people}");
    }
    // The history is there, too.
    let mut dan = Writer::member(&c, 777, "dan").await;
    dan.until(says("before")).await;
    bob.until(is("join", "dan")).await;
}
