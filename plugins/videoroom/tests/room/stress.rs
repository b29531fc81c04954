//! Rooms under stress: storms of joins, thousands of requests, subscribers that never answer, and
//! publishers that leave early.

use std::time::Duration;

use portunus_core::media::{CloseReason, Event, KeyframeCache};
use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};
use tokio::time::advance;

use crate::world::{AV, PACKAGE, ROOM, World, answer_to, ask, code, merge, sync};

/// Joins and offers. Its media comes up later.
async fn publishing(world: &World, id: u64) -> (TestClient, portunus_core::media::PeerId) {
    let (mut client, joined) = world.join(json!({ "id": id })).await;
    assert_eq!(joined["videoroom"], "joined", "{joined}");
    let offer = jsep("offer", "pub1", &AV);
    client
        .message(json!({ "request": "publish" }), Some(offer))
        .await;
    assert_eq!(client.event().await["configured"], "ok");
    (client, *world.server.peers().last().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_joins_is_told_in_few_events() {
    let world = World::new(json!({ "publishers": 1_000 })).await;
    let (mut watching, _) = world.join(json!({ "id": 5_000 })).await;
    let mut publishers = Vec::new();
    for id in 1..=100 {
        publishers.push(publishing(&world, id).await);
    }
    for (_, peer) in &publishers {
        world.up(*peer).await;
    }
    let (mut ids, mut events) = (Vec::new(), 0);
    while ids.len() < 100 {
        let event = watching.event().await;
        events += 1;
        let list = event["publishers"].as_array().unwrap().clone();
        ids.extend(
            list.iter()
                .map(|publisher| publisher["id"].as_u64().unwrap()),
        );
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    assert!(events <= 5, "{events} events");
    watching.expect_silence().await;
    // No publisher is told about itself, and the answer to a later one lists all.
    let (client, _) = &mut publishers[0];
    let mut seen = Vec::new();
    while seen.len() < 99 {
        let message = client.next().await;
        let list = message["plugindata"]["data"]["publishers"]
            .as_array()
            .cloned();
        let list = list.unwrap_or_default();
        seen.extend(
            list.iter()
                .map(|publisher| publisher["id"].as_u64().unwrap()),
        );
    }
    assert!(!seen.contains(&1));
    let (_, joined) = world.join(json!({})).await;
    assert_eq!(joined["publishers"].as_array().unwrap().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn news_keep_their_place_before_what_is_told_later() {
    let world = World::new(json!({ "publishers": 9 })).await;
    let (mut watching, _) = world.join(json!({ "id": 9 })).await;
    let mut publishers = Vec::new();
    for id in 1..=3 {
        publishers.push(publishing(&world, id).await);
    }
    for (_, peer) in &publishers {
        world.up(*peer).await;
    }
    let closed = Event::Closed(CloseReason::DtlsAlert);
    world.server.happen(publishers[2].1, closed).await;
    let mut order = Vec::new();
    while order.last() != Some(&json!(-3)) {
        let event = watching.event().await;
        for publisher in event["publishers"].as_array().into_iter().flatten() {
            order.push(publisher["id"].clone());
        }
        if let Some(gone) = event["unpublished"].as_i64() {
            order.push(json!(-gone));
        }
    }
    assert_eq!(json!(order), json!([1, 2, 3, -3]));
}

/// A connection with handles for a publisher, a subscriber, and another participant.
#[tokio::test]
async fn subscribers_are_told_before_participants_and_those_before_who_unpublishes() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let session = client.session;
    let publisher = client.handle;
    let join =
        json!({ "request": "joinandconfigure", "room": ROOM, "ptype": "publisher", "id": 1 });
    client.message(join, Some(jsep("offer", "pub1", &AV))).await;
    assert_eq!(client.event().await["videoroom"], "joined");
    world.up(*world.server.peers().last().unwrap()).await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    let viewer = client.attach(session, PACKAGE).await;
    client.handle = viewer;
    let watch = json!({ "request": "join", "room": ROOM, "ptype": "subscriber", "feed": 1 });
    client.message(watch, None).await;
    let (_, offer) = client.event_with_jsep().await;
    let answer = answer_to(offer.unwrap()["sdp"].as_str().unwrap());
    let start = json!({ "request": "start" });
    client.message(start, Some(answer)).await;
    assert_eq!(client.event().await["started"], "ok");
    let other = client.attach(session, PACKAGE).await;
    client.handle = other;
    let join = json!({ "request": "join", "room": ROOM, "ptype": "publisher", "id": 2 });
    assert_eq!(ask(&mut client, join).await["videoroom"], "joined");
    client.handle = publisher;
    let body = json!({ "body": { "request": "unpublish" } });
    let mut message = client.on_handle("message", body).await;
    let mut order = Vec::new();
    while order.len() < 3 {
        // The acknowledgement may come between them.
        if message["janus"] == "event" {
            let data = &message["plugindata"]["data"];
            let what = [&data["videoroom"], &data["unpublished"]];
            order.push((message["sender"].as_u64().unwrap(), json!(what)));
        }
        message = client.next().await;
    }
    let expected = [
        (viewer, json!(["updated", null])),
        (other, json!(["event", 1])),
        (publisher, json!(["event", "ok"])),
    ];
    assert_eq!(order, expected);
    while message["janus"] == "ack" {
        message = client.next().await;
    }
    assert_eq!(message["janus"], "hangup");
}

#[tokio::test(start_paused = true)]
async fn a_join_costs_the_others_one_event_of_the_same_size() {
    let size = async |others: u64| {
        let world = World::new(json!({ "publishers": 1_000 })).await;
        let mut watching = Vec::new();
        for id in 1..=others {
            watching.push(world.join(json!({ "id": 1_000 + id })).await.0);
        }
        let (mut client, peer) = publishing(&world, 1).await;
        world.up(peer).await;
        assert_eq!(client.next().await["janus"], "webrtcup");
        let mut sizes = Vec::new();
        for client in &mut watching {
            sizes.push(client.event().await.to_string().len());
            client.expect_silence().await;
        }
        sizes.dedup();
        sizes
    };
    let (few, many) = (size(2).await, size(200).await);
    assert_eq!(few, many);
    assert!(many[0] < 500, "{many:?} bytes");
}

#[tokio::test]
async fn thousands_of_requests_on_one_handle_are_answered_in_order() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    for number in 0..2_000_u64 {
        let (request, done) = match number % 4 {
            0 => (json!({ "request": "pause" }), "paused"),
            1 => (json!({ "request": "start" }), "started"),
            2 => (
                json!({ "request": "configure", "video": true }),
                "configured",
            ),
            _ => (json!({ "request": "nonsense" }), "error_code"),
        };
        if done == "error_code" {
            assert_eq!(code(&sync(&mut viewer.client, request).await), 423);
        } else {
            assert_eq!(ask(&mut viewer.client, request).await[done], "ok");
        }
    }
    assert!(world.routes(&viewer).iter().all(|route| route.3));
    viewer.client.expect_silence().await;
}

#[tokio::test]
async fn one_feed_a_hundred_times_takes_one_m_line() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world
        .viewer(json!({ "streams": [{ "feed": 1, "mid": "1" }] }))
        .await;
    let streams = json!([{ "feed": 1, "mid": "1" }]);
    for _ in 0..100 {
        for request in ["unsubscribe", "subscribe"] {
            let request = json!({ "request": request, "streams": streams });
            viewer.change(request).await;
            assert_eq!(viewer.directions().len(), 1);
            viewer.start().await;
        }
    }
    assert_eq!(world.routes(&viewer).len(), 1);
}

#[tokio::test]
async fn a_subscriber_who_never_answers_gets_one_offer_and_holds_nobody_up() {
    let world = World::new(json!({ "publishers": 9 })).await;
    let mut publishers = Vec::new();
    for id in 1..=3 {
        publishers.push(world.publisher(id, &AV).await);
    }
    let mut silent = world
        .joining_viewer(json!({ "streams": [{ "feed": 1 }, { "feed": 2 }] }))
        .await;
    for _ in 0..100 {
        for request in ["subscribe", "unsubscribe"] {
            let request = json!({ "request": request, "streams": [{ "feed": 3 }] });
            let event = ask(&mut silent.client, request).await;
            assert_eq!(event["videoroom"], "updating", "{event}");
        }
    }
    for mut publisher in publishers {
        let detached = publisher.client.on_handle("detach", json!({})).await;
        assert_ne!(detached["janus"], "error");
    }
    silent.client.expect_silence().await;
    assert!(world.routes(&silent).is_empty());
    // Its answer to what is long gone is taken, and what is left is offered.
    silent.start().await;
    silent.offered().await;
    assert!(silent.directions().iter().all(|way| *way == "inactive"));
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let list = sync(&mut silent.client, list).await;
    assert_eq!(list["participants"], json!([]));
}

#[tokio::test]
async fn a_publisher_who_goes_during_the_negotiation_leaves_nothing() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut viewer = world
        .joining_viewer(json!({ "streams": [{ "feed": 1 }] }))
        .await;
    al.client
        .message(json!({ "request": "unpublish" }), None)
        .await;
    assert_eq!(al.client.event().await["unpublished"], "ok");
    viewer.start().await;
    viewer.offered().await;
    assert_eq!(viewer.directions(), ["inactive", "inactive"]);
    assert!(world.routes(&viewer).is_empty());
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                       "streams": [{ "feed": 1 }] });
    assert_eq!(code(&ask(&mut world.attach().await, join).await), 428);
    // It can also leave before its media is up.
    let (mut client, _) = publishing(&world, 2).await;
    client
        .message(json!({ "request": "unpublish" }), None)
        .await;
    assert_eq!(client.event().await["unpublished"], "ok");
}

#[tokio::test]
async fn a_publisher_may_change_its_codec_and_subscribers_ask_anew() {
    let world = World::new(json!({ "videocodec": "vp8,h264" })).await;
    let mut al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let configure = json!({ "request": "configure", "videocodec": "h264" });
    let mut offer = jsep("offer", "pub1", &AV);
    merge(&mut offer, json!({ "update": true }));
    al.client.message(configure, Some(offer)).await;
    let (configured, _) = al.client.event_with_jsep().await;
    assert_eq!(configured["video_codec"], "h264", "{configured}");
    let update = json!({ "request": "configure", "update": true });
    viewer.change(update).await;
    assert!(
        viewer.offer.contains("a=rtpmap:107 H264/90000"),
        "{}",
        viewer.offer
    );
    viewer.start().await;
    assert_eq!(world.routes(&viewer).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_room_with_a_hundred_ends_with_one_event_each() {
    let world = World::new(json!({ "publishers": 1_000 })).await;
    let mut publishers = Vec::new();
    for id in 1..=50 {
        let (mut client, peer) = publishing(&world, id).await;
        world.up(peer).await;
        while client.next().await["janus"] != "webrtcup" {}
        publishers.push(client);
    }
    let mut others = Vec::new();
    for id in 51..=100 {
        others.push(world.join(json!({ "id": id })).await.0);
    }
    advance(Duration::from_secs(1)).await;
    sync(
        &mut world.attach().await,
        json!({ "request": "destroy", "room": ROOM }),
    )
    .await;
    for client in publishers.iter_mut().chain(&mut others) {
        let mut destroyed = 0;
        while destroyed == 0 {
            let message = client.next().await;
            destroyed += u64::from(message["plugindata"]["data"]["videoroom"] == "destroyed");
        }
    }
    for client in &mut publishers {
        assert_eq!(client.next().await["janus"], "hangup");
        client.expect_silence().await;
    }
    assert!(world.server.peers().is_empty());
    let requested = world.requested();
    assert!(requested.routes.is_empty() && requested.talk.is_empty());
}

#[tokio::test]
async fn what_was_sent_since_the_last_keyframe_is_kept_where_the_room_wants_it() {
    let world = World::new(json!({ "bufferkf_ms": 2_000, "publishers": 9 })).await;
    let mut al = world.publisher(1, &AV).await;
    let limits = KeyframeCache {
        max_age: Duration::from_secs(2),
        max_bytes: 1 << 20,
    };
    let kept = |world: &World| -> Vec<KeyframeCache> {
        world
            .requested()
            .kept
            .iter()
            .map(|(_, cache)| *cache)
            .collect()
    };
    assert_eq!(kept(&world), [limits]);
    // Video that nobody may see is not cached.
    ask(
        &mut al.client,
        json!({ "request": "configure", "video": false }),
    )
    .await;
    assert_eq!(kept(&world), []);
    ask(
        &mut al.client,
        json!({ "request": "configure", "video": true }),
    )
    .await;
    assert_eq!(kept(&world), [limits]);
    // Video with several layers is not cached.
    let _bo = world.publisher(2, &[Line::Audio, Line::Simulcast]).await;
    assert_eq!(kept(&world).len(), 1);
    let quiet = World::new(json!({})).await;
    let _al = quiet.publisher(1, &AV).await;
    assert_eq!(kept(&quiet), []);
    let refused: Value = sync(
        &mut quiet.attach().await,
        json!({ "request": "create", "bufferkf_ms": 20_000 }),
    )
    .await;
    assert_eq!(code(&refused), 430);
}
