//! Viewers move between feeds without a negotiation.

use portunus_room::{
    Change, Dummy, LayerRequest, Outcome, PersonId, Refusal, RoomSettings, Switch, SwitchEntry,
    Unsubscribe,
};

use crate::world::{World, all_of, encoding};

fn settings() -> RoomSettings {
    RoomSettings {
        publishers: 10,
        ..RoomSettings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_viewer_moves_through_ten_feeds_without_an_offer() {
    let (world, _publishers) = World::with_publishers(settings(), 10).await;
    let viewer = world.viewer(&["p0"], &encoding(0));
    for index in 1..10 {
        let feed = format!("p{index}");
        let switch = Switch::Feed(PersonId::from(&*feed));
        let switched = world.state().switch(viewer.key(), switch).unwrap();
        assert_eq!((switched.changes, switched.offer.is_some()), (2, false));
        // The best encoding again: the wish belonged to the former picture.
        let seen = world.seen_by(&viewer);
        assert_eq!(
            seen,
            [(feed.clone(), "audio", true, 2), (feed, "video", true, 2)]
        );
    }
    assert!(viewer.take().is_empty() && !viewer.has_offer());
    // The picture of one publisher, the sound of another.
    let entry = SwitchEntry {
        feed: "p3".into(),
        mid: "1".to_owned(),
        sub_mid: "1".to_owned(),
        layers: encoding(1),
    };
    let switch = Switch::Streams(vec![entry]);
    let switched = world.state().switch(viewer.key(), switch).unwrap();
    assert_eq!(switched.changes, 1);
    let seen = world.seen_by(&viewer);
    let both = [
        ("p3".to_owned(), "video", true, 1),
        ("p9".to_owned(), "audio", true, 2),
    ];
    assert_eq!(seen, both);
    let nobody = Switch::Feed("nobody".into());
    let refused = world.state().switch(viewer.key(), nobody).unwrap_err();
    assert_eq!(refused, Refusal::NoSuchFeed("nobody".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_subscribed_and_unsubscribed_is_offered_once() {
    let (world, _publishers) = World::with_publishers(settings(), 3).await;
    let all = LayerRequest::default();
    let viewer = world.viewer(&["p0"], &all);
    let swap = Change {
        subscribe: vec![all_of("p1", &all)],
        unsubscribe: vec![Unsubscribe {
            feed: Some("p0".into()),
            ..Unsubscribe::default()
        }],
    };
    let outcome = world.state().change(viewer.key(), swap).unwrap();
    assert!(matches!(outcome, Outcome::Offer(_)));
    // The m-lines are reused, and inactive before the answer.
    assert_eq!(viewer.made().media.len(), 2);
    assert!(world.seen_by(&viewer).is_empty());
    let more = Change {
        subscribe: vec![all_of("p2", &all)],
        ..Change::default()
    };
    let outcome = world.state().change(viewer.key(), more).unwrap();
    assert!(matches!(outcome, Outcome::Later));
    world.answer(&viewer);
    assert_eq!(world.seen_by(&viewer).len(), 2);
    assert_eq!(viewer.take(), ["updated by an offer"]);
    world.answer(&viewer);
    assert_eq!(world.seen_by(&viewer).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn places_that_are_held_are_taken_without_an_offer() {
    let settings = RoomSettings {
        dummy: Some(Dummy::default()),
        ..settings()
    };
    let world = World::new(settings);
    world.state().add_dummy("dummy".into());
    let viewer = world.viewer(&["dummy"], &LayerRequest::default());
    assert!(world.seen_by(&viewer).is_empty());
    world.publisher("p0");
    let switch = Switch::Feed("p0".into());
    let switched = world.state().switch(viewer.key(), switch).unwrap();
    assert_eq!((switched.changes, switched.offer.is_some()), (2, false));
    assert_eq!(world.seen_by(&viewer).len(), 2);
    let refused = world.state().moderate(&"dummy".into(), "0", true);
    assert!(matches!(refused, Err(Refusal::NoSuchUser { .. })));
}
