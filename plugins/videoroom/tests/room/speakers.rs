//! The dominant speaker, and subscriptions that follow the speakers.

use std::time::Duration;

use portunus_core::Mid;
use portunus_core::media::{CloseReason, Event, SpeechActivity};
use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};
use tokio::time::advance;

use crate::world::{AV, Publisher, ROOM, Viewer, World, ask, code};

/// Speaks for two seconds, then falls silent.
async fn speaks(world: &World, publisher: &Publisher) {
    let mid = Mid::new("0").unwrap();
    let report = async |immediate, medium, long| {
        let activity = SpeechActivity {
            immediate,
            medium,
            long,
        };
        let speech = Event::Speech { mid, activity };
        world.server.happen(publisher.peer, speech).await;
        advance(Duration::from_millis(200)).await;
    };
    for tenths in 1..=10 {
        report(8, tenths.min(5) * 2, tenths.min(6)).await;
    }
    report(0, 0, 0).await;
    advance(Duration::from_secs(2)).await;
}

/// Returns the occupants of the slots, in the event's m-lines of kind `medium`.
fn seated(event: &Value, medium: &str) -> Vec<(u64, Option<u64>)> {
    let seats = event.get("seats").unwrap_or(&event["streams"]);
    let seats = seats.as_array().unwrap().iter();
    let seats = seats.filter(|seat| seat["type"] == medium);
    seats
        .map(|seat| (seat["seat"].as_u64().unwrap(), seat["feed_id"].as_u64()))
        .collect()
}

/// The publishers that a viewer receives video of.
fn watched(world: &World, viewer: &Viewer, publishers: &[&Publisher]) -> Vec<u64> {
    let routes = world.routes(viewer);
    let from = |route: &&(portunus_core::media::PeerId, String, String, bool)| route.1 == "1";
    let feeds = routes.iter().filter(from).map(|route| {
        let place = publishers.iter().position(|p| p.peer == route.0);
        u64::try_from(place.unwrap()).unwrap() + 1
    });
    feeds.collect()
}

#[tokio::test(start_paused = true)]
async fn those_who_spoke_last_have_the_seats() {
    let world = World::new(json!({ "publishers": 9 })).await;
    let one = world.publisher(1, &AV).await;
    let two = world.publisher(2, &AV).await;
    let three = world.publisher(3, &AV).await;
    let four = world.publisher(4, &AV).await;
    let all = [&one, &two, &three, &four];
    assert!(world.requested().speech.is_empty());
    let mut viewer = world.viewer(json!({ "last_n": 2 })).await;
    assert_eq!(viewer.directions(), ["sendonly"; 4]);
    // Nobody has spoken, so the first publishers have the seats.
    assert_eq!(seated(&viewer.event, "video"), [(0, Some(1)), (1, Some(2))]);
    assert_eq!(watched(&world, &viewer, &all), [1, 2]);
    assert_eq!(world.requested().speech.len(), 4);

    speaks(&world, &four).await;
    let event = viewer.client.event().await;
    assert_eq!(
        (&event["videoroom"], &event["dominant"]),
        (&json!("event"), &json!(4))
    );
    assert_eq!(seated(&event, "audio"), [(1, Some(4))]);
    assert_eq!(seated(&event, "video"), [(1, Some(4))]);
    assert_eq!(event["seats"][0]["feed_mid"], "0");
    assert_eq!(watched(&world, &viewer, &all), [1, 4]);

    speaks(&world, &three).await;
    let event = viewer.client.event().await;
    assert_eq!(seated(&event, "video"), [(0, Some(3))]);
    // A speaker with a seat only becomes dominant.
    speaks(&world, &four).await;
    let event = viewer.client.event().await;
    assert_eq!(
        (&event["dominant"], &event["seats"]),
        (&json!(4), &json!([]))
    );
    assert_eq!(watched(&world, &viewer, &all), [3, 4]);
    viewer.client.expect_silence().await;

    let left = ask(&mut viewer.client, json!({ "request": "leave" })).await;
    assert_eq!(left["left"], "ok");
    assert!(world.requested().speech.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_itself_and_who_goes_leaves_its_seat_to_the_next() {
    let world = World::new(json!({ "publishers": 9 })).await;
    let (mut own, joined) = world.join(json!({ "id": 1 })).await;
    let publish = json!({ "request": "publish" });
    own.message(publish, Some(jsep("offer", "ownn", &AV))).await;
    own.event().await;
    world.up(*world.server.peers().last().unwrap()).await;
    assert_eq!(own.next().await["janus"], "webrtcup");
    let two = world.publisher(2, &AV).await;
    let three = world.publisher(3, &AV).await;
    let _four = world.publisher(4, &AV).await;
    let join = json!({ "last_n": 2, "private_id": joined["private_id"], "offer_audio": false });
    let mut viewer = world.viewer(join).await;
    assert_eq!(viewer.directions(), ["sendonly"; 2]);
    assert_eq!(seated(&viewer.event, "video"), [(0, Some(2)), (1, Some(3))]);
    speaks(&world, &three).await;
    assert_eq!(viewer.client.event().await["dominant"], 3);
    let closed = Event::Closed(CloseReason::DtlsAlert);
    world.server.happen(two.peer, closed).await;
    let event = viewer.client.event().await;
    assert_eq!(seated(&event, "video"), [(0, Some(4))]);
    viewer.client.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn rooms_tell_of_the_dominant_speaker_if_they_are_asked_to() {
    let world = World::new(json!({ "dominant_speaker": true })).await;
    let mut one = world.publisher(1, &AV).await;
    let mut two = world.publisher(2, &AV).await;
    one.client.event().await;
    assert_eq!(world.requested().speech.len(), 2);
    speaks(&world, &two).await;
    let event = json!({ "videoroom": "event", "room": ROOM, "dominant": 2 });
    assert_eq!(one.client.event().await, event);
    assert_eq!(two.client.event().await, event);
    let (mut three, joined) = world.join(json!({ "id": 3 })).await;
    assert_eq!(joined["dominant"], 2);
    speaks(&world, &one).await;
    assert_eq!(three.event().await["dominant"], 1);
    assert_eq!(two.client.event().await["dominant"], 1);
    // A participant that does not publish is not dominant.
    let closed = Event::Closed(CloseReason::DtlsAlert);
    world.server.happen(one.peer, closed).await;
    assert_eq!(three.event().await["unpublished"], 1);
    let (_, joined) = world.join(json!({ "id": 4 })).await;
    assert_eq!(joined.get("dominant"), None);

    let world = World::new(json!({})).await;
    let mut one = world.publisher(1, &AV).await;
    speaks(&world, &one).await;
    one.client.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_is_muted_is_not_measured() {
    let world = World::new(json!({ "dominant_speaker": true })).await;
    let mut one = world.publisher(1, &AV).await;
    ask(
        &mut one.client,
        json!({ "request": "configure", "audio": false }),
    )
    .await;
    assert!(world.requested().speech.is_empty());
    // A late report is ignored.
    speaks(&world, &one).await;
    one.client.expect_silence().await;
    ask(
        &mut one.client,
        json!({ "request": "configure", "audio": true }),
    )
    .await;
    assert_eq!(world.requested().speech.len(), 1);
}

#[tokio::test]
async fn seats_are_beside_streams_of_ones_own_choice() {
    let world = World::new(json!({ "publishers": 9 })).await;
    let _one = world.publisher(1, &AV).await;
    let _two = world.publisher(2, &AV).await;
    let join = json!({ "last_n": 1, "streams": [{ "feed": 2, "mid": "1" }] });
    let mut viewer = world.viewer(join).await;
    let feeds: Vec<_> = viewer.event["streams"].as_array().unwrap().clone();
    let feeds: Vec<_> = feeds
        .iter()
        .map(|s| (&s["mid"], &s["feed_id"], &s["seat"]))
        .collect();
    let (null, zero) = (Value::Null, json!(0));
    assert_eq!(
        feeds,
        [
            (&json!("0"), &json!(2), &null),
            (&json!("1"), &json!(1), &zero),
            (&json!("2"), &json!(1), &zero)
        ]
    );
    // Requests about feeds leave the seats alone.
    let updated = viewer
        .change(json!({ "request": "unsubscribe", "streams": [{ "feed": 1 }, { "feed": 2 }] }))
        .await;
    assert_eq!(
        viewer.directions(),
        ["inactive", "sendonly", "sendonly"],
        "{updated}"
    );
    viewer.start().await;
    let switch = json!({ "request": "switch", "streams": [
        { "feed": 2, "mid": "1", "sub_mid": "2" } ] });
    assert_eq!(ask(&mut viewer.client, switch).await["changes"], 0);
    let configure = json!({ "request": "configure", "streams": [{ "mid": "2", "send": false }] });
    assert_eq!(ask(&mut viewer.client, configure).await["configured"], "ok");
    let open: Vec<_> = world.routes(&viewer).iter().map(|route| route.3).collect();
    assert_eq!(open, [true, false]);
}

#[tokio::test]
async fn the_number_of_speakers_is_bounded() {
    let world = World::new(json!({})).await;
    for (last_n, expected) in [(json!(0), 430), (json!(51), 430), (json!("2"), 430)] {
        let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                           "last_n": last_n });
        let mut client = world.attach().await;
        assert_eq!(code(&ask(&mut client, join).await), expected);
    }
    // An empty room can be followed: seats wait.
    let mut viewer = world.viewer(json!({ "last_n": 1 })).await;
    let _one = world.publisher(1, &[Line::Audio]).await;
    let event = viewer.client.event().await;
    assert_eq!(seated(&event, "audio"), [(0, Some(1))]);
    assert_eq!(seated(&event, "video"), []);
}

#[tokio::test]
async fn fewer_speakers_may_be_asked_for_later_and_more_again() {
    let world = World::new(json!({ "publishers": 9 })).await;
    let _one = world.publisher(1, &AV).await;
    let _two = world.publisher(2, &AV).await;
    let mut viewer = world
        .viewer(json!({ "last_n": 2, "offer_audio": false }))
        .await;
    let configure = |last_n: u64| json!({ "request": "configure", "last_n": last_n });
    viewer.client.message(configure(1), None).await;
    assert_eq!(seated(&viewer.client.event().await, "video"), [(1, None)]);
    assert_eq!(viewer.client.event().await["configured"], "ok");
    assert_eq!(world.routes(&viewer).len(), 1);
    viewer.client.message(configure(2), None).await;
    assert_eq!(
        seated(&viewer.client.event().await, "video"),
        [(1, Some(2))]
    );
    assert_eq!(viewer.client.event().await["configured"], "ok");
    // The number of seats is that of the offer.
    assert_eq!(code(&ask(&mut viewer.client, configure(3)).await), 430);
}
