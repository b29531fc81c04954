//! Joining, publishing, renegotiating and leaving.

use portunus_core::media::{CloseReason, Event, SourceRef, TrackRef};
use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code, directions};

#[tokio::test]
async fn whoever_joins_is_told_who_publishes_and_they_are_told_when_its_media_is_up() {
    let world = World::new(json!({ "description": "Here" })).await;
    let mut al = world.publisher(1, &AV).await;
    let (mut bo, joined) = world.join(json!({ "id": 2, "display": "Bo" })).await;
    assert_eq!(
        (&joined["room"], &joined["description"], &joined["id"]),
        (&json!(ROOM), &json!("Here"), &json!(2))
    );
    assert!(joined["private_id"].is_u64());
    assert!(joined.get("attendees").is_none());
    let publishers = json!([{
        "id": 1, "audio_codec": "opus", "video_codec": "vp8",
        "streams": [
            { "type": "audio", "mindex": 0, "mid": "0", "codec": "opus", "fec": true, "talking": false },
            { "type": "video", "mindex": 1, "mid": "1", "codec": "vp8" },
        ],
        "talking": false,
    }]);
    assert_eq!(joined["publishers"], publishers);
    al.client.expect_silence().await;

    bo.message(
        json!({ "request": "configure", "audio": true }),
        Some(jsep("offer", "bobo", &AV)),
    )
    .await;
    let (configured, answer) = bo.event_with_jsep().await;
    assert_eq!(
        configured,
        json!({
            "videoroom": "event", "room": ROOM, "configured": "ok",
            "audio_codec": "opus", "video_codec": "vp8",
            "streams": [
                { "type": "audio", "mindex": 0, "mid": "0", "codec": "opus", "fec": true,
                  "audiolevel_ext_id": 1 },
                { "type": "video", "mindex": 1, "mid": "1", "codec": "vp8" },
            ],
        })
    );
    let answer = answer.unwrap()["sdp"].as_str().unwrap().to_owned();
    assert_eq!(directions(&answer), ["recvonly", "recvonly"]);
    assert!(answer.contains("s=VideoRoom 1234\r\n"), "{answer}");
    assert!(answer.contains("a=fmtp:111 useinbandfec=1\r\n"), "{answer}");
    al.client.expect_silence().await;
    world.up(*world.server.peers().last().unwrap()).await;
    let event = al.client.event().await;
    assert_eq!(
        (&event["room"], &event["videoroom"]),
        (&json!(ROOM), &json!("event"))
    );
    assert_eq!(event["publishers"].as_array().unwrap().len(), 1);
    assert_eq!(event["publishers"][0]["display"], "Bo");
    assert!(event["publishers"][0].get("talking").is_none());
}

#[tokio::test]
async fn joining_is_told_where_the_room_wants_it() {
    let world = World::new(json!({ "notify_joining": true })).await;
    let (mut al, _) = world.join(json!({ "id": 1, "metadata": { "a": 1 } })).await;
    let (_bo, joined) = world.join(json!({ "id": 2, "display": "Bo" })).await;
    let joining = json!({ "id": 2, "display": "Bo" });
    let expected = json!({ "videoroom": "event", "room": ROOM, "joining": joining });
    assert_eq!(al.event().await, expected);
    assert_eq!(
        joined["attendees"],
        json!([{ "id": 1, "metadata": { "a": 1 } }])
    );
    assert_eq!(joined["publishers"], json!([]));
}

#[tokio::test]
async fn joinandconfigure_does_both_or_neither() {
    let world = World::new(json!({ "publishers": 1, "notify_joining": true })).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let mut bo = world.attach().await;
    let both = |id: u64| {
        json!({ "request": "joinandconfigure", "room": ROOM, "ptype": "publisher", "id": id,
                "bitrate": 128_000 })
    };
    bo.message(both(2), Some(jsep("offer", "bobo", &AV))).await;
    let (joined, answer) = bo.event_with_jsep().await;
    assert_eq!(joined["videoroom"], "joined");
    assert_eq!(joined["streams"].as_array().unwrap().len(), 2);
    assert_eq!(answer.unwrap()["type"], "answer");
    assert_eq!(world.requested().bitrates.last().unwrap().1, Some(128_000));

    let mut cy = world.attach().await;
    cy.message(both(3), Some(jsep("offer", "cycy", &AV))).await;
    assert_eq!(code(&cy.event().await), 432);
    let events = [al.event().await, al.event().await, al.event().await];
    assert_eq!(events[0]["joining"]["id"], 2);
    assert_eq!(events[1]["joining"]["id"], 3);
    assert_eq!(events[2]["leaving"], 3);
    assert_eq!(world.server.peers().len(), 1);
    // It may try again, because its offer left nothing behind.
    let join = json!({ "request": "join", "room": ROOM, "ptype": "publisher", "id": 3 });
    assert_eq!(ask(&mut cy, join).await["videoroom"], "joined");
}

#[tokio::test]
async fn renegotiations_tell_others_the_whole_list() {
    let world = World::new(json!({})).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let mut bo = world.publisher(2, &[Line::Audio]).await;
    assert_eq!(
        al.event().await["publishers"][0]["streams"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let configure = json!({ "request": "configure",
        "descriptions": [{ "mid": "1", "description": "slides" }] });
    let offer = jsep("offer", "pub1", &AV);
    bo.client.message(configure.clone(), Some(offer)).await;
    assert_eq!(
        bo.client.event().await["streams"][1]["description"],
        "slides"
    );
    let streams = al.event().await["publishers"][0]["streams"].clone();
    assert_eq!(streams[1]["description"], "slides");
    // An m-line that is not sent any more.
    let mut offer = jsep("offer", "pub1", &AV);
    let sdp = offer["sdp"].as_str().unwrap();
    let video = sdp.find("m=video").unwrap();
    let sdp = format!(
        "{}{}",
        &sdp[..video],
        sdp[video..].replace("a=sendrecv", "a=inactive")
    );
    offer["sdp"] = sdp.into();
    bo.client
        .message(json!({ "request": "configure" }), Some(offer))
        .await;
    let (configured, answer) = bo.client.event_with_jsep().await;
    assert_eq!(
        configured["streams"][1],
        json!({ "type": "video", "mindex": 1, "mid": "1", "disabled": true })
    );
    let answer = answer.unwrap()["sdp"].as_str().unwrap().to_owned();
    assert_eq!(directions(&answer), ["recvonly", "inactive"]);
    assert_eq!(
        al.event().await["publishers"][0]["streams"][1]["disabled"],
        true
    );
    // It is there again.
    bo.client
        .message(configure, Some(jsep("offer", "pub1", &AV)))
        .await;
    assert_eq!(bo.client.event().await["streams"][1]["codec"], "vp8");
    assert_eq!(
        al.event().await["publishers"][0]["streams"][1]["codec"],
        "vp8"
    );
    // A new description alone is announced too.
    let describe = json!({ "request": "configure",
        "descriptions": [{ "mid": "0", "description": "voice" }] });
    assert_eq!(ask(&mut bo.client, describe).await["configured"], "ok");
    assert_eq!(
        al.event().await["publishers"][0]["streams"][0]["description"],
        "voice"
    );
}

#[tokio::test]
async fn publishers_stop_start_again_and_leave() {
    let world = World::new(json!({})).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let mut bo = world.publisher(2, &AV).await;
    al.event().await;
    let unpublished = ask(&mut bo.client, json!({ "request": "unpublish" })).await;
    assert_eq!(
        unpublished,
        json!({ "videoroom": "event", "room": ROOM, "unpublished": "ok" })
    );
    let hangup = bo.client.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );
    assert_eq!(
        al.event().await,
        json!({ "videoroom": "event", "room": ROOM, "unpublished": 2 })
    );
    assert_eq!(
        code(&ask(&mut bo.client, json!({ "request": "unpublish" })).await),
        435
    );
    let publish = json!({ "request": "publish" });
    bo.client
        .message(publish.clone(), Some(jsep("offer", "bob2", &AV)))
        .await;
    assert_eq!(bo.client.event().await["configured"], "ok");
    bo.client
        .message(publish, Some(jsep("offer", "bob3", &AV)))
        .await;
    assert_eq!(code(&bo.client.event().await), 434);
    let peer = *world.server.peers().last().unwrap();
    world.up(peer).await;
    assert_eq!(bo.client.next().await["janus"], "webrtcup");
    assert_eq!(al.event().await["publishers"][0]["id"], 2);
    // The PeerConnection is lost.
    let reason = CloseReason::DtlsAlert;
    world.server.happen(peer, Event::Closed(reason)).await;
    assert_eq!(bo.client.next().await["janus"], "hangup");
    assert_eq!(al.event().await["unpublished"], 2);
    let left = ask(&mut bo.client, json!({ "request": "leave" })).await;
    assert_eq!(
        left,
        json!({ "videoroom": "event", "room": ROOM, "leaving": "ok" })
    );
    assert_eq!(
        al.event().await,
        json!({ "videoroom": "event", "room": ROOM, "leaving": 2 })
    );
    bo.client.expect_silence().await;
    for (request, expected) in [("configure", 426), ("leave", 426), ("join", 425)] {
        let body = json!({ "request": request, "room": ROOM, "ptype": "publisher" });
        assert_eq!(
            code(&ask(&mut bo.client, body).await),
            expected,
            "{request}"
        );
    }
}

#[tokio::test]
async fn whoever_detaches_is_gone_and_takes_nothing_with_it() {
    let world = World::new(json!({})).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let mut bo = world.publisher(2, &AV).await;
    al.event().await;
    bo.client.on_handle("detach", json!({})).await;
    assert_eq!(al.event().await["unpublished"], 2);
    assert_eq!(al.event().await["leaving"], 2);
    assert!(world.server.peers().is_empty());
    let (mut bo, joined) = world.join(json!({ "id": 2 })).await;
    assert_eq!(joined["id"], 2);
    // It had no publication this time.
    bo.on_handle("detach", json!({})).await;
    assert_eq!(al.event().await["leaving"], 2);
}

#[tokio::test]
async fn names_change() {
    let world = World::new(json!({})).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let (mut bo, _) = world.join(json!({ "id": 2, "display": "Bo" })).await;
    let rename = json!({ "request": "configure", "display": "Bob", "metadata": { "x": 1 } });
    assert_eq!(ask(&mut bo, rename).await["configured"], "ok");
    let event = al.event().await;
    assert_eq!(
        (&event["id"], &event["display"]),
        (&json!(2), &json!("Bob"))
    );
    assert!(event.get("room").is_none());
    // There was no metadata before.
    al.expect_silence().await;
    let again = json!({ "request": "configure", "display": "Bob", "metadata": { "x": 2 } });
    ask(&mut bo, again).await;
    let event = json!({ "videoroom": "event", "id": 2, "metadata": { "x": 2 } });
    assert_eq!(al.event().await, event);
    al.expect_silence().await;
}

#[tokio::test]
async fn the_room_chooses_codecs_and_publishers_insist() {
    let world = World::new(json!({ "videocodec": "vp9,h264", "audiocodec": "opus,pcmu",
        "bitrate": 256_000, "bitrate_cap": true, "h264_profile": "42e01f", "opus_fec": false }))
    .await;
    let bo = world.publisher(2, &AV).await;
    assert!(bo.answer.contains("VP9/90000"), "{}", bo.answer);
    assert!(bo.answer.contains("b=AS:256\r\n"), "{}", bo.answer);
    assert!(!bo.answer.contains("useinbandfec"), "{}", bo.answer);
    let state = world.state(&bo.client).await;
    assert_eq!(state["streams"][1]["vp9-profile"], "0");
    assert_eq!(state["streams"][1].get("vp9_profile"), None);
    let (mut cy, _) = world.join(json!({ "id": 3 })).await;
    let publish = |codec: &str| json!({ "request": "publish", "videocodec": codec });
    cy.message(publish("vp8"), Some(jsep("offer", "cycy", &AV)))
        .await;
    assert_eq!(code(&cy.event().await), 430);
    cy.message(publish("H264"), Some(jsep("offer", "cyc2", &AV)))
        .await;
    let configured = cy.event().await;
    assert_eq!(configured["video_codec"], "h264");
    assert_eq!(configured["streams"][1]["h264_profile"], "42e01f");
    let state = world.state(&cy).await;
    assert_eq!(state["streams"][1]["h264-profile"], "42e01f");
    // The offer does not match.
    let world = World::new(json!({ "videocodec": "av1" })).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    al.message(publish("av1"), Some(jsep("offer", "alal", &AV)))
        .await;
    let (configured, answer) = al.event_with_jsep().await;
    assert_eq!(configured["video_codec"], "none");
    assert_eq!(configured["streams"][1]["disabled"], true);
    assert!(
        answer.unwrap()["sdp"]
            .as_str()
            .unwrap()
            .contains("m=video 0 ")
    );
}

#[tokio::test]
async fn caps_and_keyframes_reach_the_media_plane() {
    let world = World::new(json!({ "bitrate": 1 })).await;
    let mut bo = world.publisher(2, &AV).await;
    assert_eq!(world.requested().bitrates, [(bo.peer, Some(64_000))]);
    let set =
        |bitrate: u64| json!({ "request": "configure", "bitrate": bitrate, "keyframe": true });
    ask(&mut bo.client, set(500_000)).await;
    ask(&mut bo.client, set(0)).await;
    let bitrates: Vec<_> = world.requested().bitrates.iter().map(|b| b.1).collect();
    assert_eq!(bitrates, [Some(64_000), Some(500_000), None]);
    // Each time, a keyframe is requested for video, and none for audio.
    let mid = portunus_core::Mid::new("1").unwrap();
    let video = SourceRef::from(TrackRef { peer: bo.peer, mid });
    assert_eq!(world.requested().keyframes, [video, video]);
    for request in [
        json!({ "request": "configure", "keyframe": false }),
        json!({ "request": "configure", "mid": "0", "keyframe": true }),
    ] {
        ask(&mut bo.client, request).await;
        assert_eq!(world.requested().keyframes.len(), 2);
    }
    let named = json!({ "request": "configure", "mid": "1", "keyframe": true });
    ask(&mut bo.client, named).await;
    assert_eq!(world.requested().keyframes, [video; 3]);
    let lost = Event::SlowLink {
        mid: portunus_core::Mid::new("1").unwrap(),
        audio: false,
        uplink: true,
        lost: 40,
    };
    world.server.happen(bo.peer, lost).await;
    let event: Value = bo.client.event().await;
    assert_eq!(
        event,
        json!({ "videoroom": "slow_link", "current-bitrate": 0 })
    );
}

#[tokio::test]
async fn simulcast_and_svc_are_told() {
    let world = World::new(json!({ "videocodec": "vp8,vp9" })).await;
    let bo = world.publisher(2, &[Line::Audio, Line::Simulcast]).await;
    assert!(
        bo.answer.contains("a=simulcast:recv h;m;l\r\n"),
        "{}",
        bo.answer
    );
    let mut offer = jsep("offer", "cycy", &AV);
    offer["svc"] = json!([{ "mindex": 1, "svc": "L3T3" }]);
    let _cy = world.publisher_with(json!({ "id": 3 }), offer).await;
    let (_, joined) = world.join(json!({ "id": 4 })).await;
    assert_eq!(joined["publishers"][0]["streams"][1]["simulcast"], true);
    assert_eq!(joined["publishers"][1]["streams"][1]["svc"], true);
}

#[tokio::test]
async fn rooms_can_insist_on_end_to_end_encryption() {
    let world = World::new(json!({ "require_e2ee": true })).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let publish = json!({ "request": "publish" });
    al.message(publish.clone(), Some(jsep("offer", "alal", &AV)))
        .await;
    assert_eq!(code(&al.event().await), 433);
    assert!(world.server.peers().is_empty());
    let mut offer = jsep("offer", "ala2", &AV);
    offer["e2ee"] = true.into();
    al.message(publish, Some(offer)).await;
    let (_, answer) = al.event_with_jsep().await;
    assert_eq!(answer.unwrap()["e2ee"], true);
}
