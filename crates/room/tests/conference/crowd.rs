//! Ten participants see each other: their notices, and their media.

use portunus_room::LineSetting;
use portunus_room::{
    LayerRequest, Permissions, PersonId, Refusal, RoomSettings, SubscriberConfigure,
};

use crate::world::{World, encoding};

fn settings() -> RoomSettings {
    RoomSettings {
        publishers: 10,
        ..RoomSettings::default()
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("p{index}")).collect()
}

#[tokio::test(start_paused = true)]
async fn ten_see_each_other_each_in_the_size_that_it_wants() {
    let (world, publishers) = World::with_publishers(settings(), 10).await;
    let names = names(10);
    let mut viewers = Vec::new();
    for own in &names {
        let others: Vec<&str> = names
            .iter()
            .filter(|it| *it != own)
            .map(|it| &**it)
            .collect();
        // Thumbnails of all.
        viewers.push(world.viewer(&others, &encoding(0)));
    }
    assert_eq!(world.routes(), 10 * 9 * 2);
    for (viewer, own) in viewers.iter().zip(&names) {
        let seen = world.seen_by(viewer);
        assert!(seen.iter().all(|(feed, ..)| feed != own));
        let open = |kind| {
            seen.iter()
                .filter(move |(_, it, open, _)| *it == kind && *open)
        };
        assert_eq!((open("audio").count(), open("video").count()), (9, 9));
        assert!(open("video").all(|(.., encoding)| *encoding == 0));
    }
    // A viewer enlarges one picture. The others see no change.
    let before = world.seen_by(&viewers[1]);
    let large = SubscriberConfigure {
        lines: vec![LineSetting {
            mid: Some("1".to_owned()),
            send: None,
            layers: encoding(2),
        }],
        ..SubscriberConfigure::default()
    };
    let mut state = world.state();
    state
        .configure_subscriber(viewers[0].key(), &large)
        .unwrap();
    drop(state);
    let seen = world.seen_by(&viewers[0]);
    let large: Vec<_> = seen
        .iter()
        .filter(|(.., encoding)| *encoding == 2)
        .collect();
    let of = |kind: &str| large.iter().filter(|(_, it, ..)| *it == kind).count();
    assert_eq!((of("video"), seen.len()), (1, 18));
    assert_eq!(world.seen_by(&viewers[1]), before);
    drop(publishers);
}

#[tokio::test(start_paused = true)]
async fn a_storm_is_told_of_together_and_written_once() {
    let world = World::new(settings());
    let listeners: Vec<_> = (0..5)
        .map(|index| world.join(&format!("l{index}")))
        .collect();
    let names = names(10);
    let publishers: Vec<_> = names.iter().map(|name| world.join(name)).collect();
    for (name, publisher) in names.iter().zip(&publishers) {
        world.publish(name, publisher).unwrap();
    }
    // The first publisher is announced alone, the others together.
    for listener in &listeners {
        assert_eq!(listener.take(), ["p0 published"]);
    }
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let addresses: Vec<_> = listeners.iter().map(|it| it.take_addresses()).collect();
    assert_eq!(addresses[0].len(), 1);
    assert!(addresses.iter().all(|it| *it == addresses[0]));
    // No publisher is told about itself.
    assert_eq!(publishers[0].take().len(), 1);
    assert!(!publishers[1].take().concat().contains("p1"));
    // The answer to a late participant lists the others, so it gets no notice of them.
    let late = world.join("late");
    assert!(late.take().is_empty());
    assert_eq!(world.state().feeds().count(), 10);
}

#[tokio::test(start_paused = true)]
async fn limits_permissions_and_ids_are_kept() {
    let (world, _) = World::with_publishers(settings(), 10).await;
    let more = world.join("more");
    let refused = world.publish("more", &more).unwrap_err();
    assert_eq!(refused, Refusal::PublishersFull(10));
    let taken = world.join_with("p1", Permissions::ALL).unwrap_err();
    assert_eq!(taken, Refusal::IdExists("p1".to_owned()));
    let of_p0 = key_of(&world, "p0");
    world.state().leave(&"p0".into(), of_p0).unwrap();
    let audio_only = Permissions {
        video: false,
        ..Permissions::ALL
    };
    let quiet = world.join_with("quiet", audio_only).unwrap();
    world.publish("quiet", &quiet).unwrap();
    let rejected: Vec<bool> = quiet
        .made()
        .media
        .iter()
        .map(|media| media.rejected)
        .collect();
    assert_eq!(rejected, [false, true]);
    let viewer = world.viewer(&["quiet"], &LayerRequest::default());
    let seen = world.seen_by(&viewer);
    assert_eq!(seen, [("quiet".to_owned(), "audio", true, 2)]);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_is_gone_for_all_and_the_room_ends_for_all() {
    let (world, publishers) = World::with_publishers(settings(), 10).await;
    let viewer = world.viewer(&["p0", "p1"], &LayerRequest::default());
    assert_eq!(world.seen_by(&viewer).len(), 4);
    publishers[1].take();
    world.take_watched();
    world.state().gone(&"p0".into(), publishers[0].key());
    assert_eq!(world.seen_by(&viewer).len(), 2);
    assert_eq!(viewer.take(), ["updated by an offer"]);
    assert_eq!(publishers[1].take(), ["p0 unpublished", "p0 left"]);
    let gone = world.state().publishes(&"p0".into(), publishers[0].key());
    assert_eq!(gone, Err(Refusal::NotInRoom));
    // Only one offer at a time: the next change waits for the answer.
    world.state().gone(&"p1".into(), publishers[1].key());
    assert!(viewer.take().is_empty());
    world.answer(&viewer);
    assert_eq!(viewer.take(), ["updated by an offer"]);
    world.state().destroy();
    assert!(publishers[2].take().contains(&"destroyed".to_owned()));
    assert!(publishers[2].is_closed() && viewer.is_closed());
    assert_eq!(world.state().people().count(), 0);
}

fn key_of(world: &World, id: &str) -> portunus_room::ConnectionId {
    let state = world.state();
    let person = state.person(&PersonId::from(id)).unwrap();
    person.connection().unwrap().id()
}
