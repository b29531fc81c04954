//! Video rooms are known at all nodes of a cluster, and their homes decide who may join them: processes,
//! a real nats-server. Skipped with a message where no nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nodes::guests::Guest;
use nodes::{Site, home_of, path_of};
use serde_json::{Value, json};
use server::PATIENCE;

/// A room that only one node has.
const HALL: &str = "\n[[videoroom.room]]\nroom = 555\ndescription = \"Hall\"\npin = \"4321\"\n\
                    secret = \"s3cret\"\npublishers = 2\n";

fn join(room: u64, id: u64) -> Value {
    json!({ "request": "join", "ptype": "publisher", "room": room, "id": id })
}

fn with(mut request: Value, name: &str, value: Value) -> Value {
    request[name] = value;
    request
}

/// Joins at a node. Returns the client and the error code, or `None` if it is in the room.
async fn joined(api: &str, join: Value) -> (Guest, Option<u64>) {
    let mut guest = Guest::idle(api).await;
    guest.send(join, None);
    let error = guest.error();
    (guest, error)
}

/// Asks a plugin until the answer is as it is expected.
fn until(guest: &Guest, request: &Value, holds: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let answer = guest.ask(request.clone());
        if holds(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "{request}: {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Publishes by WHIP. Returns the whole response.
fn whip(url: &str, offer: &str) -> String {
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{offer}",
        offer.len()
    );
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn listed(list: &Value, room: u64) -> Option<&Value> {
    let mut rooms = list["list"].as_array()?.iter();
    rooms.find(|it| it["room"] == room)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_of_the_configuration_of_one_node_is_a_room_of_all() {
    let Some(site) = Site::with(&[("a", ""), ("b", ""), ("c", HALL)]) else {
        return;
    };
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api());
    let eve = Guest::idle(a).await;
    let exists = json!({ "request": "exists", "room": 555 });
    until(&eve, &exists, |answer| answer["exists"] == true);
    let list = json!({ "request": "list" });
    let answer = until(&eve, &list, |answer| listed(answer, 555).is_some());
    let room = listed(&answer, 555).unwrap();
    assert_eq!(room["description"], "Hall");
    assert_eq!(room["pin_required"], true);
    assert_eq!(room["max_publishers"], 2);
    assert_eq!(room["num_participants"], 0);
    // Its id is taken at each node.
    let create = eve.ask(json!({ "request": "create", "room": 555 }));
    assert_eq!(create["error_code"], 427, "{create}");
    // Clients of other nodes join it as at its own.
    let (_, refused) = joined(a, with(join(555, 11), "pin", json!("0000"))).await;
    assert_eq!(refused, Some(433));
    let (_ada, refused) = joined(a, with(join(555, 11), "pin", json!("4321"))).await;
    assert_eq!(refused, None);
    let (mut bob, refused) = joined(b, with(join(555, 22), "pin", json!("4321"))).await;
    assert_eq!(refused, None);
    // It is at home where it is configured.
    let status = site.nodes[1].until("the home of the room", |status| {
        home_of(status, "555").is_some()
    });
    assert_eq!(home_of(&status, "555").unwrap()["node"], "c");
    let cleo = Guest::idle(c).await;
    until(&cleo, &list, |answer| {
        listed(answer, 555).unwrap()["num_participants"] == 2
    });
    let (_, refused) = joined(c, with(join(555, 22), "pin", json!("4321"))).await;
    assert_eq!(refused, Some(436), "the id is taken");
    // A moderator of any node.
    let kick = |secret: &str| json!({ "request": "kick", "room": 555, "id": 22, "secret": secret });
    assert_eq!(eve.ask(kick("guess"))["error_code"], 433);
    assert_eq!(eve.ask(kick("s3cret"))["videoroom"], "success");
    bob.until(|data| data["leaving"] == "ok" && data["reason"] == "kicked");
    // Who ends it, ends it for all, also where nobody uses it.
    let destroy = json!({ "request": "destroy", "room": 555, "secret": "s3cret" });
    let destroyed = eve.ask(destroy);
    assert_eq!(destroyed["videoroom"], "destroyed", "{destroyed}");
    for guest in [&eve, &bob, &cleo] {
        until(guest, &exists, |answer| answer["exists"] == false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_made_once() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    for room in 2_000..2_010 {
        let (ada, bob) = (Guest::idle(a).await, Guest::idle(b).await);
        let create = json!({ "request": "create", "room": room });
        let both = std::thread::scope(|scope| {
            let create = &create;
            let makers = [ada, bob].map(|guest| scope.spawn(move || guest.ask(create.clone())));
            makers.map(|maker| maker.join().unwrap())
        });
        let made = both.iter().filter(|it| it["videoroom"] == "created");
        assert_eq!(made.count(), 1, "{both:?}");
        let taken = both.iter().filter(|it| it["error_code"] == 427);
        assert_eq!(taken.count(), 1, "{both:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_judges_tokens_and_pins_as_they_are_now() {
    let Some(site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api());
    let maker = Guest::idle(a).await;
    let made = maker.ask(json!({
        "request": "create", "room": 777, "secret": "s3cret", "allowed": ["one", "two"],
    }));
    assert_eq!(made["videoroom"], "created", "{made}");
    let eve = Guest::idle(b).await;
    let exists = json!({ "request": "exists", "room": 777 });
    until(&eve, &exists, |answer| answer["exists"] == true);
    let (_, refused) = joined(b, join(777, 1)).await;
    assert_eq!(refused, Some(433), "a token is needed");
    let by = |id: u64, token: &str| with(join(777, id), "token", json!(token));
    let (_, refused) = joined(b, by(1, "three")).await;
    assert_eq!(refused, Some(433));
    let (_ada, refused) = joined(b, by(1, "one")).await;
    assert_eq!(refused, None);
    // What changes is so at once, whichever node was asked.
    let moderator = Guest::idle(c).await;
    let allowed = |action: &str, tokens: Value| {
        json!({
            "request": "allowed", "room": 777, "secret": "s3cret", "action": action,
            "allowed": tokens,
        })
    };
    let changed = moderator.ask(allowed("remove", json!(["one"])));
    assert_eq!(changed["allowed"], json!(["two"]), "{changed}");
    let (_, refused) = joined(b, by(2, "one")).await;
    assert_eq!(refused, Some(433));
    let changed = moderator.ask(allowed("add", json!(["three"])));
    assert_eq!(changed["allowed"], json!(["three", "two"]), "{changed}");
    let (_bob, refused) = joined(b, by(2, "three")).await;
    assert_eq!(refused, None);
    let changed = moderator.ask(allowed("disable", json!([])));
    assert_eq!(changed["videoroom"], "success", "{changed}");
    let (_cleo, refused) = joined(b, join(777, 3)).await;
    assert_eq!(refused, None);
    let wrong = moderator.ask(json!({
        "request": "edit", "room": 777, "secret": "guess", "new_pin": "0000",
    }));
    assert_eq!(wrong["error_code"], 433, "{wrong}");
    let edited = moderator.ask(json!({
        "request": "edit", "room": 777, "secret": "s3cret", "new_pin": "4321",
        "new_description": "Later",
    }));
    assert_eq!(edited["videoroom"], "edited", "{edited}");
    let (_, refused) = joined(b, join(777, 4)).await;
    assert_eq!(refused, Some(429), "the PIN is missing");
    for (api, id) in [(a, 4), (b, 5), (c, 6)] {
        let (_, refused) = joined(api, with(join(777, id), "pin", json!("4321"))).await;
        assert_eq!(refused, None);
    }
    // Each node lists it as it is now.
    let list = json!({ "request": "list" });
    for guest in [&maker, &eve, &moderator] {
        until(guest, &list, |answer| {
            listed(answer, 777).is_some_and(|room| room["description"] == "Later")
        });
    }
    let record = json!({
        "request": "enable_recording", "room": 777, "secret": "s3cret", "record": true,
    });
    let recording = moderator.ask(record);
    assert_eq!(recording["videoroom"], "success", "{recording}");
    let people = json!({ "request": "listparticipants", "room": 777 });
    for guest in [&maker, &eve, &moderator] {
        until(guest, &people, |answer| answer["record"] == true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_place_and_an_id_are_given_once() {
    let Some(site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let apis: Vec<_> = site.nodes.iter().map(|node| node.api()).collect();
    let maker = Guest::idle(apis[0]).await;
    for round in 0..5_u64 {
        let room = 3_000 + round;
        let made = maker.ask(json!({ "request": "create", "room": room, "publishers": 2 }));
        assert_eq!(made["videoroom"], "created", "{made}");
        for api in &apis[1..] {
            let guest = Guest::idle(api).await;
            let exists = json!({ "request": "exists", "room": room });
            until(&guest, &exists, |answer| answer["exists"] == true);
        }
        // Two of three have a place.
        let publish = |id: u64| json!({ "request": "joinandconfigure", "ptype": "publisher", "room": room, "id": id });
        let mut guests = Vec::new();
        for (index, api) in apis.iter().enumerate() {
            guests.push(Guest::joining(api, publish(10 + index as u64)).await);
        }
        let refused: Vec<_> = guests.iter_mut().map(Guest::error).collect();
        let full = refused.iter().filter(|code| **code == Some(432)).count();
        assert_eq!(full, 1, "{refused:?}");
        // One of three has the id.
        let mut guests = Vec::new();
        for api in &apis {
            let guest = Guest::idle(api).await;
            guest.send(join(room, 99), None);
            guests.push(guest);
        }
        let refused: Vec<_> = guests.iter_mut().map(Guest::error).collect();
        let taken = refused.iter().filter(|code| **code == Some(436)).count();
        assert_eq!(taken, 2, "{refused:?}");
        // Who is in the room already, and publishes later, needs a place, too.
        let mut late = Guest::idle(apis[2]).await;
        late.send(join(room, 77), None);
        assert_eq!(late.error(), None);
        let offer = late.offer();
        late.send(json!({ "request": "publish" }), Some(("offer", &offer)));
        let refused = late.until(|data| data.get("error").is_some());
        assert_eq!(refused["error_code"], 432, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rooms_wait_for_the_bus_and_known_ones_do_not() {
    let local = "without_bus = \"local\"\n";
    let Some(mut site) = Site::with(&[("a", HALL), ("b", ""), ("c", local)]) else {
        return;
    };
    let api = |site: &Site, index: usize| site.nodes[index].api().to_owned();
    let [a, b, c] = [0, 1, 2].map(|index| api(&site, index));
    let (_ada, refused) = joined(&a, with(join(555, 11), "pin", json!("4321"))).await;
    assert_eq!(refused, None);
    let eve = Guest::idle(&b).await;
    let exists = json!({ "request": "exists", "room": 555 });
    until(&eve, &exists, |answer| answer["exists"] == true);
    site.stop_bus();
    for node in &site.nodes {
        node.until("the loss of the bus", |status| status["confirmed"] == false);
    }
    let (_bob, refused) = joined(&b, with(join(555, 22), "pin", json!("4321"))).await;
    assert_eq!(refused, None, "a known room");
    let mut cleo = Guest::idle(&b).await;
    cleo.send(join(1_234, 1), None);
    let refused = cleo.until(|data| data["videoroom"] == "joined" || data.get("error").is_some());
    assert_eq!(refused["error_code"], 499, "{refused}");
    let text = refused["error"].as_str().unwrap();
    assert!(text.contains("cluster.without_bus"), "{text}");
    let refused = cleo.ask(json!({ "request": "create", "room": 888 }));
    assert_eq!(refused["error_code"], 499, "{refused}");
    let mut peer = Guest::idle(&b).await;
    let answer = whip(&path_of(&b, "/whip/videoroom/1234"), &peer.offer());
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    // This node opens what is new.
    let (_dan, refused) = joined(&c, join(1_234, 1)).await;
    assert_eq!(refused, None);
    let mut dan = Guest::idle(&c).await;
    let made = dan.ask(json!({ "request": "create", "room": 888 }));
    assert_eq!(made["videoroom"], "created", "{made}");
    dan.send(join(888, 1), None);
    assert_eq!(dan.error(), None);
}
