//! Publishing to a mountpoint, and watching what is published.

use std::sync::Arc;

use portunus_core::media::{Event, SourceRef};
use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};

use crate::world::{World, ask, create, refused, result, status};

fn studio() -> Value {
    json!({
        "request": "create", "type": "whip", "id": 7, "token": "t0k", "bufferkf_ms": 1000,
        "media": [{ "type": "audio", "mid": "a", "codec": "opus" }, { "type": "video", "mid": "v" }],
    })
}

fn publish(token: &str) -> Value {
    json!({ "request": "publish", "id": 7, "token": token })
}

async fn try_publish(client: &mut TestClient, body: Value, lines: &[Line]) -> Value {
    let offer = jsep("offer", "abcd", lines);
    client.message(body, Some(offer)).await;
    client.event().await
}

#[tokio::test]
async fn viewers_get_what_is_published_whenever_they_come() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    // The audio's codec is configured, and the publisher chooses the video's.
    let (mut early, early_peer) = world.viewer(json!({ "id": 7 })).await;
    assert!(world.routes(early_peer).is_empty());

    let mut publisher = world.client().await;
    let data = try_publish(
        &mut publisher,
        publish("t0k"),
        &[Line::Audio, Line::Simulcast],
    )
    .await;
    assert_eq!(data, status("publishing"));
    let peer = world.last_peer();
    world.come_up(peer).await;
    assert_eq!(publisher.next().await["janus"], "webrtcup");
    let sources: Vec<_> = world.routes(early_peer);
    assert_eq!(sources.len(), 1);
    assert!(matches!(sources[0].0, SourceRef::Track(track) if track.peer == peer));
    let info = json!({ "request": "info", "id": 7 });
    let info = admin.request(info).await["info"].clone();
    assert_eq!(info["publishing"], true);
    assert_eq!(info["media"][1]["codec"], "vp8");
    assert_eq!(info["media"][1]["videosimulcast"], true);

    let (_late, late_peer) = world.viewer(json!({ "id": 7 })).await;
    assert_eq!(world.routes(late_peer).len(), 2);
    // The first viewer gets an offer of the video too.
    world.updated(&mut early).await;
    assert_eq!(world.routes(early_peer).len(), 2);
}

#[tokio::test]
async fn viewers_follow_a_publisher_with_another_codec() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let mut first = world.client().await;
    try_publish(&mut first, publish("t0k"), &[Line::Audio, Line::Video]).await;
    world.come_up(world.last_peer()).await;
    let (mut ours, our_peer) = world.viewer(json!({ "id": 7 })).await;
    // This viewer cannot get an offer, because it made its own.
    let mut theirs = world.client().await;
    let watch = json!({ "request": "watch", "id": 7 });
    let lines = [Line::Audio, Line::Video];
    theirs
        .message(watch.clone(), Some(jsep("offer", "efgh", &lines)))
        .await;
    assert_eq!(theirs.event().await, status("starting"));
    let their_peer = world.last_peer();
    world.connect(&mut theirs, their_peer).await;
    // This viewer declined new offers.
    let mut fixed = world.client().await;
    let watch = json!({ "id": 7, "renegotiate": false });
    let fixed_peer = world.watch(&mut fixed, watch).await;
    world.connect(&mut fixed, fixed_peer).await;
    for peer in [our_peer, their_peer, fixed_peer] {
        assert_eq!(world.routes(peer).len(), 2);
    }
    assert_eq!(first.next().await["janus"], "webrtcup");
    ask(&mut first, json!({ "request": "unpublish" })).await;
    assert_eq!(first.next().await["janus"], "hangup");

    let mut second = world.client().await;
    let mut offer = jsep("offer", "abcd", &[Line::Audio, Line::Video]);
    let sdp = offer["sdp"].as_str().unwrap().replace("VP8/", "VP9/");
    offer["sdp"] = json!(sdp);
    second.message(publish("t0k"), Some(offer)).await;
    assert_eq!(second.event().await, status("publishing"));
    world.come_up(world.last_peer()).await;
    assert_eq!(second.next().await["janus"], "webrtcup");
    // VP9 is not sent on an m-line of VP8.
    assert_eq!(world.routes(our_peer).len(), 1);
    let offer = world.updated(&mut ours).await;
    assert!(offer.contains(" VP9/90000"), "{offer}");
    assert_eq!(world.routes(our_peer).len(), 2);
    for client in [&mut theirs, &mut fixed] {
        assert_eq!(client.event().await, status("stopped"));
        assert_eq!(client.next().await["janus"], "hangup");
    }
    let info = json!({ "request": "info", "id": 7, "secret": "" });
    assert_eq!(admin.request(info).await["info"]["viewers"], 1);
}

#[tokio::test]
async fn who_can_be_offered_nothing_later_has_to_wait_for_a_publisher() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, studio()).await;
    let watch = json!({ "request": "watch", "id": 7, "renegotiate": false });
    assert_eq!(refused(&mut client, watch).await, 460);
    let watch = json!({ "request": "watch", "id": 7 });
    let offer = jsep("offer", "efgh", &[Line::Audio, Line::Video]);
    client.message(watch.clone(), Some(offer)).await;
    assert_eq!(client.event().await["error_code"], 460);
    // The audio's codec is known before.
    let offer = jsep("offer", "efgh", &[Line::Audio]);
    client.message(watch, Some(offer)).await;
    assert_eq!(client.event().await, status("starting"));
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_vanished_gives_way() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let lines = [Line::Audio, Line::Simulcast];
    let mut first = world.client().await;
    try_publish(&mut first, publish("t0k"), &lines).await;
    let first_peer = world.last_peer();
    world.come_up(first_peer).await;
    assert_eq!(first.next().await["janus"], "webrtcup");
    let (_viewer, viewer_peer) = world.viewer(json!({ "id": 7 })).await;
    let media =
        async |first: &mut TestClient, mid: &str, substream: Option<u8>, receiving: bool| {
            let mid = portunus_core::Mid::new(mid).unwrap();
            let audio = substream.is_none();
            let event = Event::Media {
                mid,
                audio,
                receiving,
                substream,
            };
            world.server.happen(first_peer, event).await;
            assert_eq!(first.next().await["janus"], "media");
        };
    media(&mut first, "0", None, true).await;
    for substream in 0..3 {
        media(&mut first, "1", Some(substream), true).await;
    }
    let mut second = world.client().await;
    // The pause of one layer is not silence.
    media(&mut first, "0", None, false).await;
    media(&mut first, "1", Some(2), false).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &lines).await["error_code"],
        460
    );
    media(&mut first, "1", Some(1), false).await;
    media(&mut first, "1", Some(0), false).await;
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &lines).await["error_code"],
        460
    );
    assert_eq!(world.routes(viewer_peer).len(), 2);
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &lines).await,
        status("publishing")
    );
    assert_eq!(first.event().await, status("replaced"));
    assert_eq!(first.next().await["janus"], "hangup");
    assert!(world.routes(viewer_peer).is_empty());
    world.come_up(world.last_peer()).await;
    assert_eq!(second.next().await["janus"], "webrtcup");
    assert_eq!(world.routes(viewer_peer).len(), 2);
    // The end of the former publisher does not end the new one.
    let info = json!({ "request": "info", "id": 7 });
    assert_eq!(admin.request(info).await["info"]["publishing"], true);
}

#[tokio::test(start_paused = true)]
async fn media_that_flows_on_over_a_renegotiation_is_no_silence() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let lines = [Line::Audio, Line::Video];
    let mut first = world.client().await;
    try_publish(&mut first, publish("t0k"), &lines).await;
    let peer = world.last_peer();
    world.come_up(peer).await;
    assert_eq!(first.next().await["janus"], "webrtcup");
    let media = Event::Media {
        mid: portunus_core::Mid::new("1").unwrap(),
        audio: false,
        receiving: true,
        substream: None,
    };
    world.server.happen(peer, media).await;
    assert_eq!(first.next().await["janus"], "media");
    assert_eq!(
        try_publish(&mut first, publish("t0k"), &lines).await,
        status("publishing")
    );
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let list = admin.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["media"][1]["age_ms"], 0);
    let mut second = world.client().await;
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &lines).await["error_code"],
        460
    );
    // Its end is noticed nevertheless.
    let media = Event::Media {
        mid: portunus_core::Mid::new("1").unwrap(),
        audio: false,
        receiving: false,
        substream: None,
    };
    world.server.happen(peer, media).await;
    assert_eq!(first.next().await["janus"], "media");
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &lines).await,
        status("publishing")
    );
}

#[tokio::test]
async fn viewers_follow_media_that_moves_to_another_m_line() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let mut publisher = world.client().await;
    let lines = [Line::Audio, Line::Video];
    try_publish(&mut publisher, publish("t0k"), &lines).await;
    let peer = world.last_peer();
    world.come_up(peer).await;
    assert_eq!(publisher.next().await["janus"], "webrtcup");
    let (_viewer, viewer_peer) = world.viewer(json!({ "id": 7 })).await;
    let lines_of = |world: &World| {
        let routes = world.routes(viewer_peer).into_iter();
        let mut lines: Vec<_> = routes
            .map(|(from, to, _)| (from.track().unwrap().mid.as_str().to_owned(), to))
            .collect();
        lines.sort();
        lines
    };
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(lines_of(&world), [pair("0", "a"), pair("1", "v")]);
    // The first audio and video m-lines are refused now, and the video comes on a third one.
    let offer = |refused: &[&str]| {
        let mut offer = jsep("offer", "abcd", &[Line::Audio, Line::Video, Line::Video]);
        let sdp = offer["sdp"].as_str().unwrap().to_owned();
        let mut sections = sdp.split("m=");
        let mut text = sections.next().unwrap().to_owned();
        for section in sections {
            let is_refused = refused
                .iter()
                .any(|mid| section.contains(&format!("a=mid:{mid}\r\n")));
            let section = match is_refused {
                true => section.replace("a=sendrecv", "a=inactive"),
                false => section.to_owned(),
            };
            text.push_str("m=");
            text.push_str(&section);
        }
        offer["sdp"] = json!(text);
        offer
    };
    publisher
        .message(publish("t0k"), Some(offer(&["0", "1"])))
        .await;
    assert_eq!(publisher.event().await, status("publishing"));
    assert_eq!(lines_of(&world), [pair("2", "v")]);
    let list = admin.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["media"][0].get("age_ms"), None, "no audio");
    assert!(list["list"][0]["media"][1].get("age_ms").is_some());
}

#[tokio::test]
async fn one_publishes_at_a_time_and_viewers_outlast_it() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let lines = [Line::Audio, Line::Video];
    let mut first = world.client().await;
    assert_eq!(
        try_publish(&mut first, publish("t0k"), &lines).await,
        status("publishing")
    );
    let first_peer = world.last_peer();
    world.come_up(first_peer).await;
    let (_viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    assert_eq!(world.routes(peer).len(), 2);
    let mut second = world.client().await;
    let refused = try_publish(&mut second, publish("t0k"), &lines).await;
    assert_eq!(refused["error_code"], 460);

    assert_eq!(first.next().await["janus"], "webrtcup");
    let unpublished = ask(&mut first, json!({ "request": "unpublish" })).await;
    assert_eq!(unpublished, result(json!({ "status": "unpublished" })));
    assert_eq!(first.next().await["janus"], "hangup");
    assert!(world.routes(peer).is_empty());
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &lines).await,
        status("publishing")
    );
    world.come_up(world.last_peer()).await;
    assert_eq!(second.next().await["janus"], "webrtcup");
    assert_eq!(world.routes(peer).len(), 2);
    // A hangup ends it too.
    second.on_handle("hangup", json!({})).await;
    let list = admin.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["media"][0].get("age_ms"), None);
    assert_eq!(
        try_publish(&mut first, publish("t0k"), &lines).await,
        status("publishing")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_publishers_at_once_one_has_the_mountpoint_and_the_others_are_told_before_anything_ends()
{
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(world.client().await);
    }
    for _ in 0..100 {
        let start = Arc::new(tokio::sync::Barrier::new(clients.len()));
        let asked = clients.drain(..).map(|mut client| {
            let start = start.clone();
            tokio::spawn(async move {
                start.wait().await;
                let answered = try_publish(&mut client, publish("t0k"), &[Line::Audio]).await;
                (client, answered)
            })
        });
        let asked: Vec<_> = asked.collect();
        let mut answers = Vec::new();
        for asked in asked {
            answers.push(asked.await.unwrap());
        }
        let mut publishing = 0;
        for (mut client, answered) in answers {
            if answered == status("publishing") {
                publishing += 1;
                ask(&mut client, json!({ "request": "unpublish" })).await;
                assert_eq!(client.next().await["janus"], "hangup");
            } else {
                assert_eq!(answered["error_code"], 460);
                client.expect_silence().await;
            }
            clients.push(client);
        }
        assert_eq!(publishing, 1);
        assert!(world.server.peers().is_empty());
    }
}

#[tokio::test]
async fn a_publisher_shows_the_token_or_the_secret() {
    let world = World::new().await;
    let mut admin = world.client().await;
    let mut body = studio();
    body["secret"] = json!("s3");
    create(&mut admin, body).await;
    let lines = [Line::Audio];
    let mut client = world.client().await;
    let without = json!({ "request": "publish", "id": 7 });
    let code = async |client: &mut TestClient, body: Value| {
        try_publish(client, body, &lines).await["error_code"].clone()
    };
    assert_eq!(code(&mut client, without).await, 453);
    assert_eq!(code(&mut client, publish("no")).await, 457);
    assert_eq!(
        code(&mut client, json!({ "request": "publish", "id": 8 })).await,
        455
    );
    assert_eq!(refused(&mut client, publish("t0k")).await, 461);
    let by_secret = json!({ "request": "publish", "id": 7, "secret": "s3" });
    assert_eq!(
        try_publish(&mut client, by_secret, &lines).await,
        status("publishing")
    );
    let watch = json!({ "request": "watch", "id": 7 });
    assert_eq!(refused(&mut client, watch).await, 460);
}

#[tokio::test]
async fn what_comes_in_is_known_by_its_age_and_a_destroyed_mountpoint_ends_it() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let mut client = world.client().await;
    try_publish(&mut client, publish("t0k"), &[Line::Audio, Line::Video]).await;
    let peer = world.last_peer();
    world.come_up(peer).await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    let media = Event::Media {
        mid: portunus_core::Mid::new("0").unwrap(),
        audio: true,
        receiving: true,
        substream: None,
    };
    world.server.happen(peer, media).await;
    assert_eq!(client.next().await["janus"], "media");
    let list = admin.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["media"][0]["age_ms"], 0);
    admin
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    assert_eq!(client.event().await, status("stopped"));
    assert_eq!(client.next().await["janus"], "hangup");
}

#[tokio::test]
async fn a_disabled_mountpoint_closes_the_gates() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let mut client = world.client().await;
    try_publish(&mut client, publish("t0k"), &[Line::Audio, Line::Video]).await;
    world.come_up(world.last_peer()).await;
    let (_viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    for (request, open) in [("disable", false), ("enable", true)] {
        admin.request(json!({ "request": request, "id": 7 })).await;
        assert!(world.routes(peer).iter().all(|route| route.2 == open));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_way_to_an_offer_that_is_of_no_use() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let mut first = world.client().await;
    try_publish(&mut first, publish("t0k"), &[Line::Audio, Line::Video]).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let mut second = world.client().await;
    let refused = try_publish(&mut second, publish("t0k"), &[Line::Data]).await;
    assert_eq!(refused["error_code"], 452);
    first.expect_silence().await;
    assert_eq!(world.server.peers().len(), 1);
    assert_eq!(
        try_publish(&mut second, publish("t0k"), &[Line::Audio]).await,
        status("publishing")
    );
    assert_eq!(first.event().await, status("replaced"));
}

#[tokio::test]
async fn a_publisher_goes_on_after_what_it_asked_in_vain() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, studio()).await;
    let lines = [Line::Audio, Line::Video];
    let mut client = world.client().await;
    try_publish(&mut client, publish("t0k"), &lines).await;
    world.come_up(world.last_peer()).await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    // It does not watch, so there is nothing to stop.
    assert_eq!(
        ask(&mut client, json!({ "request": "stop" })).await,
        status("idle")
    );
    client.expect_silence().await;
    assert_eq!(world.server.peers().len(), 1);
    // A refused second offer leaves the first negotiation as it was.
    let refused = try_publish(&mut client, publish("no"), &lines).await;
    assert_eq!(refused["error_code"], 457);
    assert_eq!(world.server.peers().len(), 1);
    let (_viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    assert_eq!(world.routes(peer).len(), 2);
    assert_eq!(
        try_publish(&mut client, publish("t0k"), &lines).await,
        status("publishing")
    );
    let unpublished = ask(&mut client, json!({ "request": "unpublish" })).await;
    assert_eq!(unpublished, result(json!({ "status": "unpublished" })));
    assert_eq!(client.next().await["janus"], "hangup");
}

#[tokio::test]
async fn payload_types_of_publishers_do_not_meet_those_that_are_configured() {
    let world = World::new().await;
    let mut admin = world.client().await;
    let mut body = studio();
    body["media"][0]["pt"] = json!(96);
    create(&mut admin, body).await;
    let mut publisher = world.client().await;
    // Its video is 96, too.
    try_publish(&mut publisher, publish("t0k"), &[Line::Audio, Line::Video]).await;
    let info = json!({ "request": "info", "id": 7 });
    let info = admin.request(info).await["info"].clone();
    assert_eq!(info["media"][0]["pt"], 96);
    assert_eq!(info["media"][1]["codec"], "vp8");
    assert_ne!(info["media"][1]["pt"], 96);
}

#[tokio::test]
async fn of_what_is_encrypted_end_to_end_no_keyframe_is_looked_for() {
    for e2ee in [false, true] {
        let world = World::new().await;
        let mut admin = world.client().await;
        let mut body = studio();
        body["e2ee"] = json!(e2ee);
        create(&mut admin, body).await;
        let mut publisher = world.client().await;
        try_publish(&mut publisher, publish("t0k"), &[Line::Audio, Line::Video]).await;
        let requested = world.server.requested();
        assert_eq!(requested.opaque.contains(&world.last_peer()), e2ee);
        assert_eq!(requested.kept.is_empty(), e2ee);
    }
}
