//! LiveKit's door at several nodes of a cluster: one identity is one participant, and the services of a
//! node answer for the rooms of all. Processes, a real nats-server. Skipped with a message where no
//! nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nodes::livekit::{Client, KEY, call, door, until};
use nodes::{Site, home_of};
use portunus_livekit::protocol::{DisconnectReason, UpdateSubscription, signal_request};
use portunus_tests::free_port;
use serde_json::{Value, json};
use server::PATIENCE;

/// Three nodes with doors at these ports.
fn three(more: &str) -> Option<(Site, [u16; 3])> {
    let ports = [free_port(), free_port(), free_port()];
    let doors = ports.map(|port| format!("{}{more}", door(port)));
    let site = Site::with(&[("a", &doors[0]), ("b", &doors[1]), ("c", &doors[2])])?;
    Some((site, ports))
}

/// Returns the participants of a room, as a node lists them.
fn people(port: u16, room: &str) -> Vec<Value> {
    let (status, list) = call(port, "ListParticipants", room, &json!({ "room": room }));
    assert_eq!(status, 200, "{list}");
    list["participants"].as_array().unwrap().clone()
}

fn named<'l>(list: &'l Value, room: &str) -> Option<&'l Value> {
    let mut rooms = list["rooms"].as_array()?.iter();
    rooms.find(|it| it["name"] == room)
}

/// Takes the events that nodes post. Returns the configuration for it.
fn hook() -> (mpsc::Receiver<Value>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let (sender, events) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (connection, sender) = (connection.unwrap(), sender.clone());
            std::thread::spawn(move || take_events(&connection, &sender));
        }
    });
    let more = format!("\n[livekit.webhook]\nurls = [\"http://{to}/hook\"]\napi_key = \"{KEY}\"\n");
    (events, more)
}

fn take_events(mut connection: &TcpStream, events: &mpsc::Sender<Value>) {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        let header = line.trim_end().to_ascii_lowercase();
        line.clear();
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if !header.is_empty() {
            continue;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        connection
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        // The test may have ended.
        let _ = events.send(serde_json::from_slice(&body).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_posted_by_one_node_only() {
    let (events, more) = hook();
    let Some((_site, ports)) = three(&more) else {
        return;
    };
    let mut counts = HashMap::<String, u32>::new();
    let mut until_posted = |what: &str| {
        let begin = Instant::now();
        while !counts.contains_key(what) {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let event = events
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("{what} is not posted: {counts:?}"));
            let room = event["room"]["name"].as_str().unwrap();
            let identity = event["participant"]["identity"].as_str();
            let name = event["event"].as_str().unwrap();
            let key = format!("{name} {room} {}", identity.unwrap_or_default());
            *counts.entry(key.trim_end().to_owned()).or_default() += 1;
        }
        counts.clone()
    };
    // The second room tells that no node posts more of the first one.
    for room in ["hall", "lobby"] {
        let [mut al, mut bo, mut cy] = {
            let [a, b, c] = ports;
            let al = Client::join(a, "al", room).await.unwrap();
            let bo = Client::join(b, "bo", room).await.unwrap();
            let cy = Client::join(c, "cy", room).await.unwrap();
            [al, bo, cy]
        };
        al.until("all", |it| it.others.len() == 2).await;
        bo.until("all", |it| it.others.len() == 2).await;
        let (status, answer) = call(ports[1], "DeleteRoom", room, &json!({ "room": room }));
        assert_eq!(status, 200, "{answer}");
        for client in [&mut al, &mut bo, &mut cy] {
            client.until("the end", |it| it.left.is_some()).await;
        }
        for event in [
            format!("room_started {room}"),
            format!("room_finished {room}"),
            format!("participant_connection_aborted {room} al"),
            format!("participant_connection_aborted {room} bo"),
            format!("participant_connection_aborted {room} cy"),
        ] {
            let counts = until_posted(&event);
            assert!(counts.values().all(|count| *count == 1), "{counts:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_clients_with_one_identity_the_later_one_stays_wherever_they_are() {
    let Some((site, [a, b, c])) = three("") else {
        return;
    };
    // The room is at home where nobody else joins.
    let mut eve = Client::join(c, "eve", "hall").await.unwrap();
    let status = site.nodes[2].until("a home", |status| home_of(status, "hall").is_some());
    assert_eq!(home_of(&status, "hall").unwrap()["node"], "c");
    // One after the other.
    let mut first = Client::join(a, "al", "hall").await.unwrap();
    let mut second = Client::join(b, "al", "hall").await.unwrap();
    first.until("its replacement", |it| it.left.is_some()).await;
    assert_eq!(first.left, Some(DisconnectReason::DuplicateIdentity));
    let mut third = Client::join(c, "al", "hall").await.unwrap();
    second
        .until("its replacement", |it| it.left.is_some())
        .await;
    assert_eq!(second.left, Some(DisconnectReason::DuplicateIdentity));
    let mut fourth = Client::join(a, "al", "hall").await.unwrap();
    third.until("its replacement", |it| it.left.is_some()).await;
    assert_eq!(third.left, Some(DisconnectReason::DuplicateIdentity));
    fourth.take_all().await;
    assert_eq!(fourth.left, None);
    // At the same moment.
    for round in 0..50 {
        let identity = format!("bo{round}");
        let join = |port: u16| Client::join(port, &identity, "hall");
        let (one, other) = tokio::join!(join(a), join(b));
        let (mut one, mut other) = (one.unwrap(), other.unwrap());
        let begin = Instant::now();
        let survivor = loop {
            one.take_all().await;
            other.take_all().await;
            match (one.left, other.left) {
                (None, None) => {}
                (Some(reason), None) | (None, Some(reason)) => {
                    assert_eq!(reason, DisconnectReason::DuplicateIdentity);
                    break if one.left.is_none() { &one } else { &other };
                }
                (Some(_), Some(_)) => panic!("both have left"),
            }
            assert!(begin.elapsed() < PATIENCE, "both stay");
        };
        let sid = survivor.sid().to_owned();
        for port in [a, b, c] {
            let body = json!({ "room": "hall" });
            until(port, ("ListParticipants", "hall"), &body, |_, list| {
                let all = list["participants"].as_array().unwrap().iter();
                let mut all = all.filter(|it| it["identity"] == identity.as_str());
                all.next().is_some_and(|it| it["sid"] == sid.as_str()) && all.next().is_none()
            });
        }
        let is_shown = |it: &Client| it.other(&identity).is_some_and(|it| it.sid == sid);
        eve.until("the one that stays", is_shown).await;
    }
    // No home decides between clients of one node.
    let mut one = Client::join(a, "cy", "hall").await.unwrap();
    let mut other = Client::join(a, "cy", "hall").await.unwrap();
    one.until("its replacement", |it| it.left.is_some()).await;
    other.take_all().await;
    assert_eq!(other.left, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_the_services_make_is_the_same_at_all_nodes_from_the_beginning() {
    let Some((_site, [a, b, c])) = three("") else {
        return;
    };
    let body = json!({
        "name": "hall", "empty_timeout": 77, "departure_timeout": 33, "max_participants": 2,
        "metadata": "m",
    });
    let (status, made) = call(a, "CreateRoom", "hall", &body);
    assert_eq!(status, 200, "{made}");
    let is_same = |room: &Value| {
        let names = [
            "sid",
            "empty_timeout",
            "departure_timeout",
            "max_participants",
            "metadata",
            "creation_time",
        ];
        names.iter().all(|name| room[name] == made[name])
    };
    // Who makes it again gets it.
    for port in [b, c] {
        let (status, again) = call(port, "CreateRoom", "hall", &json!({ "name": "hall" }));
        assert_eq!(status, 200, "{again}");
        assert!(is_same(&again), "{again}");
        let list = until(port, ("ListRooms", "hall"), &json!({}), |_, list| {
            named(list, "hall").is_some()
        });
        assert!(is_same(named(&list, "hall").unwrap()), "{list}");
        let names = json!({ "names": ["hall", "nowhere"] });
        let (_, list) = call(port, "ListRooms", "hall", &names);
        assert_eq!(list["rooms"].as_array().unwrap().len(), 1, "{list}");
    }
    // Two have a place, wherever they join.
    let mut al = Client::join(b, "al", "hall").await.unwrap();
    let mut bo = Client::join(c, "bo", "hall").await.unwrap();
    for client in [&al, &bo] {
        assert_eq!(client.room.sid, made["sid"].as_str().unwrap());
        assert_eq!(client.room.metadata, "m");
        assert_eq!(client.room.max_participants, 2);
        assert_eq!(client.room.empty_timeout, 77);
    }
    assert_eq!(Client::join(a, "cy", "hall").await.err(), Some(503));
    // Who joins again has a place.
    let mut again = Client::join(a, "bo", "hall").await.unwrap();
    bo.until("its replacement", |it| it.left.is_some()).await;
    again.until("al", |it| it.other("al").is_some()).await;
    // Of three at once, at three nodes, as many get in as may.
    let body = json!({ "name": "few", "max_participants": 2 });
    let (status, made) = call(b, "CreateRoom", "few", &body);
    assert_eq!(status, 200, "{made}");
    let (one, two, three) = tokio::join!(
        Client::join(a, "1", "few"),
        Client::join(b, "2", "few"),
        Client::join(c, "3", "few"),
    );
    let outcomes = [one, two, three].map(|it| it.err());
    let refused = outcomes.iter().filter(|it| **it == Some(503));
    assert_eq!(refused.count(), 1, "{outcomes:?}");
    // Changes are told to all.
    let body = json!({ "room": "hall", "metadata": "later" });
    let (status, changed) = call(c, "UpdateRoomMetadata", "hall", &body);
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed["metadata"], "later");
    for client in [&mut al, &mut again] {
        let has = |it: &Client| it.room.metadata == "later";
        client.until("the metadata", has).await;
    }
    for port in [a, b, c] {
        until(port, ("ListRooms", "hall"), &json!({}), |_, list| {
            let room = named(list, "hall").unwrap();
            room["metadata"] == "later" && room["num_participants"] == 2
        });
    }
    // Metadata that no directory holds.
    let long = "x".repeat(300_000);
    let body = json!({ "name": "long", "metadata": long });
    let (status, made) = call(a, "CreateRoom", "long", &body);
    assert_eq!(status, 200);
    until(b, ("ListRooms", "long"), &json!({}), |_, list| {
        named(list, "long").is_some_and(|room| room["metadata"] == made["metadata"])
    });
    let dan = Client::join(c, "dan", "long").await.unwrap();
    assert_eq!(dan.room.metadata.len(), long.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_a_node_answer_for_rooms_and_participants_of_all() {
    let Some((site, [a, b, c])) = three("") else {
        return;
    };
    let mut al = Client::join(a, "al", "hall").await.unwrap();
    let mut bo = Client::join(b, "bo", "hall").await.unwrap();
    // This node does not use the room.
    let room = json!({ "room": "hall" });
    let body = |more: Value| {
        let mut body = json!({ "room": "hall", "identity": "bo" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let list = until(c, ("ListParticipants", "hall"), &room, |_, list| {
        list["participants"].as_array().unwrap().len() == 2
    });
    let identities = list["participants"].as_array().unwrap().iter();
    let mut identities: Vec<_> = identities
        .map(|it| it["identity"].as_str().unwrap())
        .collect();
    identities.sort_unstable();
    assert_eq!(identities, ["al", "bo"]);
    let (status, found) = call(c, "GetParticipant", "hall", &body(json!({})));
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["sid"], bo.sid());
    let change = body(json!({ "name": "Bo", "metadata": "m", "attributes": { "mood": "good" } }));
    let (status, changed) = call(c, "UpdateParticipant", "hall", &change);
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed["attributes"]["mood"], "good");
    let is_changed = |it: &Client| {
        let bo = it.other("bo");
        bo.is_some_and(|bo| bo.name == "Bo" && bo.attributes.contains_key("mood"))
    };
    al.until("the change", is_changed).await;
    let subscribe = body(json!({ "track_sids": ["TR_none"], "subscribe": true }));
    let (status, answer) = call(c, "UpdateSubscriptions", "hall", &subscribe);
    assert_eq!(status, 200, "{answer}");
    let mute = body(json!({ "track_sid": "TR_none", "muted": true }));
    let (status, answer) = call(c, "MutePublishedTrack", "hall", &mute);
    assert_eq!(status, 200, "{answer}");
    assert!(answer["track"].is_null(), "{answer}");
    let unmute = body(json!({ "track_sid": "TR_none", "muted": false }));
    let (status, answer) = call(c, "MutePublishedTrack", "hall", &unmute);
    assert_eq!(
        (status, &answer["code"]),
        (412, &json!("failed_precondition"))
    );
    let data = json!({ "room": "hall", "data": "aGk=", "kind": "RELIABLE" });
    assert_eq!(call(c, "SendData", "hall", &data).0, 200);
    let forward = body(json!({ "destination_room": "lobby" }));
    let (status, answer) = call(c, "ForwardParticipant", "hall", &forward);
    assert_eq!((status, &answer["code"]), (501, &json!("unimplemented")));
    // Nobody answers the call, since there is no data channel.
    let rpc = json!({
        "room": "hall", "destination_identity": "bo", "method": "greet", "response_timeout_ms": 500,
    });
    let (status, answer) = call(c, "PerformRpc", "hall", &rpc);
    assert_eq!(
        (status, &answer["code"]),
        (408, &json!("canceled")),
        "{answer}"
    );
    // What does not exist, exists at no node.
    let nobody = json!({ "room": "hall", "identity": "cy" });
    let nowhere = json!({ "room": "nowhere", "identity": "cy" });
    for (method, room, body) in [
        ("GetParticipant", "hall", &nobody),
        ("RemoveParticipant", "hall", &nobody),
        ("UpdateParticipant", "hall", &nobody),
        ("UpdateSubscriptions", "hall", &nobody),
        ("MutePublishedTrack", "nowhere", &nowhere),
        ("UpdateRoomMetadata", "nowhere", &nowhere),
        ("SendData", "nowhere", &nowhere),
        ("DeleteRoom", "nowhere", &nowhere),
    ] {
        let (status, answer) = call(c, method, room, body);
        assert_eq!(
            (status, &answer["code"]),
            (404, &json!("not_found")),
            "{method}: {answer}"
        );
    }
    assert!(people(c, "nowhere").is_empty());
    // A participant is moved to a room of another node.
    assert_eq!(
        call(a, "CreateRoom", "lobby", &json!({ "name": "lobby" })).0,
        200
    );
    let (status, answer) = call(c, "MoveParticipant", "hall", &forward);
    assert_eq!(status, 200, "{answer}");
    bo.until("its move", |it| it.left.is_some()).await;
    assert_eq!(bo.left, Some(DisconnectReason::Migration));
    // A participant of another node is removed, and a room ended.
    let mut cy = Client::join(b, "cy", "hall").await.unwrap();
    until(c, ("RemoveParticipant", "hall"), &nobody, |status, _| {
        status == 200
    });
    cy.until("its removal", |it| it.left.is_some()).await;
    assert_eq!(cy.left, Some(DisconnectReason::ParticipantRemoved));
    // A node that cannot be reached is told of.
    let mut dan = Client::join(b, "dan", "hall").await.unwrap();
    dan.send(signal_request::Message::Subscription(
        UpdateSubscription::default(),
    ))
    .await;
    let of_dan = json!({ "room": "hall", "identity": "dan", "name": "Dan" });
    until(a, ("GetParticipant", "hall"), &of_dan, |status, _| {
        status == 200
    });
    site.nodes[1].signal("-STOP");
    let (status, answer) = call(a, "UpdateParticipant", "hall", &of_dan);
    assert_eq!(
        (status, &answer["code"]),
        (503, &json!("unavailable")),
        "{answer}"
    );
    site.nodes[1].signal("-CONT");
    site.until_linked();
    let (status, answer) = call(c, "DeleteRoom", "hall", &room);
    assert_eq!(status, 200, "{answer}");
    al.until("the end", |it| it.left.is_some()).await;
    assert_eq!(al.left, Some(DisconnectReason::RoomDeleted));
    for port in [a, b, c] {
        until(port, ("ListRooms", "hall"), &json!({}), |_, list| {
            named(list, "hall").is_none()
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn telephones_are_shown_at_other_nodes_by_their_names() {
    let sip =
        "\n[server]\noutgoing_networks = [\"127.0.0.0/8\"]\n[sip]\nlocal_ip = \"127.0.0.1\"\n";
    let Some((_site, [a, b, c])) = three(sip) else {
        return;
    };
    let mut al = Client::join(b, "al", "hall").await.unwrap();
    // It never answers.
    let telephone = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = telephone.local_addr().unwrap().to_string();
    let trunk = json!({ "trunk": { "name": "t", "address": address, "numbers": ["+1"] } });
    let (status, trunk) = call(a, "SIP/CreateSIPOutboundTrunk", "hall", &trunk);
    assert_eq!(status, 200, "{trunk}");
    let dial = json!({
        "sip_trunk_id": trunk["sip_trunk_id"], "sip_call_to": "+4912345", "room_name": "hall",
        "participant_identity": "phone", "participant_name": "Gran",
        "participant_attributes": { "floor": "2" },
    });
    let (status, called) = call(a, "SIP/CreateSIPParticipant", "hall", &dial);
    assert_eq!(status, 200, "{called}");
    let is_shown = |it: &Client| it.other("phone").is_some_and(|it| it.name == "Gran");
    al.until("the telephone", is_shown).await;
    let phone = al.other("phone").unwrap();
    assert_eq!(phone.sid, called["participant_id"].as_str().unwrap());
    assert_eq!(phone.kind, 3, "a telephone");
    assert_eq!(phone.attributes["floor"], "2");
    assert_eq!(phone.attributes["sip.phoneNumber"], "+4912345");
    let of_phone = json!({ "room": "hall", "identity": "phone" });
    let (status, found) = call(c, "GetParticipant", "hall", &of_phone);
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["kind"], "SIP", "{found}");
    let (status, removed) = call(c, "RemoveParticipant", "hall", &of_phone);
    assert_eq!(status, 200, "{removed}");
    al.until("its removal", |it| it.other("phone").is_none())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_outlives_the_node_that_has_made_it() {
    let Some((mut site, [a, b, c])) = three("") else {
        return;
    };
    let body = json!({ "name": "hall", "metadata": "m", "max_participants": 5 });
    let (status, made) = call(a, "CreateRoom", "hall", &body);
    assert_eq!(status, 200, "{made}");
    let mut al = Client::join(b, "al", "hall").await.unwrap();
    site.nodes[0].running = None;
    site.nodes[1].until("another home", |status| {
        home_of(status, "hall").is_some_and(|home| home["node"] == "b")
    });
    let list = until(c, ("ListRooms", "hall"), &json!({}), |_, list| {
        named(list, "hall").is_some_and(|room| room["num_participants"] == 1)
    });
    let room = named(&list, "hall").unwrap();
    assert_eq!(room["sid"], made["sid"], "{room}");
    assert_eq!(room["metadata"], "m");
    let mut again = Client::join(c, "al", "hall").await.unwrap();
    assert_eq!(again.room.max_participants, 5);
    al.until("its replacement", |it| it.left.is_some()).await;
    assert_eq!(al.left, Some(DisconnectReason::DuplicateIdentity));
    tokio::time::timeout(Duration::from_secs(1), again.take_all())
        .await
        .unwrap();
    assert_eq!(again.left, None);
}
