//! Moderators close streams and throw people out.

use portunus_room::{Configure, LayerRequest, Refusal, RoomSettings};

use crate::world::World;

fn settings() -> RoomSettings {
    RoomSettings {
        publishers: 10,
        require_private_id: true,
        ..RoomSettings::default()
    }
}

fn private_id(world: &World, id: &str) -> Option<u64> {
    let state = world.state();
    state
        .person(&id.into())
        .map(|person| person.private_id().into())
}

#[tokio::test(start_paused = true)]
async fn what_a_moderator_closes_its_publisher_cannot_open() {
    let (world, publishers) = World::with_publishers(settings(), 10).await;
    let viewer = world.client();
    let claim = private_id(&world, "p9");
    let all = LayerRequest::default();
    world.subscribe(&viewer, &["p0"], &all, claim).unwrap();
    let open = |world: &World| {
        let seen = world.seen_by(&viewer).into_iter();
        seen.map(|(_, kind, open, _)| (kind, open))
            .collect::<Vec<_>>()
    };
    assert_eq!(open(&world), [("audio", true), ("video", true)]);
    publishers[1].take();
    world.state().moderate(&"p0".into(), "0", true).unwrap();
    assert_eq!(open(&world), [("audio", false), ("video", true)]);
    assert_eq!(publishers[1].take(), ["p0 0 muted: true"]);
    let unmute = Configure {
        audio: Some(true),
        video: Some(false),
        ..Configure::default()
    };
    let mut state = world.state();
    let key = publishers[0].key();
    state.configure(&"p0".into(), key, &unmute, None).unwrap();
    drop(state);
    assert_eq!(open(&world), [("audio", false), ("video", false)]);
    world.state().moderate(&"p0".into(), "0", false).unwrap();
    assert_eq!(open(&world), [("audio", true), ("video", false)]);
    let refused = world.state().moderate(&"p0".into(), "7", true);
    assert_eq!(refused, Err(Refusal::NoSuchStream("7".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn who_is_thrown_out_is_neither_seen_nor_sees() {
    let (world, publishers) = World::with_publishers(settings(), 10).await;
    let all = LayerRequest::default();
    let stranger = world.client();
    let refused = world.subscribe(&stranger, &["p1"], &all, None);
    assert_eq!(refused, Err(Refusal::OwnerNeeded));
    let (of_p0, of_p1) = (world.client(), world.client());
    let claims = (private_id(&world, "p0"), private_id(&world, "p1"));
    world
        .subscribe(&of_p0, &["p1", "p2"], &all, claims.0)
        .unwrap();
    world
        .subscribe(&of_p1, &["p0", "p2"], &all, claims.1)
        .unwrap();
    for publisher in &publishers {
        publisher.take();
    }
    world.state().kick(&"p0".into(), None).unwrap();
    assert_eq!(publishers[0].take(), ["thrown out"]);
    assert!(publishers[0].is_closed());
    assert_eq!(publishers[1].take(), ["p0 kicked"]);
    // Its viewers get an offer of the rest, and its own subscription is closed.
    let feeds: Vec<_> = world.seen_by(&of_p1).into_iter().map(|it| it.0).collect();
    assert_eq!(feeds, ["p2", "p2"]);
    assert_eq!(of_p1.take(), ["updated by an offer"]);
    assert!(world.seen_by(&of_p0).iter().all(|(_, _, open, _)| !open));
    // It is gone, so nobody can kick or moderate it again.
    assert_eq!(world.state().kick(&"p0".into(), None), Ok(()));
    assert!(world.state().moderate(&"p0".into(), "0", true).is_err());
    let unknown = world.state().kick(&"nobody".into(), None);
    assert!(matches!(unknown, Err(Refusal::NoSuchUser { .. })));
    let watched = world.take_watched();
    assert!(watched.iter().any(|event| event.starts_with("Kicked")));
}
