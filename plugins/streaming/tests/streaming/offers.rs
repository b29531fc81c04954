//! Refused offers of clients, and the state that stays as it was.

use portunus_core::Broadcast;
use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};

use crate::world::{World, answer_to, ask, camera, create, refused, result, sections, status};

/// The m-lines of camera 7 in order, and those of a viewer of its video who requested its audio
/// later.
const ALL: [(Line, &str); 3] = [(Line::Audio, "a"), (Line::Video, "v"), (Line::Data, "d")];
const LATER: [(Line, &str); 2] = [(Line::Video, "v"), (Line::Audio, "a")];

/// The code that `body` with an offer of these m-lines is refused with.
async fn offered(client: &mut TestClient, body: Value, lines: &[(Line, &str)]) -> Value {
    let kinds: Vec<_> = lines.iter().map(|(line, _)| *line).collect();
    let mut offer = jsep("offer", "abcd", &kinds);
    let mut sdp = offer["sdp"].as_str().unwrap().to_owned();
    let mids: Vec<_> = lines.iter().map(|(_, mid)| *mid).collect();
    let numbers: Vec<_> = (0..mids.len()).map(|number| number.to_string()).collect();
    let group = |mids: String| format!("a=group:BUNDLE {mids}\r\n");
    sdp = sdp.replace(&group(numbers.join(" ")), &group(mids.join(" ")));
    for (number, mid) in numbers.iter().zip(mids) {
        let line = |mid: &str| format!("a=mid:{mid}\r\n");
        sdp = sdp.replace(&line(number), &line(mid));
    }
    offer["sdp"] = json!(sdp);
    let members = json!({ "body": body, "jsep": offer });
    let reply = client.on_handle("message", members).await;
    let data = match reply["janus"].as_str() {
        Some("ack") => client.event().await,
        _ => reply["plugindata"]["data"].clone(),
    };
    assert!(data["error_code"].is_u64(), "{reply} {data}");
    data["error_code"].clone()
}

fn mids(world: &World, peer: portunus_core::media::PeerId) -> Vec<String> {
    let mut mids: Vec<_> = world.routes(peer).into_iter().map(|it| it.1).collect();
    mids.sort();
    mids
}

/// Answers the offer for `body`. Returns its m-lines as mids and directions.
async fn taken(world: &World, client: &mut TestClient, body: Value) -> Vec<(String, String)> {
    client.message(body, None).await;
    let (data, offer) = client.event_with_jsep().await;
    let offer = offer.unwrap_or_else(|| panic!("no offer: {data}"));
    let sdp = offer["sdp"].as_str().unwrap();
    let start = json!({ "request": "start" });
    client.message(start, Some(answer_to(sdp))).await;
    assert_eq!(client.event().await["result"]["status"], "started");
    assert!(!world.server.peers().is_empty());
    let value = |lines: &[&str], of: &[&str]| {
        let found = of.iter().find_map(|start| {
            let mut found = lines.iter().filter_map(|line| line.strip_prefix(start));
            found.next().map(str::to_owned)
        });
        found.unwrap_or_default()
    };
    let directions = ["a=sendonly", "a=inactive", "a=sendrecv"];
    sections(sdp)
        .iter()
        .map(|lines| {
            let direction = directions.into_iter().find(|it| lines.contains(it));
            let direction = direction.unwrap_or_default().replace("a=", "");
            (value(lines, &["a=mid:"]), direction)
        })
        .collect()
}

#[tokio::test]
async fn an_offer_that_is_refused_leaves_nothing_behind() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["pin"] = json!("1234");
    create(&mut client, body).await;
    let wrong = json!({ "request": "watch", "id": 7, "pin": "4321" });
    let unknown = json!({ "request": "dance" });
    let idle = json!({ "request": "pause" });
    let managing = json!({ "request": "info", "id": 9 });
    for (code, body) in [
        (457, wrong.clone()),
        (452, unknown),
        (455, idle),
        (455, managing),
    ] {
        assert_eq!(offered(&mut client, body, &ALL).await, code);
        assert!(world.server.peers().is_empty());
    }
    // Our offer can be made.
    let watch = json!({ "id": 7, "pin": "1234" });
    let peer = world.watch(&mut client, watch.clone()).await;
    world.connect(&mut client, peer).await;
    let start = json!({ "request": "start" });
    for (code, body) in [(457, wrong), (461, start)] {
        assert_eq!(offered(&mut client, body, &ALL).await, code);
        assert_eq!(world.watch(&mut client, watch.clone()).await, peer);
    }
    assert_eq!(mids(&world, peer), ["a", "d", "v"]);
}

#[tokio::test]
async fn an_offer_of_ours_that_is_lost_by_one_that_is_refused_is_made_again() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    create(&mut client, camera(8)).await;
    let (mut viewer, peer) = world.viewer(json!({ "id": 7, "media": ["v"] })).await;
    let watch = json!({ "request": "watch", "id": 7, "media": ["v", "a"] });
    viewer.message(watch, None).await;
    assert_eq!(viewer.event().await, status("preparing"));
    let other = json!({ "request": "watch", "id": 8 });
    assert_eq!(offered(&mut viewer, other.clone(), &LATER).await, 460);
    let offer = world.updated(&mut viewer).await;
    assert_eq!(sections(&offer).len(), 2);
    assert_eq!(mids(&world, peer), ["a", "v"]);

    // Before the first negotiation, nothing is left.
    let watch = json!({ "request": "watch", "id": 7 });
    client.message(watch.clone(), None).await;
    assert_eq!(client.event().await, status("preparing"));
    assert_eq!(offered(&mut client, other, &ALL).await, 460);
    assert_eq!(client.next().await["janus"], "hangup");
    client.message(watch, None).await;
    assert_eq!(client.event().await, status("preparing"));
}

#[tokio::test]
async fn what_is_not_said_again_stays_as_it_was() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let watch = json!({ "id": 7, "media": ["v"] });
    let (mut client, peer) = world.viewer(watch).await;
    let line = |mid: &str, direction: &str| (mid.to_owned(), direction.to_owned());
    let again = |more: Value| {
        let mut body = json!({ "request": "watch", "id": 7 });
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        body
    };
    for more in [
        json!({}),
        json!({ "restart": true }),
        json!({ "substream": 1 }),
    ] {
        let lines = taken(&world, &mut client, again(more)).await;
        assert_eq!(lines, [line("v", "sendonly")]);
        assert_eq!(mids(&world, peer), ["v"]);
    }
    // An empty list stands for all, of which a kind can be left out.
    let all = json!({ "media": [], "offer_data": false });
    let lines = taken(&world, &mut client, again(all)).await;
    assert_eq!(lines, [line("v", "sendonly"), line("a", "sendonly")]);
    let lines = taken(&world, &mut client, again(json!({ "restart": true }))).await;
    assert_eq!(lines, [line("v", "sendonly"), line("a", "sendonly")]);
    let lines = taken(&world, &mut client, again(json!({ "offer_audio": false }))).await;
    assert_eq!(lines, [line("v", "sendonly"), line("a", "inactive")]);
    assert_eq!(mids(&world, peer), ["v"]);
    // A restart applies a list of streams.
    let subset = json!({ "restart": true, "media": ["a"] });
    let lines = taken(&world, &mut client, again(subset)).await;
    assert_eq!(lines, [line("v", "inactive"), line("a", "sendonly")]);
    assert_eq!(mids(&world, peer), ["a"]);
}

#[tokio::test]
async fn kinds_are_left_out_from_the_start() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let watch = json!({ "id": 7, "offer_audio": false });
    let (_viewer, peer) = world.viewer(watch).await;
    assert_eq!(mids(&world, peer), ["d", "v"]);
}

#[tokio::test]
async fn an_answer_to_an_update_ends_no_pause() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let (mut viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    let is_open = || world.routes(peer).iter().any(|it| it.2);
    ask(&mut viewer, json!({ "request": "pause" })).await;
    let restart = json!({ "request": "watch", "id": 7, "restart": true });
    assert_eq!(taken(&world, &mut viewer, restart).await.len(), 3);
    assert!(!is_open());
    let started = ask(&mut viewer, json!({ "request": "start" })).await;
    assert_eq!(started, status("started"));
    assert!(is_open());
    // A new `watch` resumes the media.
    ask(&mut viewer, json!({ "request": "pause" })).await;
    let again = json!({ "request": "watch", "id": 7 });
    taken(&world, &mut viewer, again).await;
    assert!(is_open());
}

#[tokio::test]
async fn nobody_has_the_id_0() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    for request in ["watch", "publish", "info", "destroy"] {
        let body = json!({ "request": request, "id": 0 });
        assert_eq!(refused(&mut client, body).await, 455, "{request}");
    }
    // It is not an id for WHIP and WHEP either.
    assert_eq!(world.plugin.id_of("0"), None);
    assert_eq!(world.plugin.id_of("7").as_deref(), Some("7"));
    let (mut viewer, _) = world.viewer(json!({ "id": 7 })).await;
    let switch = |id: u64| json!({ "request": "switch", "id": id });
    assert_eq!(refused(&mut viewer, switch(0)).await, 455);
    let switched = result(json!({ "switched": "ok", "id": 7 }));
    assert_eq!(ask(&mut viewer, switch(7)).await, switched);
}

#[tokio::test]
async fn streams_of_a_file_have_numbers() {
    let world = World::new().await;
    let mut client = world.client().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/files/tests/data");
    // A name must not leave the folder.
    let folder = std::fs::canonicalize(folder).unwrap();
    for (id, name, expected) in [
        (1, "tone.alaw", vec!["0"]),
        (2, "vp8-opus.webm", vec!["0", "1"]),
    ] {
        let filename = folder.join(name).display().to_string();
        let body =
            json!({ "request": "create", "type": "ondemand", "id": id, "filename": filename });
        create(&mut client, body).await;
        let (_viewer, peer) = world.viewer(json!({ "id": id })).await;
        assert_eq!(mids(&world, peer), expected);
    }
}
