//! Participants who receive by their own offers, and doors with data of their own.

use portunus_room::{
    Change, Configure, LayerRequest, Missing, Outcome, RoomSettings, SubscriberJoin, Unsubscribe,
};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{
    CodecName, Description, Direction, Jsep, Kind, MediaOffer, OfferOptions, SdpType,
};

use crate::world::{Client, World, all_of, mid};

fn settings() -> RoomSettings {
    RoomSettings {
        publishers: 10,
        ..RoomSettings::default()
    }
}

/// Returns an offer of m-lines to receive on, with these codecs.
fn receiving(codecs: &[CodecName]) -> Jsep {
    let media = codecs.iter().enumerate().map(|(index, codec)| {
        let mut media = MediaOffer::new(codec.kind(), Direction::RecvOnly);
        media.mid = Some(mid(&index.to_string()));
        media.add_codec(*codec, None, None);
        media.extensions = vec![(ExtensionKind::Mid, 4), (ExtensionKind::Rid, 10)];
        media
    });
    Jsep {
        kind: SdpType::Offer,
        description: Description::offer(OfferOptions {
            name: String::new(),
            session_id: String::new(),
            media: media.collect(),
        }),
        simulcast: Vec::new(),
        svc: Vec::new(),
        e2ee: false,
        update: false,
        restart: false,
    }
}

fn wish(feeds: &[&str]) -> Change {
    let all = LayerRequest::default();
    Change {
        subscribe: feeds.iter().map(|feed| all_of(feed, &all)).collect(),
        unsubscribe: Vec::new(),
    }
}

fn unwish(feed: &str) -> Change {
    Change {
        subscribe: Vec::new(),
        unsubscribe: vec![Unsubscribe {
            feed: Some(feed.into()),
            ..Unsubscribe::default()
        }],
    }
}

/// Offers m-lines. Returns their directions in the answer.
fn offer(world: &World, client: &Client, codecs: &[CodecName]) -> Vec<Direction> {
    let configure = Configure {
        keeps_data: true,
        ..Configure::default()
    };
    let offer = receiving(codecs);
    let configured =
        world
            .state()
            .configure(&"viewer".into(), client.key(), &configure, Some(&offer));
    configured.unwrap();
    client
        .made()
        .media
        .iter()
        .map(|media| media.direction)
        .collect()
}

fn missing(world: &World, client: &Client) -> Option<Missing> {
    let state = world.state();
    state.subscriber(client.key()).unwrap().missing()
}

const BOTH: [CodecName; 2] = [CodecName::Opus, CodecName::Vp8];

#[tokio::test(start_paused = true)]
async fn streams_wait_for_m_lines_of_the_clients_offers() {
    let (world, _publishers) = World::with_publishers(settings(), 2).await;
    let viewer = world.join("viewer");
    world.state().take_subscriber(viewer.clone()).unwrap();
    let changed = world.state().change(viewer.key(), wish(&["p0"])).unwrap();
    assert!(matches!(changed, Outcome::Done));
    let one = Missing { audio: 1, video: 1 };
    assert_eq!(missing(&world, &viewer), Some(one));
    assert_eq!(offer(&world, &viewer, &BOTH), [Direction::SendOnly; 2]);
    assert_eq!(missing(&world, &viewer), None);
    let seen = world.seen_by(&viewer);
    let of = |feed: &str| {
        ["audio", "video"]
            .map(|kind| (feed.to_owned(), kind, true, 2))
            .to_vec()
    };
    assert_eq!(seen, of("p0"));
    // It receives only, so it is no publisher.
    assert!(world.state().publication(&"viewer".into()).is_none());

    // Another stream needs further m-lines.
    world.state().change(viewer.key(), wish(&["p1"])).unwrap();
    assert_eq!(missing(&world, &viewer), Some(one));
    let four = [BOTH, BOTH].concat();
    assert_eq!(offer(&world, &viewer, &four), [Direction::SendOnly; 4]);
    assert_eq!(world.seen_by(&viewer), [of("p0"), of("p1")].concat());
}

#[tokio::test(start_paused = true)]
async fn an_m_line_takes_another_stream_after_it_was_inactive() {
    let (world, publishers) = World::with_publishers(settings(), 2).await;
    let viewer = world.join("viewer");
    world.state().take_subscriber(viewer.clone()).unwrap();
    world.state().change(viewer.key(), wish(&["p0"])).unwrap();
    offer(&world, &viewer, &BOTH);
    world
        .state()
        .leave(&"p0".into(), publishers[0].key())
        .unwrap();
    assert!(world.seen_by(&viewer).is_empty());
    // The next offer shows that the m-lines are free.
    let none = Missing::default();
    assert_eq!(missing(&world, &viewer), Some(none));
    world.state().change(viewer.key(), wish(&["p1"])).unwrap();
    assert_eq!(offer(&world, &viewer, &BOTH), [Direction::Inactive; 2]);
    assert_eq!(missing(&world, &viewer), Some(none));
    assert_eq!(offer(&world, &viewer, &BOTH), [Direction::SendOnly; 2]);
    assert_eq!(world.seen_by(&viewer).len(), 2);
    world.state().change(viewer.key(), unwish("p1")).unwrap();
    assert!(world.seen_by(&viewer).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_codec_the_client_does_not_accept_waits_no_longer() {
    let (world, _publishers) = World::with_publishers(settings(), 1).await;
    let viewer = world.join("viewer");
    world.state().take_subscriber(viewer.clone()).unwrap();
    world.state().change(viewer.key(), wish(&["p0"])).unwrap();
    let other = [CodecName::Opus, CodecName::H264];
    let directions = offer(&world, &viewer, &other);
    assert_eq!(directions[0], Direction::SendOnly);
    assert_ne!(directions[1], Direction::SendOnly);
    let refused = world.state().take_refused(viewer.key());
    assert_eq!(refused, [("p0".into(), mid("1"))]);
    assert_eq!(missing(&world, &viewer), None);
    assert!(world.state().take_refused(viewer.key()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_with_data_of_its_door_may_be_without_streams() {
    let (world, publishers) = World::with_publishers(settings(), 2).await;
    let viewer = world.client();
    let join = SubscriberJoin {
        own_data: true,
        autoupdate: true,
        ..SubscriberJoin::default()
    };
    world
        .state()
        .join_subscriber(viewer.clone(), join, true)
        .unwrap();
    let kinds = || -> Vec<Kind> { viewer.made().media.iter().map(|media| media.kind).collect() };
    assert_eq!(kinds(), [Kind::Data]);
    world.answer(&viewer);
    let changed = world.state().change(viewer.key(), wish(&["p0"])).unwrap();
    assert!(matches!(changed, Outcome::Offer(_)));
    assert_eq!(kinds(), [Kind::Data, Kind::Audio, Kind::Video]);
    world.answer(&viewer);
    assert_eq!(world.seen_by(&viewer).len(), 2);
    // The m-lines of one that goes are not given to another before they were inactive.
    world
        .state()
        .leave(&"p0".into(), publishers[0].key())
        .unwrap();
    let changed = world.state().change(viewer.key(), wish(&["p1"])).unwrap();
    assert!(matches!(changed, Outcome::Later));
    world.answer(&viewer);
    assert_eq!(kinds().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_wanted_layer_is_the_highest_of_all_viewers() {
    let (world, _publishers) = World::with_publishers(settings(), 1).await;
    let wanted = || {
        let state = world.state();
        let stream = state
            .published(&"p0".into())
            .unwrap()
            .stream(mid("1"))
            .unwrap();
        state.wanted_layer(&"p0".into(), stream)
    };
    assert_eq!(wanted(), None);
    let _low = world.viewer(&["p0"], &crate::world::encoding(0));
    assert_eq!(wanted(), Some(0));
    let middle = world.viewer(&["p0"], &crate::world::encoding(1));
    assert_eq!(wanted(), Some(1));
    world.state().leave_subscriber(middle.key());
    assert_eq!(wanted(), Some(0));
}
