//! Joining to receive, starting, pausing, leaving.

use portunus_core::Mid;
use portunus_core::media::{CloseReason, Event, Layer, LayerReason, PeerId, Reason};
use portunus_core::testing::{Line, jsep};
use serde_json::json;

use crate::world::{AV, ROOM, Viewer, World, ask, code};

/// Why a layer came in these tests.
const BOUND: LayerReason = LayerReason::Chosen(Reason::ClientBound);

#[tokio::test]
async fn the_frames_of_av1_say_on_which_others_they_depend() {
    const URI: &str =
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";
    for (codec, offered) in [("AV1", true), ("VP9", false)] {
        let world = World::new(json!({ "videocodec": codec.to_lowercase() })).await;
        let mut offer = jsep("offer", "alal", &AV);
        let sdp = offer["sdp"].as_str().unwrap();
        let sdp = sdp.replace("96 VP8/", "96 AV1/");
        let sdp = sdp.replace(
            "a=msid:s v\r\n",
            &format!("a=msid:s v\r\na=extmap:9 {URI}\r\n"),
        );
        offer["sdp"] = sdp.into();
        let al = world.publisher_with(json!({ "id": 1 }), offer).await;
        assert!(al.answer.contains(&format!("a=extmap:9 {URI}\r\n")));
        let viewer = world
            .joining_viewer(json!({ "streams": [{ "feed": 1 }] }))
            .await;
        let line = format!("a=extmap:14 {URI}\r\n");
        assert_eq!(viewer.offer.contains(&line), offered, "{}", viewer.offer);
    }
}

#[tokio::test]
async fn a_subscriber_gets_an_offer_and_media_once_it_has_answered() {
    let world = World::new(json!({})).await;
    let al = world
        .publisher_with(
            json!({ "id": 1, "display": "Al" }),
            jsep("offer", "alal", &AV),
        )
        .await;
    let feed = json!({ "streams": [{ "feed": 1, "crossrefid": "x" }] });
    let mut viewer = world.joining_viewer(feed).await;
    let head = |medium: &str, mid: &str| {
        json!({ "type": medium, "active": true, "mindex": mid.parse::<u64>().unwrap(), "mid": mid,
                "crossrefid": "x", "ready": false, "send": true, "feed_id": 1,
                "feed_display": "Al", "feed_mid": mid,
                "codec": if medium == "audio" { "opus" } else { "vp8" } })
    };
    assert_eq!(
        viewer.event,
        json!({ "videoroom": "attached", "room": ROOM,
                "streams": [head("audio", "0"), head("video", "1")] })
    );
    assert_eq!(viewer.directions(), ["sendonly", "sendonly"]);
    for line in [
        "s=VideoRoom 1234",
        "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 useinbandfec=1",
        "a=rtpmap:96 VP8/90000",
        "a=rtcp-fb:96 transport-cc",
        "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
        "a=msid:janus janus0",
        "a=setup:actpass",
        "a=group:BUNDLE 0 1",
    ] {
        assert!(
            viewer.offer.contains(&format!("{line}\r\n")),
            "{line}: {}",
            viewer.offer
        );
    }
    assert!(world.requested().routes.is_empty());
    viewer.start().await;
    let route = |from: &str, to: &str| (al.peer, from.to_owned(), to.to_owned(), true);
    assert_eq!(world.routes(&viewer), [route("0", "0"), route("1", "1")]);
    let state = world.state(&viewer.client).await;
    assert_eq!(
        (&state["answered"], &state["paused"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(state["streams"][0]["ready"], true);
    assert_eq!(
        world.state(&al.client).await["streams"][0]["subscribers"],
        1
    );
}

#[tokio::test]
async fn a_room_without_transport_wide_numbers_leaves_the_measuring_to_receivers() {
    for on in [true, false] {
        let world = World::new(json!({ "transport_wide_cc_ext": on })).await;
        let mut offer = jsep("offer", "alal", &AV);
        let sdp = offer["sdp"].as_str().unwrap();
        let uri = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
        let lines = format!("a=msid:s v\r\na=extmap:9 {uri}\r\na=rtcp-fb:96 transport-cc\r\n");
        offer["sdp"] = sdp.replace("a=msid:s v\r\n", &lines).into();
        let al = world.publisher_with(json!({ "id": 1 }), offer).await;
        let viewer = world
            .joining_viewer(json!({ "streams": [{ "feed": 1 }] }))
            .await;
        for description in [&al.answer, &viewer.offer] {
            assert_eq!(description.contains(uri), on, "{description}");
            let feedback = "a=rtcp-fb:96 transport-cc\r\n";
            assert_eq!(description.contains(feedback), on, "{description}");
            let remb = "a=rtcp-fb:96 goog-remb\r\n";
            assert!(description.contains(remb), "{description}");
        }
    }
}

#[tokio::test]
async fn the_old_form_names_one_publisher() {
    let world = World::new(json!({})).await;
    let _al = world
        .publisher_with(
            json!({ "id": 1, "display": "Al" }),
            jsep("offer", "alal", &AV),
        )
        .await;
    let join = json!({ "feed": 1, "offer_audio": false, "use_msid": true });
    let viewer = world.joining_viewer(join).await;
    assert_eq!(viewer.event["id"], 1);
    assert_eq!(viewer.event["display"], "Al");
    assert_eq!(viewer.event["warning"], "deprecated_api");
    assert_eq!(viewer.event["streams"].as_array().unwrap().len(), 1);
    assert_eq!(viewer.event["streams"][0]["type"], "video");
    assert!(viewer.offer.contains("a=msid:1 0\r\n"), "{}", viewer.offer);
}

#[tokio::test]
async fn media_is_paused_and_resumed() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let open = |viewer: &_| world.routes(viewer).iter().map(|r| r.3).collect::<Vec<_>>();
    let paused = ask(&mut viewer.client, json!({ "request": "pause" })).await;
    assert_eq!(
        paused,
        json!({ "videoroom": "event", "room": ROOM, "paused": "ok" })
    );
    assert_eq!(open(&viewer), [false, false]);
    ask(&mut viewer.client, json!({ "request": "start" })).await;
    assert_eq!(open(&viewer), [true, true]);
    let mute = json!({ "request": "configure", "streams": [{ "mid": "0", "send": false }] });
    let configured = ask(&mut viewer.client, mute).await;
    assert_eq!(
        configured,
        json!({ "videoroom": "event", "room": ROOM, "configured": "ok" })
    );
    assert_eq!(open(&viewer), [false, true]);
    ask(
        &mut viewer.client,
        json!({ "request": "configure", "audio": true, "video": false }),
    )
    .await;
    assert_eq!(open(&viewer), [true, false]);
}

#[tokio::test]
async fn m_lines_that_the_client_refuses_are_not_ready() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world
        .joining_viewer(json!({ "streams": [{ "feed": 1 }] }))
        .await;
    viewer.offer = viewer.offer.replacen("a=sendonly", "a=inactive", 1);
    viewer.start().await;
    let routes = world.routes(&viewer);
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].2, "1");
    let state = world.state(&viewer.client).await;
    assert_eq!(state["streams"][0]["ready"], false);
}

#[tokio::test]
async fn whoever_leaves_is_hung_up_and_forgotten() {
    let world = World::new(json!({})).await;
    let al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let left = ask(&mut viewer.client, json!({ "request": "leave" })).await;
    assert_eq!(
        left,
        json!({ "videoroom": "event", "room": ROOM, "left": "ok" })
    );
    let hangup = viewer.client.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );
    assert_eq!(
        world.state(&al.client).await["streams"][0]["subscribers"],
        0
    );
    assert!(world.requested().routes.is_empty());
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber", "feed": 1 });
    assert_eq!(code(&ask(&mut viewer.client, join).await), 425);
}

#[tokio::test]
async fn a_lost_connection_ends_what_is_received_and_a_new_one_can_follow() {
    let world = World::new(json!({})).await;
    let al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let lost = Event::Closed(CloseReason::DtlsAlert);
    world.server.happen(viewer.peer, lost).await;
    assert_eq!(viewer.client.next().await["janus"], "hangup");
    assert_eq!(
        world.state(&al.client).await["streams"][0]["subscribers"],
        0
    );
    // Nothing can be offered without a stream.
    for name in ["restart", "update"] {
        let configure = json!({ "request": "configure", name: true });
        assert_eq!(code(&ask(&mut viewer.client, configure).await), 437);
    }
    let subscribe = json!({ "request": "subscribe", "streams": [{ "feed": 1, "mid": "1" }] });
    let updated = viewer.change(subscribe).await;
    assert_eq!(updated["streams"].as_array().unwrap().len(), 1);
    viewer.start().await;
    viewer.peer = *world.server.peers().last().unwrap();
    assert_eq!(world.routes(&viewer).len(), 1);
}

#[tokio::test]
async fn the_older_form_leaves_out_what_is_not_wanted() {
    let world = World::new(json!({})).await;
    let _al = world
        .publisher(1, &[Line::Audio, Line::Video, Line::Data])
        .await;
    for (left_out, expected) in [
        ("offer_data", ["audio", "video"]),
        ("offer_video", ["audio", "data"]),
        ("offer_audio", ["video", "data"]),
    ] {
        let viewer = world
            .joining_viewer(json!({ "feed": 1, left_out: false }))
            .await;
        let streams = viewer.event["streams"].as_array().unwrap().iter();
        let kinds: Vec<_> = streams.map(|s| s["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, expected);
    }
}

#[tokio::test]
async fn layers_are_chosen_and_told() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &[Line::Audio, Line::Simulcast]).await;
    let want = json!({ "streams": [{ "feed": 1, "substream": 1, "fallback": 500_000 }] });
    let mut viewer = world.viewer(want).await;
    let video = |world: &World| {
        let routes = world.requested().routes;
        let video = routes.into_iter().find(|r| r.to.mid.as_str() == "1");
        video.unwrap()
    };
    let route = video(&world);
    assert_eq!((route.options.substream, route.options.temporal), (1, 2));
    assert_eq!(route.options.fallback.as_millis(), 500);
    let layer = Layer {
        substream: Some(1),
        temporal: Some(2),
        ..Layer::default()
    };
    let relayed = Event::Layer {
        route: route.id,
        layer,
        reason: BOUND,
    };
    world.server.happen(viewer.peer, relayed).await;
    let event = |name: &str, value: u8| json!({ "videoroom": "event", "room": ROOM, "mid": "1", name: value });
    for (name, value) in [("substream", 1), ("temporal", 2)] {
        let mut why = event(name, value);
        why["reason"] = "client-bound".into();
        assert_eq!(viewer.client.event().await, why);
    }
    let state = world.state(&viewer.client).await;
    assert_eq!(
        state["streams"][1]["simulcast"],
        json!({ "substream": 1, "substream-target": 1, "temporal-layer": 2,
                "temporal-layer-target": 2, "fallback": 500_000, "reason": "client-bound" })
    );
    // Without a change there will be no event.
    let same = json!({ "request": "configure", "mid": "1", "substream": 1, "temporal": 0 });
    viewer.client.message(same, None).await;
    let mut why = event("substream", 1);
    why["reason"] = "client-bound".into();
    assert_eq!(viewer.client.event().await, why);
    assert_eq!(viewer.client.event().await["configured"], "ok");
    assert_eq!(video(&world).options.temporal, 0);
}

#[tokio::test]
async fn a_layer_that_is_there_already_is_told_with_why_it_stays() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &[Line::Audio, Line::Simulcast]).await;
    let want = json!({ "streams": [{ "feed": 1 }] });
    let mut viewer = world.viewer(want).await;
    let routes = world.requested().routes;
    let route = routes.iter().find(|r| r.to.mid.as_str() == "1").unwrap();
    for (came, substream, stays) in [
        (LayerReason::Chosen(Reason::Unmeasured), 0, "client-bound"),
        (LayerReason::Chosen(Reason::Best), 2, "best"),
    ] {
        let relayed = Event::Layer {
            route: route.id,
            layer: Layer {
                substream: Some(substream),
                ..Layer::default()
            },
            reason: came,
        };
        world.server.happen(viewer.peer, relayed).await;
        assert_eq!(viewer.client.event().await["reason"], came.name());
        let same = json!({ "request": "configure", "mid": "1", "substream": substream });
        viewer.client.message(same, None).await;
        assert_eq!(viewer.client.event().await["reason"], stays);
        assert_eq!(viewer.client.event().await["configured"], "ok");
    }
}

#[tokio::test]
async fn delays_of_publishers_and_subscribers_reach_the_routes() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let delay = |world: &World, viewer: &_| {
        let to = world.routes(viewer).len();
        assert_eq!(to, 2);
        let routes = world.requested().routes;
        let video = routes.into_iter().find(|r| r.to.mid.as_str() == "1");
        video.unwrap().options.playout_delay
    };
    ask(
        &mut al.client,
        json!({ "request": "configure", "min_delay": 10 }),
    )
    .await;
    assert_eq!(delay(&world, &viewer), Some((10, 10)));
    let own = json!({ "request": "configure", "mid": "1", "min_delay": 0, "max_delay": 40 });
    ask(&mut viewer.client, own).await;
    assert_eq!(delay(&world, &viewer), Some((0, 40)));
}

#[tokio::test]
async fn data_goes_to_subscribers_with_the_publishers_id_as_label() {
    let world = World::new(json!({})).await;
    let lines = [Line::Audio, Line::Data];
    let mut al = world.publisher(1, &lines).await;
    let bo = world.publisher(2, &lines).await;
    al.client.event().await;
    let want = json!({ "streams": [{ "feed": 1, "mid": "1" }] });
    let mut viewer = world.viewer(want).await;
    assert_eq!(viewer.event["streams"][0]["source_ids"], json!([1]));
    let more = json!({ "request": "subscribe", "streams": [{ "feed": 2, "mid": "1" }] });
    // One m-line carries the data of all, so no offer is due.
    let updated = ask(&mut viewer.client, more).await;
    assert_eq!(updated, json!({ "videoroom": "updated", "room": ROOM }));
    let state = world.state(&viewer.client).await;
    assert_eq!(state["streams"][0]["source_ids"], json!([1, 2]));
    let routes = |world: &World, viewer: &Viewer| -> Vec<(PeerId, String, bool)> {
        let routes = world.requested().routes.into_iter();
        let own = routes.filter(|route| route.to.peer == viewer.peer);
        let mut routes: Vec<_> = own
            .map(|route| {
                assert_eq!(route.to.mid.as_str(), "0");
                let label = route.options.label.unwrap();
                let from = route.from.track().unwrap();
                assert_eq!(from.mid.as_str(), "1");
                (from.peer, label.to_string(), route.options.enabled)
            })
            .collect();
        routes.sort_by(|a, b| a.1.cmp(&b.1));
        routes
    };
    let (of_al, of_bo) = ((al.peer, "1".to_owned()), (bo.peer, "2".to_owned()));
    let expected = |al: bool, bo: bool| {
        let (of_al, of_bo) = (of_al.clone(), of_bo.clone());
        vec![(of_al.0, of_al.1, al), (of_bo.0, of_bo.1, bo)]
    };
    assert_eq!(routes(&world, &viewer), expected(true, true));
    let mute = json!({ "request": "configure", "mid": "1", "send": false });
    ask(&mut al.client, mute).await;
    assert_eq!(routes(&world, &viewer), expected(false, true));
    ask(&mut viewer.client, json!({ "request": "pause" })).await;
    assert_eq!(routes(&world, &viewer), expected(false, false));
    ask(&mut viewer.client, json!({ "request": "start" })).await;
    ask(&mut al.client, json!({ "request": "unpublish" })).await;
    assert_eq!(routes(&world, &viewer), expected(false, true)[1..]);
    let last = json!({ "request": "unsubscribe", "streams": [{ "feed": 2 }] });
    viewer.change(last).await;
    assert_eq!(routes(&world, &viewer), []);
}

#[tokio::test]
async fn losses_towards_a_subscriber_are_told() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let lost = Event::SlowLink {
        mid: Mid::new("1").unwrap(),
        audio: false,
        uplink: false,
        lost: 40,
    };
    world.server.happen(viewer.peer, lost).await;
    assert_eq!(
        viewer.client.event().await,
        json!({ "videoroom": "slow_link" })
    );
}
