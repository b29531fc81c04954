//! The events for event handlers and administrators.

use portunus_core::events::EventFilter;
use portunus_core::{Plugin, Reply};
use portunus_textroom::{TextRoom, TextRoomConfig};
use serde_json::{Value, json};

use crate::world::{ROOM, World};

fn filter() -> EventFilter {
    EventFilter {
        kinds: "plugins".parse().unwrap(),
        plugins: Vec::new(),
    }
}

#[tokio::test]
async fn comings_goings_and_changes_are_told_once() {
    let world = World::empty(TextRoomConfig::default());
    let events = world.server.watch(filter());
    world.create(json!({})).await;
    let al = world
        .member_with(json!({ "username": "al", "display": "Al" }))
        .await;
    let mut bo = world.member("bo").await;
    bo.ask(&world, "kick", json!({ "username": "al" })).await;
    let mut cy = world.member("cy").await;
    cy.ask(&world, "leave", json!({})).await;
    bo.ask(&world, "edit", json!({ "new_description": "New" }))
        .await;
    bo.ask(&world, "destroy", json!({})).await;
    let told = |name: &str| json!({ "event": name, "room": ROOM });
    let of =
        |name: &str, username: &str| json!({ "event": name, "room": ROOM, "username": username });
    let mut joined = of("join", "al");
    joined["display"] = json!("Al");
    for expected in [
        told("created"),
        joined,
        of("join", "bo"),
        json!({ "textroom": "kicked", "room": ROOM, "username": "al" }),
        of("join", "cy"),
        of("leave", "cy"),
        told("edited"),
        told("destroyed"),
    ] {
        let event = events.recv().await.unwrap();
        let event = events.to_json(&event);
        assert_eq!(event["event"]["plugin"], "janus.plugin.textroom");
        assert_eq!(event["event"]["data"], expected);
        assert!(event["handle_id"].is_u64(), "{event}");
    }
    drop(al);
}

#[tokio::test]
async fn administrators_manage_rooms_by_the_same_requests() {
    let plugin = TextRoom::new(TextRoomConfig::default()).unwrap();
    let ask = |request: Value| match plugin.admin(request) {
        Some(Reply::Success(reply)) => reply,
        other => panic!("{other:?}"),
    };
    let created = ask(json!({ "request": "create", "transaction": "t", "room": 7,
                              "is_private": true, "secret": "s" }));
    assert_eq!(
        created,
        json!({ "textroom": "created", "room": 7, "permanent": false })
    );
    let list = ask(json!({ "request": "list", "transaction": "z" }));
    assert_eq!(list["list"][0]["room"], 7);
    let said = json!({ "request": "list", "textroom": "exists", "transaction": "t", "room": 7 });
    assert_eq!(ask(said)["exists"], true);
    // An administrator is not a member.
    let join = json!({ "request": "list", "textroom": "join", "transaction": "t", "room": 7, "username": "al" });
    assert_eq!(ask(join)["error"], "Unsupported request join");
    let announce = json!({ "request": "announcement", "transaction": "t", "room": 7, "text": "x" });
    assert_eq!(ask(announce)["error_code"], 413);
    for (request, code, text) in [
        (json!(1), 412, "The request is not a JSON object"),
        (json!({}), 413, "Missing mandatory element (request)"),
        (
            json!({ "request": "list" }),
            413,
            "Missing mandatory element (transaction)",
        ),
        (
            json!({ "request": "setup", "transaction": "t" }),
            415,
            "Unknown request 'setup'",
        ),
        (
            json!({ "request": "join", "transaction": "t" }),
            415,
            "Unknown request 'join'",
        ),
    ] {
        let event = json!({ "textroom": "event", "error_code": code, "error": text });
        assert_eq!(ask(request.clone()), event, "{request}");
    }
}
