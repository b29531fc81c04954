//! Who talks.

use portunus_core::Mid;
use portunus_core::media::{Event, TalkDetection, TrackRef};
use portunus_core::testing::{Line, jsep};
use serde_json::json;

use crate::world::{AV, ROOM, World, ask, sync};

fn talking(talking: bool) -> Event {
    Event::Talking {
        mid: Mid::new("0").unwrap(),
        talking,
        average: 1_250,
    }
}

#[tokio::test]
async fn all_are_told_who_talks() {
    let world = World::new(json!({ "audiolevel_event": true, "audio_level_average": 30 })).await;
    let mut al = world.publisher(1, &AV).await;
    let (mut bo, _) = world.join(json!({ "id": 2 })).await;
    let heard = TrackRef {
        peer: al.peer,
        mid: Mid::new("0").unwrap(),
    };
    let detection = TalkDetection {
        packets: 100,
        level: 30,
    };
    let listened: Vec<_> = world.requested().talk.into_iter().collect();
    assert_eq!(listened, [(heard, detection)]);
    world.server.happen(al.peer, talking(true)).await;
    let event = |what: &str| {
        json!({ "videoroom": what, "room": ROOM, "id": 1, "mindex": 0, "mid": "0",
                "audio-level-dBov-avg": 12.5 })
    };
    assert_eq!(al.client.event().await, event("talking"));
    assert_eq!(bo.event().await, event("talking"));
    let (mut cy, joined) = world.join(json!({ "id": 3 })).await;
    assert_eq!(joined["publishers"][0]["talking"], true);
    assert_eq!(joined["publishers"][0]["streams"][0]["talking"], true);
    let state = world.state(&al.client).await;
    assert_eq!(state["streams"][0]["audio-level-dBov"], 12.5);
    world.server.happen(al.peer, talking(false)).await;
    for client in [&mut al.client, &mut bo, &mut cy] {
        assert_eq!(client.event().await, event("stopped-talking"));
    }
}

#[tokio::test]
async fn whoever_is_muted_does_not_talk() {
    let world = World::new(json!({ "audiolevel_event": true })).await;
    let mut al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    world.server.happen(al.peer, talking(true)).await;
    assert_eq!(al.client.event().await["videoroom"], "talking");
    let mute = |mute: bool| json!({ "request": "moderate", "room": ROOM, "id": 1, "mid": "0", "mute": mute });
    sync(&mut admin, mute(true)).await;
    assert_eq!(al.client.event().await["videoroom"], "stopped-talking");
    assert_eq!(al.client.event().await["moderation"], "muted");
    assert!(world.requested().talk.is_empty());
    // A late report is ignored.
    world.server.happen(al.peer, talking(true)).await;
    al.client.expect_silence().await;
    sync(&mut admin, mute(false)).await;
    assert_eq!(al.client.event().await["moderation"], "unmuted");
    assert_eq!(world.requested().talk.len(), 1);
}

#[tokio::test]
async fn participants_have_settings_of_their_own_and_rooms_may_not_listen() {
    let world = World::new(json!({ "audiolevel_event": true })).await;
    let own = json!({ "id": 1, "audio_active_packets": 10, "audio_level_average": 60 });
    let mut al = world
        .publisher_with(own, jsep("offer", "alal", &[Line::Audio]))
        .await;
    let (_, joined) = world
        .join(json!({ "audio_active_packets": 20, "audio_level_average": 50 }))
        .await;
    assert_eq!(joined["audio_active_packets"], 20);
    assert_eq!(joined["audio_level_average"], 50);
    let (_, joined) = world.join(json!({})).await;
    assert_eq!(joined.get("audio_active_packets"), None);
    assert_eq!(joined.get("audio_level_average"), None);
    let set = |world: &World| *world.requested().talk.values().next().unwrap();
    let settings = |packets, level| TalkDetection { packets, level };
    assert_eq!(set(&world), settings(10, 60));
    let configure = json!({ "request": "configure", "audio_level_average": 70 });
    ask(&mut al.client, configure).await;
    assert_eq!(set(&world), settings(10, 70));

    for quiet in [
        json!({}),
        json!({ "audiolevel_event": true, "audiolevel_ext": false }),
    ] {
        let world = World::new(quiet).await;
        let _al = world.publisher(1, &AV).await;
        assert!(world.requested().talk.is_empty());
    }
}
