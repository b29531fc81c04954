//! Subscribers that follow the speakers see them.

use std::time::Duration;

use portunus_media::SpeechActivity;
use portunus_room::{RoomSettings, Watch};

use crate::world::{World, counted, mid};

const LOUD: SpeechActivity = SpeechActivity {
    immediate: 8,
    medium: 8,
    long: 8,
};

#[tokio::test(start_paused = true)]
async fn seats_follow_the_speakers_without_an_offer() {
    let settings = RoomSettings {
        publishers: 10,
        dominant_speaker: true,
        ..RoomSettings::default()
    };
    let (world, publishers) = World::with_publishers(settings, 10).await;
    let viewer = world.client();
    let watch = Watch {
        last_n: Some(3),
        ..Watch::default()
    };
    world
        .state()
        .watch(viewer.clone(), &watch, None, false)
        .unwrap();
    world.answer(&viewer);
    let feeds = |world: &World| {
        let seen = world.seen_by(&viewer).into_iter();
        counted(seen.map(|(feed, ..)| feed).collect())
    };
    let three = |names: [&str; 3]| {
        counted(
            names
                .iter()
                .flat_map(|name| [(*name).to_owned(), (*name).to_owned()])
                .collect(),
        )
    };
    assert_eq!(feeds(&world), three(["p0", "p1", "p2"]));
    publishers[1].take();
    viewer.take();
    // Reports come every 200 ms.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.state().speech(&"p7".into(), mid("0"), LOUD);
    assert_eq!(feeds(&world), three(["p0", "p1", "p7"]));
    assert_eq!(viewer.take(), ["seats [4, 5]"]);
    assert!(!viewer.has_offer());
    assert!(
        publishers[1]
            .take()
            .contains(&"p7 has the floor".to_owned())
    );
    assert_eq!(world.state().dominant(), Some(&"p7".into()));
    // A muted participant does not speak.
    world.state().moderate(&"p8".into(), "0", true).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.state().speech(&"p8".into(), mid("0"), LOUD);
    assert_eq!(world.state().dominant(), Some(&"p7".into()));
    // A participant that leaves gives up its role and its seat.
    world.state().gone(&"p7".into(), publishers[7].key());
    assert_eq!(world.state().dominant(), None);
    assert_eq!(feeds(&world), three(["p0", "p1", "p2"]));
}

#[tokio::test(start_paused = true)]
async fn all_are_told_who_talks_where_the_room_wants_it() {
    let mut settings = RoomSettings {
        publishers: 10,
        ..RoomSettings::default()
    };
    settings.talk.notify = true;
    let (world, publishers) = World::with_publishers(settings, 10).await;
    assert_eq!(world.media.requested().talk.len(), 10);
    publishers[1].take();
    let mut state = world.state();
    state.heard(&"p0".into(), mid("0"), true, 30.0);
    state.heard(&"p0".into(), mid("0"), true, 31.0);
    // A muted participant stops talking.
    state.moderate(&"p0".into(), "0", true).unwrap();
    drop(state);
    let told = publishers[1].take();
    assert_eq!(
        told,
        ["p0 talks: true", "p0 talks: false", "p0 0 muted: true"]
    );
    assert_eq!(world.media.requested().talk.len(), 9);
}
