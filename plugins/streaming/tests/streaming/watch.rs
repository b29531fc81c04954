//! Watching by our offer.

use portunus_core::media::SourceRef;
use portunus_core::media::ingest::IngestMedia;
use serde_json::json;

use crate::world::{World, answer_to, ask, camera, create, refused, sections, status};

#[tokio::test]
async fn a_viewer_gets_the_streams_in_order_with_their_codecs() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["playoutdelay_ext"] = json!(true);
    body["abscapturetime_src_ext_id"] = json!(3);
    body["media"][1] = json!({
        "type": "video", "mid": "v", "port": 0, "pt": 125, "codec": "h264", "msid": "cam front",
        "fmtp": "profile-level-id=42e01f;packetization-mode=1",
    });
    create(&mut client, body).await;
    client
        .message(json!({ "request": "watch", "id": 7 }), None)
        .await;
    let (data, offer) = client.event_with_jsep().await;
    assert_eq!(data, status("preparing"));
    let offer = offer.unwrap();
    let sdp = offer["sdp"].as_str().unwrap();
    assert!(sdp.contains("\r\ns=Mountpoint 7\r\n"), "{sdp}");
    let sections = sections(sdp);
    let starts: Vec<_> = sections.iter().map(|lines| lines[0]).collect();
    assert!(starts[0].starts_with("m=audio 9 UDP/TLS/RTP/SAVPF 111"));
    assert!(starts[1].starts_with("m=video 9 UDP/TLS/RTP/SAVPF 125 "));
    assert!(starts[2].starts_with("m=application 9 UDP/DTLS/SCTP webrtc-datachannel"));
    let has = |index: usize, line: &str| {
        assert!(sections[index].contains(&line), "{line} in {sdp}");
    };
    has(0, "a=mid:a");
    has(0, "a=sendonly");
    has(0, "a=rtpmap:111 opus/48000/2");
    has(0, "a=msid:janus janusa");
    has(1, "a=mid:v");
    has(1, "a=rtpmap:125 H264/90000");
    has(1, "a=fmtp:125 profile-level-id=42e01f;packetization-mode=1");
    has(1, "a=msid:cam front");
    for feedback in ["ccm fir", "nack", "nack pli", "goog-remb"] {
        has(1, &format!("a=rtcp-fb:125 {feedback}"));
    }
    assert!(!sdp.contains("transport-cc"));
    has(
        1,
        "a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
    );
    has(1, "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid");
    has(
        1,
        "a=extmap:7 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
    );
    has(
        1,
        "a=extmap:12 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay",
    );
    has(2, "a=mid:d");
    has(1, "a=setup:actpass");
}

#[tokio::test]
async fn where_layers_are_chosen_the_link_is_measured() {
    let world = World::new().await;
    let mut client = world.client().await;
    let layered = [
        json!({ "simulcast": true, "port2": 0, "port3": 0 }),
        json!({ "svc": true }),
    ];
    for (id, extra) in (1..).zip(layered) {
        let mut video = json!({ "type": "video", "mid": "v", "port": 0, "pt": 98, "codec": "vp9" });
        let members = extra.as_object().unwrap().clone();
        video.as_object_mut().unwrap().extend(members);
        let body = json!({ "request": "create", "type": "rtp", "id": id, "media": [video] });
        create(&mut client, body).await;
        let mut client = world.client().await;
        client
            .message(json!({ "request": "watch", "id": id }), None)
            .await;
        let (_, offer) = client.event_with_jsep().await;
        let offer = offer.unwrap();
        let sections = sections(offer["sdp"].as_str().unwrap());
        assert!(sections[0].contains(&"a=rtcp-fb:98 transport-cc"), "{id}");
        let extension =
            "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
        assert!(sections[0].contains(&extension), "{id}");
    }
}

#[tokio::test]
async fn media_flows_from_when_the_connection_is_up() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let peer = world.watch(&mut client, json!({ "id": 7 })).await;
    assert!(world.routes(peer).is_empty());
    world.connect(&mut client, peer).await;
    let ingests = world.server.requested().ingests;
    let sources: Vec<_> = ingests.iter().map(|i| SourceRef::from(i.id)).collect();
    let expected = [
        (sources[0], "a".to_owned(), true),
        (sources[1], "v".to_owned(), true),
        (sources[2], "d".to_owned(), true),
    ];
    assert_eq!(world.routes(peer), expected);
    let info = json!({ "request": "info", "id": 7 });
    assert_eq!(client.request(info).await["info"]["viewers"], 1);
    let state = world.state(&client).await;
    assert_eq!(state["state"], "watching");
    assert_eq!(state["mountpoint_id"], 7);
    assert_eq!(state["media"][1]["mid"], "v");
    assert_eq!(state["started"], 1);
}

#[tokio::test]
async fn a_keyframe_is_kept_where_that_is_asked_for() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["bufferkf_ms"] = json!(2000);
    create(&mut client, body).await;
    let requested = world.server.requested();
    let [(source, cache)] = requested.kept.as_slice() else {
        panic!("{:?}", requested.kept);
    };
    assert_eq!(*source, SourceRef::from(requested.ingests[1].id));
    assert_eq!(cache.max_age.as_millis(), 2000);
    // A recorded stream of a disabled mountpoint is not cached for viewers.
    for (request, kept) in [("disable", 0), ("enable", 1)] {
        client.request(json!({ "request": request, "id": 7 })).await;
        assert_eq!(world.server.requested().kept.len(), kept, "{request}");
    }
    assert_eq!(world.server.requested().kept, requested.kept);
}

#[tokio::test]
async fn nothing_is_kept_of_what_is_encrypted_end_to_end() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["bufferkf_ms"] = json!(2000);
    body["e2ee"] = json!(true);
    create(&mut client, body).await;
    let requested = world.server.requested();
    assert!(requested.kept.is_empty(), "{:?}", requested.kept);
    let IngestMedia::Rtp(video) = &requested.ingests[1].options.media else {
        panic!("no video");
    };
    assert!(video.opaque);
}

#[tokio::test]
async fn a_subset_can_be_changed_while_watching() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let watch = json!({ "id": 7, "media": ["v", "none"] });
    let peer = world.watch(&mut client, watch).await;
    world.connect(&mut client, peer).await;
    let mids = |world: &World| -> Vec<(String, bool)> {
        let routes = world.routes(peer).into_iter();
        routes.map(|(_, mid, open)| (mid, open)).collect()
    };
    assert_eq!(mids(&world), [("v".to_owned(), true)]);
    world
        .watch(&mut client, json!({ "id": 7, "media": ["v", "a"] }))
        .await;
    assert_eq!(
        mids(&world),
        [("v".to_owned(), true), ("a".to_owned(), true)]
    );
    let body = json!({ "request": "watch", "id": 7, "media": ["a"] });
    client.message(body, None).await;
    let (_, offer) = client.event_with_jsep().await;
    let offer = offer.unwrap();
    let sdp = offer["sdp"].as_str().unwrap();
    let lines = sections(sdp);
    assert!(
        lines[0].contains(&"a=mid:v") && lines[0].contains(&"a=inactive"),
        "{sdp}"
    );
    assert!(
        lines[1].contains(&"a=mid:a") && lines[1].contains(&"a=sendonly"),
        "{sdp}"
    );
    assert_eq!(mids(&world), [("a".to_owned(), true)]);
}

#[tokio::test]
async fn watching_twice_is_a_renegotiation_once_the_connection_is_up() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    create(&mut client, camera(8)).await;
    let watch = |id: u64| json!({ "request": "watch", "id": id });
    let peer = world.watch(&mut client, json!({ "id": 7 })).await;
    assert_eq!(refused(&mut client, watch(7)).await, 460);
    world.connect(&mut client, peer).await;
    assert_eq!(refused(&mut client, watch(8)).await, 460);
    assert_eq!(world.watch(&mut client, json!({ "id": 7 })).await, peer);
    assert_eq!(world.routes(peer).len(), 3);

    let restart = json!({ "request": "watch", "id": 7, "restart": true });
    client.message(restart, None).await;
    let (data, offer) = client.event_with_jsep().await;
    assert_eq!(data, status("updating"));
    let offer = offer.unwrap();
    let answer = answer_to(offer["sdp"].as_str().unwrap());
    client
        .message(json!({ "request": "start" }), Some(answer))
        .await;
    assert_eq!(client.event().await, status("started"));
    assert_eq!(world.routes(peer).len(), 3);
}

#[tokio::test]
async fn pause_closes_the_gates_and_start_opens_them() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let peer = world.watch(&mut client, json!({ "id": 7 })).await;
    world.connect(&mut client, peer).await;
    let open = |world: &World| world.routes(peer).iter().all(|(_, _, open)| *open);
    assert!(open(&world));
    assert_eq!(
        ask(&mut client, json!({ "request": "pause" })).await,
        status("pausing")
    );
    assert!(world.routes(peer).iter().all(|(_, _, open)| !open));
    assert_eq!(
        ask(&mut client, json!({ "request": "start" })).await,
        status("started")
    );
    assert!(open(&world));
}

#[tokio::test]
async fn stop_hangs_up_and_the_handle_can_watch_again() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    create(&mut client, camera(8)).await;
    let stop = || json!({ "request": "stop" });
    assert_eq!(ask(&mut client, stop()).await, status("idle"));
    // A viewer that is not connected yet becomes idle.
    world.watch(&mut client, json!({ "id": 7 })).await;
    assert_eq!(ask(&mut client, stop()).await, status("idle"));
    assert_eq!(client.next().await["janus"], "hangup");
    let peer = world.watch(&mut client, json!({ "id": 7 })).await;
    world.connect(&mut client, peer).await;
    assert_eq!(ask(&mut client, stop()).await, status("stopping"));
    assert_eq!(client.next().await["janus"], "hangup");
    let info = json!({ "request": "info", "id": 7 });
    assert_eq!(client.request(info).await["info"]["viewers"], 0);
    assert!(world.routes(peer).is_empty());
    let peer = world.watch(&mut client, json!({ "id": 8 })).await;
    world.connect(&mut client, peer).await;
}

#[tokio::test]
async fn encrypted_media_is_announced() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["e2ee"] = json!(true);
    create(&mut client, body).await;
    client
        .message(json!({ "request": "watch", "id": 7 }), None)
        .await;
    let (_, offer) = client.event_with_jsep().await;
    assert_eq!(offer.unwrap()["e2ee"], true);
}
