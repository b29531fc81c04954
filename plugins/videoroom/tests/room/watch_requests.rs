//! `watch`: by an offer of the client or the server, for one publisher or the speakers.

use portunus_core::media::{CloseReason, Event};
use portunus_core::testing::{Line, TestClient, jsep};
use portunus_videoroom::VideoRoomConfig;
use serde_json::{Value, json};

use crate::world::{AV, ROOM, Viewer, World, ask, code, directions, merge, sync};

/// Watches by an offer with these m-lines. Returns the event, with the text of the answer as
/// `answer`.
async fn watch(world: &World, members: Value, lines: &[Line]) -> Viewer {
    let mut client = world.attach().await;
    let mut request = json!({ "request": "watch", "room": ROOM });
    merge(&mut request, members);
    client
        .message(request, Some(jsep("offer", "whep", lines)))
        .await;
    let (event, answer) = client.event_with_jsep().await;
    assert_eq!(event["videoroom"], "attached", "{event}");
    let answer = answer.unwrap();
    assert_eq!(answer["type"], "answer");
    let peer = *world.server.peers().last().unwrap();
    world.up(peer).await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    Viewer {
        client,
        peer,
        event,
        offer: answer["sdp"].as_str().unwrap().to_owned(),
    }
}

/// Returns the occupants of the seats: m-line of the viewer, and publisher.
fn seated(event: &Value) -> Vec<(String, Option<u64>)> {
    let seats = event.get("seats").unwrap_or(&event["streams"]);
    let seats = seats.as_array().unwrap().iter();
    seats
        .map(|seat| {
            let mid = seat["mid"].as_str().unwrap().to_owned();
            (mid, seat["feed_id"].as_u64())
        })
        .collect()
}

fn seats(seats: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
    let seats = seats.iter();
    seats
        .map(|(mid, feed)| ((*mid).to_owned(), *feed))
        .collect()
}

async fn gone(world: &World, publisher: &mut crate::world::Publisher) {
    let closed = Event::Closed(CloseReason::DtlsAlert);
    world.server.happen(publisher.peer, closed).await;
    while publisher.client.next().await["janus"] != "hangup" {}
}

#[tokio::test]
async fn a_feed_is_watched_by_the_viewers_offer_and_comes_back_by_itself() {
    let world = World::new(json!({ "videocodec": "h264,vp8" })).await;
    let mut al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &AV).await;
    let lines = [Line::Video, Line::Audio, Line::Video, Line::Data];
    let mut viewer = watch(&world, json!({ "feed": 1 }), &lines).await;
    assert_eq!(
        viewer.directions(),
        ["sendonly", "sendonly", "sendonly", "inactive"]
    );
    assert!(
        viewer.offer.contains("a=rtpmap:102 H264/90000"),
        "{}",
        viewer.offer
    );
    assert!(
        viewer.offer.contains("a=rtpmap:96 VP8/90000"),
        "{}",
        viewer.offer
    );
    assert_eq!(viewer.event["streams"][0]["codec"], "h264");
    let route = |from: &str, to: &str| (al.peer, from.to_owned(), to.to_owned(), true);
    assert_eq!(world.routes(&viewer), [route("1", "0"), route("0", "1")]);

    gone(&world, &mut al).await;
    let expected = seats(&[("0", None), ("1", None)]);
    assert_eq!(seated(&viewer.client.event().await), expected);
    assert!(world.routes(&viewer).is_empty());
    let publish = json!({ "request": "publish" });
    al.client
        .message(publish, Some(jsep("offer", "anew", &AV)))
        .await;
    al.client.event().await;
    world.up(*world.server.peers().last().unwrap()).await;
    let expected = seats(&[("0", Some(1)), ("1", Some(1))]);
    assert_eq!(seated(&viewer.client.event().await), expected);
    assert_eq!(world.routes(&viewer).len(), 2);
    // There is nothing to negotiate.
    for request in [
        json!({ "request": "subscribe", "streams": [{ "feed": 2 }] }),
        json!({ "request": "update", "unsubscribe": [{ "feed": 1 }] }),
    ] {
        assert_eq!(code(&ask(&mut viewer.client, request).await), 423);
    }
    viewer.client.expect_silence().await;
}

#[tokio::test]
async fn a_room_is_watched_as_far_as_the_offer_has_m_lines() {
    let world = World::new(json!({})).await;
    let lines = [Line::Audio, Line::Video, Line::Audio];
    let mut viewer = watch(&world, json!({}), &lines).await;
    // There is no publisher, but the m-lines are there.
    assert_eq!(directions(&viewer.offer), ["sendonly"; 3]);
    assert_eq!(
        seated(&viewer.event),
        seats(&[("0", None), ("1", None), ("2", None)])
    );
    let mut al = world.publisher(1, &AV).await;
    let event = viewer.client.event().await;
    assert_eq!(seated(&event), seats(&[("0", Some(1)), ("1", Some(1))]));
    assert_eq!(
        (&event["videoroom"], &event["room"]),
        (&json!("event"), &json!(ROOM))
    );
    let bo = world.publisher(2, &AV).await;
    assert_eq!(
        seated(&viewer.client.event().await),
        seats(&[("2", Some(2))])
    );
    let _cy = world.publisher(3, &AV).await;
    viewer.client.expect_silence().await;
    let routes = world.routes(&viewer);
    let feeds: Vec<_> = routes.iter().map(|route| route.0).collect();
    assert_eq!(feeds, [al.peer, al.peer, bo.peer]);
    // A waiting publisher takes the place of one that leaves. Others keep theirs.
    gone(&world, &mut al).await;
    let emptied = seats(&[("0", Some(3)), ("1", Some(3))]);
    assert_eq!(seated(&viewer.client.event().await), emptied);
    viewer.client.expect_silence().await;
}

#[tokio::test]
async fn without_an_offer_the_viewer_gets_ours() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let _bo = world.publisher(2, &[Line::Audio]).await;
    for (members, lines) in [
        (json!({}), 4),
        (json!({ "last_n": 3 }), 6),
        (json!({ "feed": 1 }), 2),
        (json!({ "feed": 2 }), 1),
    ] {
        let mut request = json!({ "request": "watch", "room": ROOM });
        merge(&mut request, members);
        let mut client = world.attach().await;
        client.message(request, None).await;
        let (event, offer) = client.event_with_jsep().await;
        let offer = offer.unwrap()["sdp"].as_str().unwrap().to_owned();
        assert_eq!(directions(&offer), vec!["sendonly"; lines], "{event}");
        let peer = *world.server.peers().last().unwrap();
        let mut viewer = Viewer {
            client,
            peer,
            event,
            offer,
        };
        viewer.start().await;
        assert!(!world.routes(&viewer).is_empty());
    }
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused() {
    let world = World::new(json!({ "pin": "1234" })).await;
    let offer = |lines: &[Line]| Some(jsep("offer", "whep", lines));
    let watch = |members: Value| {
        let mut request = json!({ "request": "watch", "room": ROOM, "pin": "1234" });
        merge(&mut request, members);
        request
    };
    let refused = async |request: Value, jsep: Option<Value>| {
        let mut client: TestClient = world.attach().await;
        client.message(request, jsep).await;
        code(&client.event().await)
    };
    assert_eq!(
        refused(json!({ "request": "watch", "room": ROOM }), None).await,
        429
    );
    assert_eq!(refused(watch(json!({ "pin": "no" })), None).await, 433);
    assert_eq!(refused(watch(json!({ "room": 9 })), None).await, 426);
    assert_eq!(refused(watch(json!({ "feed": 9 })), None).await, 428);
    assert_eq!(refused(watch(json!({ "feed": "x" })), None).await, 430);
    assert_eq!(refused(watch(json!({ "last_n": 0 })), None).await, 430);
    assert_eq!(refused(watch(json!({ "last_n": 51 })), None).await, 430);
    assert_eq!(refused(watch(json!({})), offer(&[Line::Data])).await, 437);
}

#[tokio::test]
async fn what_is_encrypted_is_for_those_who_say_that_they_can_decrypt_it() {
    let world = World::new(json!({ "require_e2ee": true })).await;
    let mut offer = jsep("offer", "pub1", &AV);
    offer["e2ee"] = json!(true);
    let _al = world.publisher_with(json!({ "id": 1 }), offer).await;
    for what in [json!({}), json!({ "feed": 1 })] {
        let mut request = json!({ "request": "watch", "room": ROOM });
        merge(&mut request, what);
        let mut plain = world.attach().await;
        let offer = jsep("offer", "whep", &AV);
        plain.message(request.clone(), Some(offer.clone())).await;
        assert_eq!(code(&plain.event().await), 438, "{request}");
        request["e2ee"] = json!(true);
        let mut able = world.attach().await;
        able.message(request, Some(offer)).await;
        let (event, answer) = able.event_with_jsep().await;
        assert_eq!(event["streams"][0]["feed_id"], 1, "{event}");
        assert_eq!(answer.unwrap()["e2ee"], true);
    }
}

#[tokio::test]
async fn the_secret_opens_what_pin_and_token_would() {
    let world = World::new(json!({ "pin": "1234", "secret": "s3", "allowed": ["t"] })).await;
    for (shown, outcome) in [
        (json!({ "secret": "s3" }), "joined"),
        (
            json!({ "secret": "no", "pin": "1234", "token": "t" }),
            "joined",
        ),
        (json!({ "secret": "no", "pin": "1234" }), "event"),
        (json!({ "secret": "no" }), "event"),
    ] {
        let (_, event) = world.join(shown.clone()).await;
        assert_eq!(event["videoroom"], outcome, "{shown}");
    }
    let mut viewer = watch(&world, json!({ "secret": "s3" }), &AV).await;
    viewer.client.expect_silence().await;
}

#[tokio::test]
async fn the_secret_stands_for_a_private_id_too() {
    let world = World::new(json!({ "secret": "s3", "require_pvtid": true })).await;
    let _al = world.publisher(1, &AV).await;
    let join = json!({ "request": "join", "ptype": "subscriber", "feed": 1 });
    for request in [join, json!({ "request": "watch" })] {
        for (secret, outcome) in [("no", "event"), ("s3", "attached")] {
            let mut request = request.clone();
            merge(&mut request, json!({ "room": ROOM, "secret": secret }));
            let event = ask(&mut world.attach().await, request.clone()).await;
            assert_eq!(event["videoroom"], outcome, "{request}");
        }
    }
}

#[tokio::test]
async fn a_viewer_who_leaves_leaves_nothing_behind() {
    let world = World::new(json!({})).await;
    let al = world.publisher(1, &AV).await;
    let mut viewer = watch(&world, json!({}), &AV).await;
    let subscribers = async |world: &World| {
        let state = world.state(&al.client).await;
        state["streams"][0]["subscribers"].as_u64().unwrap()
    };
    assert_eq!(subscribers(&world).await, 1);
    let left = ask(&mut viewer.client, json!({ "request": "leave" })).await;
    assert_eq!(left["left"], "ok");
    assert_eq!(subscribers(&world).await, 0);
    let mut viewer = watch(&world, json!({}), &AV).await;
    let closed = Event::Closed(CloseReason::DtlsAlert);
    world.server.happen(viewer.peer, closed).await;
    assert_eq!(viewer.client.next().await["janus"], "hangup");
    assert_eq!(subscribers(&world).await, 0);
    let _bo = world.publisher(2, &AV).await;
    viewer.client.expect_silence().await;
    let destroy = json!({ "request": "destroy", "room": ROOM });
    sync(&mut world.attach().await, destroy).await;
}

#[tokio::test]
async fn text_ids_name_rooms_and_feeds_too() {
    let world = World::empty(VideoRoomConfig {
        string_ids: true,
        ..VideoRoomConfig::default()
    });
    let mut admin = world.attach().await;
    sync(&mut admin, json!({ "request": "create", "room": "stage" })).await;
    let mut client = world.attach().await;
    let watch = json!({ "request": "watch", "room": "stage" });
    client
        .message(watch, Some(jsep("offer", "whep", &AV)))
        .await;
    assert_eq!(client.event().await["videoroom"], "attached");
}
