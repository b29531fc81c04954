//! Changes of subscriptions: streams come, go and are replaced.

use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code};

const AV_OUT: [&str; 2] = ["sendonly", "sendonly"];

fn updated(streams: Option<&Value>) -> Value {
    let mut event = json!({ "videoroom": "updated", "room": ROOM });
    if let Some(streams) = streams {
        event["streams"] = streams.clone();
    }
    event
}

#[tokio::test]
async fn many_feeds_share_one_connection() {
    let world = World::new(json!({})).await;
    let al = world.publisher(1, &AV).await;
    let bo = world.publisher(2, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let subscribe = json!({ "request": "subscribe", "streams": [{ "feed": 2 }] });
    let event = viewer.change(subscribe).await;
    assert_eq!(event["videoroom"], "updated");
    let feeds: Vec<_> = event["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| {
            (
                s["feed_id"].as_u64(),
                s["mid"].as_str(),
                s["ready"].as_bool(),
            )
        })
        .collect();
    let stream = |feed, mid, ready| (Some(feed), Some(mid), Some(ready));
    assert_eq!(
        feeds,
        [
            stream(1, "0", true),
            stream(1, "1", true),
            stream(2, "2", false),
            stream(2, "3", false)
        ]
    );
    // Present streams continue. New ones wait for the answer.
    assert_eq!(world.routes(&viewer).len(), 2);
    viewer.start().await;
    let route = |peer, from: &str, to: &str| (peer, from.to_owned(), to.to_owned(), true);
    assert_eq!(
        world.routes(&viewer),
        [
            route(al.peer, "0", "0"),
            route(al.peer, "1", "1"),
            route(bo.peer, "0", "2"),
            route(bo.peer, "1", "3")
        ]
    );
}

#[tokio::test]
async fn places_of_streams_that_went_are_taken_again() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    for _ in 0..20 {
        let event = viewer
            .change(json!({ "request": "unsubscribe", "streams": [{ "feed": 1, "mid": "1" }] }))
            .await;
        assert_eq!(event["streams"][1]["active"], false);
        assert!(event["streams"][1].get("feed_id").is_none());
        assert_eq!(viewer.directions(), ["sendonly", "inactive"]);
        assert_eq!(world.routes(&viewer).len(), 1);
        viewer.start().await;
        let event = viewer
            .change(json!({ "request": "subscribe", "streams": [{ "feed": 2, "mid": "1" }] }))
            .await;
        assert_eq!(event["streams"].as_array().unwrap().len(), 2);
        assert_eq!(event["streams"][1]["feed_id"], 2);
        viewer.start().await;
        viewer
            .change(json!({ "request": "update",
                "unsubscribe": [{ "sub_mid": "1" }], "subscribe": [{ "feed": 1, "mid": "1" }] }))
            .await;
        assert_eq!(viewer.directions(), AV_OUT);
        viewer.start().await;
    }
}

#[tokio::test]
async fn changes_wait_for_the_answer_to_the_last_offer() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &AV).await;
    let mut viewer = world
        .viewer(json!({ "streams": [{ "feed": 1, "mid": "0" }] }))
        .await;
    let subscribe = |feed: u64, mid: &str| json!({ "request": "subscribe", "streams": [{ "feed": feed, "mid": mid }] });
    viewer.change(subscribe(1, "1")).await;
    let updating = json!({ "videoroom": "updating", "room": ROOM });
    assert_eq!(ask(&mut viewer.client, subscribe(2, "0")).await, updating);
    assert_eq!(ask(&mut viewer.client, subscribe(2, "1")).await, updating);
    viewer.start().await;
    let event = viewer.offered().await;
    assert_eq!(event["streams"].as_array().unwrap().len(), 4);
    viewer.start().await;
    viewer.client.expect_silence().await;
    assert_eq!(world.routes(&viewer).len(), 4);
    // Nothing changes.
    let nobody =
        json!({ "request": "unsubscribe", "streams": [{ "feed": 9 }, { "sub_mid": "x" }] });
    assert_eq!(ask(&mut viewer.client, nobody).await, updated(None));
}

#[tokio::test]
async fn subscriptions_let_go_of_publishers_who_go() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &AV).await;
    al.client.event().await;
    let mut both = world
        .viewer(json!({ "streams": [{ "feed": 1 }, { "feed": 2 }] }))
        .await;
    let quiet = json!({ "streams": [{ "feed": 1 }, { "feed": 2 }], "autoupdate": false });
    let mut quiet = world.viewer(quiet).await;
    let mut pending = world
        .joining_viewer(json!({ "streams": [{ "feed": 1 }] }))
        .await;
    al.client
        .message(json!({ "request": "unpublish" }), None)
        .await;
    both.offered().await;
    let directions = ["inactive", "inactive", "sendonly", "sendonly"];
    assert_eq!(both.directions(), directions);
    both.start().await;
    assert_eq!(world.routes(&both).len(), 2);
    quiet.client.expect_silence().await;
    assert_eq!(world.routes(&quiet).len(), 2);
    // It gets the offer with its next change, even one without effect.
    let nobody = json!({ "request": "unsubscribe", "streams": [{ "feed": 9 }] });
    quiet.change(nobody).await;
    assert_eq!(quiet.directions(), directions);
    // A client that has not answered gets the message afterwards.
    pending.start().await;
    pending.offered().await;
    assert_eq!(pending.directions(), ["inactive", "inactive"]);
}

#[tokio::test]
async fn without_autoupdate_nothing_is_offered_unasked() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &AV).await;
    al.client.event().await;
    let quiet = json!({ "streams": [{ "feed": 1 }], "autoupdate": false });
    let mut quiet = world.viewer(quiet).await;
    let sound = json!({ "request": "subscribe", "streams": [{ "feed": 2, "mid": "0" }] });
    quiet.change(sound).await;
    // The publisher goes before the client has answered.
    ask(&mut al.client, json!({ "request": "unpublish" })).await;
    quiet.start().await;
    quiet.client.expect_silence().await;
    let nobody = json!({ "request": "unsubscribe", "streams": [{ "feed": 9 }] });
    quiet.change(nobody.clone()).await;
    assert_eq!(quiet.directions(), ["inactive", "inactive", "sendonly"]);
    quiet.start().await;
    assert_eq!(ask(&mut quiet.client, nobody).await, updated(None));
}

#[tokio::test]
async fn pictures_have_priorities() {
    use portunus_core::media::Priority;
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &AV).await;
    let mut viewer = world
        .viewer(json!({ "streams": [{ "feed": 1, "priority": "high" }] }))
        .await;
    let priorities = |viewer: &crate::world::Viewer| {
        let mut routes = world.requested().routes;
        routes.retain(|route| route.to.peer == viewer.peer);
        routes.sort_by_key(|route| route.to.mid.to_string());
        let priorities = routes.into_iter().map(|route| route.options.priority);
        priorities.collect::<Vec<_>>()
    };
    // Sound comes first anyway.
    assert_eq!(priorities(&viewer), [Priority::Low, Priority::High]);
    assert_eq!(viewer.event["streams"][0].get("priority"), None);
    assert_eq!(viewer.event["streams"][1]["priority"], "high");
    let subscribe = json!({ "request": "subscribe",
                            "streams": [{ "feed": 2, "mid": "1", "priority": "very-low" }] });
    viewer.change(subscribe).await;
    viewer.start().await;
    assert_eq!(
        priorities(&viewer)[1..],
        [Priority::High, Priority::VeryLow]
    );
    // The setting belongs to the m-line, whoever is on it.
    let switch =
        json!({ "request": "switch", "streams": [{ "feed": 2, "mid": "1", "sub_mid": "1" }] });
    ask(&mut viewer.client, switch).await;
    let configure =
        json!({ "request": "configure", "streams": [{ "mid": "2", "priority": "medium" }] });
    ask(&mut viewer.client, configure).await;
    assert_eq!(priorities(&viewer)[1..], [Priority::High, Priority::Medium]);
    for wrong in [json!("highest"), json!(3), Value::Null] {
        let configure = json!({ "request": "configure", "mid": "2", "priority": wrong });
        assert_eq!(code(&ask(&mut viewer.client, configure).await), 430);
    }
    assert_eq!(priorities(&viewer)[1..], [Priority::High, Priority::Medium]);
}

#[tokio::test]
async fn a_renegotiation_of_the_publisher_shows_in_the_next_offer() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let offer = without_video(jsep("offer", "pub1", &AV));
    al.client
        .message(json!({ "request": "configure" }), Some(offer))
        .await;
    assert_eq!(al.client.event().await["streams"][1]["disabled"], true);
    viewer.client.expect_silence().await;
    assert_eq!(world.routes(&viewer).len(), 1);
    viewer
        .change(json!({ "request": "configure", "update": true }))
        .await;
    assert_eq!(viewer.directions(), ["sendonly", "inactive"]);
    viewer.start().await;
    // New viewers are not offered the m-line without a sender.
    let late = world
        .joining_viewer(json!({ "streams": [{ "feed": 1 }] }))
        .await;
    assert_eq!(late.event["streams"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn sources_are_switched_without_a_negotiation() {
    let world = World::new(json!({})).await;
    let al = world.publisher(1, &AV).await;
    let bo = world
        .publisher_with(
            json!({ "id": 2, "display": "Bo" }),
            jsep("offer", "bobo", &AV),
        )
        .await;
    let mut viewer = world
        .viewer(json!({ "streams": [{ "feed": 1, "send": false, "substream": 0 }] }))
        .await;
    let video = json!({ "request": "switch", "streams": [
        { "feed": 2, "mid": "1", "sub_mid": "1" },
        { "feed": 1, "mid": "0", "sub_mid": "0" },
        { "feed": 2, "mid": "1", "sub_mid": "0" },
        { "feed": 2, "mid": "0", "sub_mid": "7" },
    ]});
    let switched = ask(&mut viewer.client, video).await;
    assert_eq!(
        (
            &switched["switched"],
            &switched["changes"],
            &switched["room"]
        ),
        (&json!("ok"), &json!(1), &json!(ROOM))
    );
    assert_eq!(switched["streams"][1]["feed_id"], 2);
    let route = |peer, mid: &str, open| (peer, mid.to_owned(), mid.to_owned(), open);
    let routes = [route(al.peer, "0", false), route(bo.peer, "1", true)];
    assert_eq!(world.routes(&viewer), routes);
    assert_eq!(
        world.state(&bo.client).await["streams"][1]["subscribers"],
        1
    );
    assert_eq!(
        world.state(&al.client).await["streams"][1]["subscribers"],
        0
    );
    // The old form switches all m-lines, by kind and codec.
    let all = json!({ "request": "switch", "feed": 2 });
    let switched = ask(&mut viewer.client, all).await;
    assert_eq!(
        (&switched["changes"], &switched["id"], &switched["display"]),
        (&json!(1), &json!(2), &json!("Bo"))
    );
    assert_eq!(world.routes(&viewer)[0], route(bo.peer, "0", true));
    // Onto an m-line that is not in use: that has to be offered first.
    let unsubscribe = json!({ "request": "unsubscribe", "streams": [{ "sub_mid": "1" }] });
    viewer.change(unsubscribe).await;
    viewer.start().await;
    let back =
        json!({ "request": "switch", "streams": [{ "feed": 1, "mid": "1", "sub_mid": "1" }] });
    let event = viewer.change(back).await;
    assert_eq!(event["videoroom"], "updated");
    assert_eq!(viewer.client.event().await["switched"], "ok");
    assert_eq!(viewer.directions(), AV_OUT);
    viewer.start().await;
    assert_eq!(world.routes(&viewer)[1], route(al.peer, "1", true));
}

#[tokio::test]
async fn a_switch_revives_an_m_line_whose_publisher_ceased_to_send() {
    for answered in [true, false] {
        let world = World::new(json!({})).await;
        let mut al = world.publisher(1, &AV).await;
        let bo = world.publisher(2, &AV).await;
        al.client.event().await;
        let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
        let configure = json!({ "request": "configure" });
        let muted = without_video(jsep("offer", "pub1", &AV));
        al.client.message(configure, Some(muted)).await;
        assert_eq!(al.client.event().await["streams"][1]["disabled"], true);
        viewer
            .change(json!({ "request": "configure", "update": true }))
            .await;
        assert_eq!(viewer.directions(), ["sendonly", "inactive"]);
        let switch =
            json!({ "request": "switch", "streams": [{ "feed": 2, "mid": "1", "sub_mid": "1" }] });
        if answered {
            viewer.start().await;
            viewer.change(switch).await;
            assert_eq!(viewer.client.event().await["changes"], 1);
        } else {
            assert_eq!(ask(&mut viewer.client, switch).await["changes"], 1);
            viewer.start().await;
            viewer.offered().await;
        }
        assert_eq!(viewer.directions(), AV_OUT);
        viewer.start().await;
        let video = (bo.peer, "1".to_owned(), "1".to_owned(), true);
        assert_eq!(world.routes(&viewer)[1], video);
    }
}

#[tokio::test]
async fn who_leaves_takes_no_m_line_that_others_have_by_now() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let bo = world.publisher(2, &AV).await;
    al.client.event().await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    // The m-line of video is reused, with another name.
    for (from, to) in [("m=video 9", "m=video 0"), ("a=mid:1\r\n", "a=mid:v\r\n")] {
        let mut offer = jsep("offer", "pub1", &AV);
        let sdp = offer["sdp"].as_str().unwrap().replace(from, to);
        offer["sdp"] = sdp.replace("BUNDLE 0 1", "BUNDLE 0").into();
        al.client
            .message(json!({ "request": "configure" }), Some(offer))
            .await;
        let event = al.client.event().await;
        assert_eq!(event["configured"], "ok", "{event}");
    }
    let switch =
        json!({ "request": "switch", "streams": [{ "feed": 2, "mid": "1", "sub_mid": "1" }] });
    assert_eq!(ask(&mut viewer.client, switch).await["changes"], 1);
    let state = world.state(&al.client).await;
    assert_eq!(state["streams"][1]["subscribers"], 0, "{state}");
    ask(&mut al.client, json!({ "request": "unpublish" })).await;
    viewer.offered().await;
    assert_eq!(viewer.directions(), ["inactive", "sendonly"]);
    viewer.start().await;
    let video = (bo.peer, "1".to_owned(), "1".to_owned(), true);
    assert_eq!(world.routes(&viewer), [video]);
}

/// `offer` with a video m-line that only receives.
fn without_video(mut offer: Value) -> Value {
    let sdp = offer["sdp"].as_str().unwrap();
    let (audio, video) = sdp.split_at(sdp.find("m=video").unwrap());
    let video = video.replace("a=sendrecv", "a=recvonly");
    offer["sdp"] = format!("{audio}{video}").into();
    offer
}

#[tokio::test]
async fn ice_is_restarted_by_request() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let ufrag = |sdp: &str| {
        let line = sdp.lines().find(|line| line.starts_with("a=ice-ufrag:"));
        line.unwrap().to_owned()
    };
    let before = ufrag(&viewer.offer);
    let restart = json!({ "request": "configure", "restart": true });
    let event = viewer.change(restart.clone()).await;
    assert_eq!(event["configured"], "ok");
    assert_ne!(ufrag(&viewer.offer), before);
    // Another request before the answer is done after it.
    viewer.client.message(restart, None).await;
    viewer.client.expect_silence().await;
    let before = ufrag(&viewer.offer);
    viewer.start().await;
    viewer.offered().await;
    assert_ne!(ufrag(&viewer.offer), before);
    viewer.start().await;
}

#[tokio::test]
async fn an_offer_of_the_subscriber_is_refused_and_ours_can_be_had_again() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let subscribe = json!({ "request": "subscribe", "streams": [{ "feed": 1, "mid": "0" }] });
    viewer.change(subscribe).await;
    let offer = jsep("offer", "mine", &[Line::Audio, Line::Video, Line::Audio]);
    viewer
        .client
        .message(json!({ "request": "start" }), Some(offer))
        .await;
    assert_eq!(code(&viewer.client.event().await), 431);
    viewer
        .change(json!({ "request": "configure", "update": true }))
        .await;
    viewer.start().await;
    assert_eq!(world.routes(&viewer).len(), 3);
}

#[tokio::test]
async fn an_offer_with_a_request_that_is_no_subscribers_is_not_in_the_way() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let offer = jsep("offer", "mine", &[Line::Audio, Line::Video, Line::Audio]);
    for (request, expected) in [
        (json!({ "request": "join", "room": ROOM }), Some(425)),
        (json!({ "request": "nonsense" }), Some(423)),
        (json!({ "request": "listparticipants", "room": ROOM }), None),
    ] {
        let change = json!({ "request": "configure", "update": true });
        viewer.change(change.clone()).await;
        let members = json!({ "body": request, "jsep": offer });
        let mut reply = viewer.client.on_handle("message", members).await;
        if reply["janus"] == "ack" {
            reply = viewer.client.next().await;
        }
        let error = reply["plugindata"]["data"]["error_code"].as_u64();
        assert_eq!(error, expected, "{reply}");
        viewer.change(change).await;
        viewer.start().await;
    }
    assert_eq!(world.routes(&viewer).len(), 2);
}

#[tokio::test]
async fn encrypted_and_plain_feeds_are_not_mixed() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut offer = jsep("offer", "bobo", &AV);
    offer["e2ee"] = true.into();
    let _bo = world.publisher_with(json!({ "id": 2 }), offer).await;
    let mut client = world.attach().await;
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                       "streams": [{ "feed": 1 }, { "feed": 2 }] });
    assert_eq!(code(&ask(&mut client, join).await), 438);
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                       "streams": [{ "feed": 2 }] });
    client.message(join, None).await;
    let (_, offer) = client.event_with_jsep().await;
    assert_eq!(offer.unwrap()["e2ee"], true);
    let subscribe = json!({ "request": "subscribe", "streams": [{ "feed": 1 }] });
    assert_eq!(code(&ask(&mut client, subscribe).await), 438);
    let switch = json!({ "request": "switch", "feed": 1 });
    assert_eq!(code(&ask(&mut client, switch).await), 438);
}

#[tokio::test]
async fn an_update_may_exchange_encrypted_feeds_for_plain_ones() {
    let world = World::new(json!({})).await;
    let all = [Line::Audio, Line::Data];
    let _al = world.publisher(1, &all).await;
    let mut offer = jsep("offer", "bobo", &all);
    offer["e2ee"] = true.into();
    let _bo = world.publisher_with(json!({ "id": 2 }), offer).await;
    let _cy = world.publisher(3, &all).await;
    let mut viewer = world
        .viewer(json!({ "streams": [{ "feed": 1 }, { "feed": 3, "mid": "1" }] }))
        .await;
    let update = |unsubscribe: Value| json!({ "request": "update", "unsubscribe": unsubscribe, "subscribe": [{ "feed": 2 }] });
    // Something plain would be left: messages, or sound.
    for left in [
        json!([{ "feed": 1 }]),
        json!([{ "feed": 1, "mid": "1" }, { "feed": 3 }]),
        json!([{ "sub_mid": "1" }]),
    ] {
        let answer = ask(&mut viewer.client, update(left)).await;
        assert_eq!(code(&answer), 438, "{answer}");
    }
    assert_eq!(world.routes(&viewer).len(), 3);
    let everything = json!([{ "sub_mid": "0" }, { "feed": 1 }, { "feed": 3 }]);
    viewer.client.message(update(everything), None).await;
    let (event, offer) = viewer.client.event_with_jsep().await;
    assert_eq!(event["streams"][0]["feed_id"], 2, "{event}");
    assert_eq!(event["streams"][1]["source_ids"], json!([2]));
    assert_eq!(offer.unwrap()["e2ee"], true);
}

#[tokio::test]
async fn a_payload_type_means_the_same_on_all_m_lines() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut offer = jsep("offer", "bobo", &AV);
    let sdp = offer["sdp"].as_str().unwrap();
    offer["sdp"] = sdp.replace("minptime=10", "stereo=1").into();
    let _bo = world.publisher_with(json!({ "id": 2 }), offer).await;
    let all = json!({ "streams": [{ "feed": 1 }, { "feed": 2 }] });
    let viewer = world.viewer(all).await;
    for line in [
        "a=fmtp:111 useinbandfec=1\r\n",
        "a=fmtp:36 useinbandfec=1;stereo=1;sprop-stereo=1\r\n",
    ] {
        assert!(viewer.offer.contains(line), "{line}: {}", viewer.offer);
    }
    assert_eq!(viewer.offer.matches("a=rtpmap:96 VP8").count(), 2);
    assert_eq!(world.routes(&viewer).len(), 4);
}
