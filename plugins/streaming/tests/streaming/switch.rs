//! Switches to another mountpoint without a negotiation.

use portunus_core::media::SourceRef;
use serde_json::{Value, json};

use crate::world::{World, answer_to, ask, camera, create, refused, result, sections, status};

fn switch(id: u64) -> Value {
    json!({ "request": "switch", "id": id })
}

#[tokio::test]
async fn streams_change_their_sources_by_place() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let mut other = camera(8);
    other["media"][1]["mid"] = json!("front");
    create(&mut admin, other).await;
    let ingests = world.server.requested().ingests;
    let (mut client, peer) = world.viewer(json!({ "id": 7, "media": ["v"] })).await;
    for (id, index) in [(8, 4), (7, 1), (8, 4)] {
        let switched = ask(&mut client, switch(id)).await;
        assert_eq!(switched, result(json!({ "switched": "ok", "id": id })));
        let source = SourceRef::from(ingests[index].id);
        assert_eq!(world.routes(peer), [(source, "v".to_owned(), true)]);
    }
    let viewers = async |admin: &mut portunus_core::testing::TestClient, id: u64| {
        let info = json!({ "request": "info", "id": id });
        admin.request(info).await["info"]["viewers"].clone()
    };
    assert_eq!(viewers(&mut admin, 7).await, 0);
    assert_eq!(viewers(&mut admin, 8).await, 1);
    // The stream has the mid of the other mountpoint, and the m-line keeps its own.
    for mid in ["front", "v"] {
        let body = json!({ "request": "configure", "mid": mid, "send": mid == "v" });
        ask(&mut client, body).await;
        assert_eq!(world.routes(peer)[0].2, mid == "v");
    }
}

#[tokio::test]
async fn what_cannot_take_its_place_is_refused() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let mut vp9 = camera(8);
    vp9["media"][1]["codec"] = json!("vp9");
    create(&mut admin, vp9).await;
    let mut secret = camera(9);
    secret["pin"] = json!("1234");
    create(&mut admin, secret).await;
    let (mut client, peer) = world.viewer(json!({ "id": 7 })).await;
    assert_eq!(refused(&mut client, switch(8)).await, 458);
    assert_eq!(refused(&mut client, switch(10)).await, 455);
    assert_eq!(
        refused(&mut client, json!({ "request": "switch" })).await,
        453
    );
    assert_eq!(refused(&mut client, switch(9)).await, 453);
    let mut right = switch(9);
    right["pin"] = json!("1234");
    let before = world.routes(peer);
    assert_eq!(ask(&mut client, right).await["result"]["id"], 9);
    assert_ne!(world.routes(peer), before);
}

#[tokio::test]
async fn nothing_is_negotiated_for_what_the_other_mountpoint_has_else() {
    let world = World::new().await;
    let mut admin = world.client().await;
    let h264 = |id: u64, fmtp: &str| {
        let mut body = camera(id);
        let video =
            json!({ "type": "video", "mid": "v", "port": 0, "codec": "h264", "fmtp": fmtp });
        body["media"] = json!([video]);
        body
    };
    create(
        &mut admin,
        h264(7, "profile-level-id=42e01f;packetization-mode=1"),
    )
    .await;
    let mut more = h264(8, "profile-level-id=42e01f;packetization-mode=1;x=1");
    let audio = json!({ "type": "audio", "mid": "a", "port": 0, "codec": "opus" });
    more["media"].as_array_mut().unwrap().push(audio);
    create(&mut admin, more).await;
    let (mut client, peer) = world.viewer(json!({ "id": 7 })).await;
    ask(&mut client, switch(8)).await;
    for request in ["disable", "enable"] {
        admin.request(json!({ "request": request, "id": 8 })).await;
    }
    let started = ask(&mut client, json!({ "request": "start" })).await;
    assert_eq!(started, status("started"));
    client.expect_silence().await;
    assert_eq!(world.routes(peer).len(), 1);
    // Further streams are for viewers who request them.
    world
        .watch(&mut client, json!({ "id": 8, "media": ["v", "a"] }))
        .await;
    assert_eq!(world.routes(peer).len(), 2);
}

#[tokio::test]
async fn what_is_not_watched_any_more_keeps_nobody() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let mut other = camera(8);
    other["media"][0]["codec"] = json!("pcmu");
    other["media"][1]["mid"] = json!("front");
    other["media"][2] = json!({ "type": "audio", "mid": "v", "port": 0, "codec": "pcma" });
    create(&mut admin, other).await;
    let (mut client, peer) = world.viewer(json!({ "id": 7 })).await;
    assert_eq!(refused(&mut client, switch(8)).await, 458);
    world
        .watch(&mut client, json!({ "id": 7, "media": ["v"] }))
        .await;
    let switched = ask(&mut client, switch(8)).await;
    assert_eq!(switched, result(json!({ "switched": "ok", "id": 8 })));
    assert_eq!(world.routes(peer).len(), 1);
    // Free m-lines are reused, and none occurs twice.
    client
        .message(json!({ "request": "watch", "id": 8, "media": [] }), None)
        .await;
    let (_, offer) = client.event_with_jsep().await;
    let offer = offer.unwrap();
    let sdp = offer["sdp"].as_str().unwrap();
    let lines = sections(sdp);
    let codecs = [" PCMU/8000", " VP8/90000", "", " PCMA/8000"];
    assert_eq!(lines.len(), codecs.len(), "{sdp}");
    for (line, codec) in lines.iter().zip(codecs) {
        assert!(line.iter().any(|it| it.ends_with(codec)), "{codec}: {sdp}");
    }
    let mid = |line: &Vec<&str>| {
        let mut mids = line.iter().filter(|it| it.starts_with("a=mid:"));
        mids.next().unwrap().to_string()
    };
    let mids: std::collections::HashSet<_> = lines.iter().map(mid).collect();
    assert_eq!(mids.len(), 4, "{sdp}");
    let start = json!({ "request": "start" });
    client.message(start, Some(answer_to(sdp))).await;
    assert_eq!(client.event().await, status("started"));
    assert_eq!(world.routes(peer).len(), 3);
}

#[tokio::test]
async fn payload_types_stand_for_one_codec_after_a_switch() {
    let video = |mid: &str, codec: &str, pt: u8| json!({ "type": "video", "mid": mid, "port": 0, "codec": codec, "pt": pt });
    let audio = |mid: &str, codec: &str, pt: u8, fmtp: &str| json!({ "type": "audio", "mid": mid, "port": 0, "codec": codec, "pt": pt, "fmtp": fmtp });
    let first = video("v", "vp8", 96);
    for (left, present) in [
        (video("w", "h264", 97), 97),
        // The Opus in it has the number of another stream.
        (audio("w", "red", 63, "98/98"), 98),
        // Nothing has to give way.
        (video("w", "h264", 97), 100),
    ] {
        let world = World::new().await;
        let mut admin = world.client().await;
        for (id, media) in [
            (7, json!([first, left])),
            (8, json!([video("v", "vp8", present)])),
        ] {
            let mut body = camera(id);
            body["media"] = media;
            create(&mut admin, body).await;
        }
        let (mut client, _) = world.viewer(json!({ "id": 7 })).await;
        world
            .watch(&mut client, json!({ "id": 7, "media": ["v"] }))
            .await;
        ask(&mut client, switch(8)).await;
        let restart = json!({ "request": "watch", "id": 8, "restart": true });
        client.message(restart, None).await;
        let offer = client.event_with_jsep().await.1.unwrap();
        let sdp = offer["sdp"].as_str().unwrap();
        assert_eq!(sections(sdp).len(), 2, "{sdp}");
        let mut meanings = std::collections::HashMap::new();
        for line in sdp.lines().filter(|line| line.starts_with("a=rtpmap:")) {
            let (pt, meaning) = line.split_once(' ').unwrap();
            let known = meanings.entry(pt).or_insert(meaning);
            assert_eq!(*known, meaning, "{sdp}");
        }
        let kept = format!("a=rtpmap:{present} VP8/90000");
        assert!(sections(sdp)[0].contains(&kept.as_str()), "{sdp}");
        let stays = sections(sdp)[1].contains(&"a=rtpmap:97 H264/90000");
        assert_eq!(stays, present == 100, "{sdp}");
        let start = json!({ "request": "start" });
        client.message(start, Some(answer_to(sdp))).await;
        assert_eq!(client.event().await, status("started"));
    }
}

#[tokio::test]
async fn files_are_not_switched_to() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/files/tests/data");
    // A name must not leave the folder.
    let folder = std::fs::canonicalize(folder).unwrap();
    let filename = folder.join("tone.opus").display().to_string();
    for (id, kind) in [(8, "live"), (9, "ondemand")] {
        let body = json!({ "request": "create", "type": kind, "id": id, "filename": filename });
        create(&mut admin, body).await;
        let (mut client, _) = world.viewer(json!({ "id": 7, "media": ["a"] })).await;
        assert_eq!(refused(&mut client, switch(id)).await, 458);
        let (mut client, _) = world.viewer(json!({ "id": id })).await;
        assert_eq!(refused(&mut client, switch(7)).await, 458);
    }
}
