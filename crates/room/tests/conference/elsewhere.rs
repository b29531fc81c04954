//! Participants at other nodes of a cluster: two rooms of one name, each on a media plane of its
//! own, whose relays exchange messages.

use std::sync::Arc;

use portunus_media::{Demand, NodeLinkKey, NodeLinkOptions, SourceRef};
use portunus_relay::{Event, FarNode, FarNodeId, FarNodeOptions, Message, Offer, Relays};
use portunus_room::{
    ClaimRefusal, Displaced, FarOrigin, Permissions, PersonId, Profile, Refusal, Relayed,
    RelayedStream, RoomSettings, Stream,
};
use portunus_sdp::Kind;

use crate::world::{World, encoding, mid};

/// A node with the room, and the other one as it knows it.
struct Node {
    world: World,
    relays: Relays,
    other: FarNodeId,
    far: FarNode,
}

fn node(world: World) -> Node {
    let relays = Relays::new(world.media.clone());
    let link = NodeLinkOptions {
        far: vec![std::net::SocketAddr::from(([192, 0, 2, 1], 4_000))],
        send: NodeLinkKey::random(),
        receive: NodeLinkKey::random(),
    };
    let max_bps = None;
    let (other, far) = relays.connect(&FarNodeOptions {
        link,
        max_bps,
        place: None,
        is_suspect: false,
    });
    Node {
        world,
        relays,
        other,
        far,
    }
}

/// Returns the streams of a participant as another node takes them in.
fn streams(of: &Node, id: &PersonId) -> (Vec<RelayedStream>, Vec<Offer>) {
    let state = of.world.state();
    let mut offers = Vec::new();
    let streams = state
        .publication(id)
        .unwrap()
        .streams()
        .iter()
        .map(|stream| {
            let mut copy = Stream::new(stream.kind, stream.mid, stream.index);
            copy.disabled = stream.disabled;
            copy.format = stream.format.clone();
            let (source, description) = state.offered(id, stream.mid).unwrap();
            let offer = of.relays.offer(source, description);
            offers.push(offer.clone());
            RelayedStream {
                stream: copy,
                offer: Some(offer),
                open: stream.is_open(),
            }
        });
    let streams = streams.collect();
    (streams, offers)
}

/// A publisher `p0` at one node, whom the other one knows.
async fn two_nodes() -> (Node, Node, Vec<Offer>) {
    let settings = RoomSettings {
        publishers: 10,
        ..RoomSettings::default()
    };
    let (world, _publishers) = World::with_publishers(settings.clone(), 1).await;
    let near = node(world);
    let there = node(World::new(settings));
    let (streams, offers) = streams(&near, &"p0".into());
    let (media, _hears) = Relayed::new(there.world.media.clone(), Arc::new(there.far.clone()));
    let id: PersonId = "p0".into();
    let mut state = there.world.state();
    let join = state.join_elsewhere(&id, Profile::default(), Permissions::ALL, at_b());
    join.unwrap();
    state.publish_elsewhere(&id, media, false, streams).unwrap();
    drop(state);
    (near, there, offers)
}

/// The origin of a participant at node `b`.
fn at_b() -> FarOrigin<'static> {
    FarOrigin {
        node: "b",
        session: None,
        note: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_receives_somebody_at_another_node_as_anybody_else() {
    let (_near, there, _) = two_nodes().await;
    let ingests = there.world.media.requested().ingests;
    assert_eq!(ingests.len(), 2, "audio and video");
    let others = there.world.join("al");
    others.take();
    there.world.viewer(&["p0"], &encoding(1));
    let routes = there.world.media.requested().routes;
    let from: Vec<SourceRef> = routes.iter().map(|route| route.from).collect();
    let mut expected: Vec<SourceRef> = ingests.iter().map(|it| it.id.into()).collect();
    expected.sort_by_key(|it| format!("{it:?}"));
    let mut from_sorted = from.clone();
    from_sorted.sort_by_key(|it| format!("{it:?}"));
    assert_eq!(from_sorted, expected);
    assert!(routes.iter().all(|route| route.options.enabled));
    assert!(routes.iter().any(|route| route.options.substream == 1));
    // The others are told when it leaves, and its ingests are gone.
    let id: PersonId = "p0".into();
    there.world.state().leave_elsewhere(&id).unwrap();
    assert_eq!(others.take(), ["p0 unpublished", "p0 left"]);
    let requested = there.world.media.requested();
    assert!(requested.ingests.is_empty() && requested.routes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_seen_elsewhere_counts_for_the_publisher() {
    let (near, there, offers) = two_nodes().await;
    let id: PersonId = "p0".into();
    let video = |node: &Node| {
        let state = node.world.state();
        let publication = state.publication(&id).unwrap();
        state.wanted_layer(&id, publication.stream(mid("1")).unwrap())
    };
    assert_eq!(video(&near), None);
    // A viewer there: its worker reports what it can see.
    there.world.viewer(&["p0"], &encoding(1));
    assert_eq!(video(&there), Some(1));
    let ingests = there.world.media.requested().ingests;
    let of_video = ingests.iter().find(|it| match &it.options.media {
        portunus_media::IngestMedia::Rtp(media) => media.is_video(),
        portunus_media::IngestMedia::Data(_) => false,
    });
    let demand = Demand {
        encodings: 3,
        spatial: 2,
        temporal: 2,
    };
    let relays = there.relays.clone();
    tokio::spawn(async move { relays.run().await });
    there.relays.reports().pretend(of_video.unwrap().id, demand);
    let (to, message) = there.relays.next_message().await;
    assert_eq!(to, there.other);
    assert!(matches!(&message, Message::Want { streams, .. } if streams.len() == 2));
    near.relays.take_message(near.other, &message);
    let Event::Wanted { source, demand } = near.relays.next_event().await else {
        panic!("it is wanted");
    };
    assert_eq!(source, offers[1].id);
    let changes = |layer| {
        let mut state = near.world.state();
        state.set_far_layer(&id, mid("1"), layer)
    };
    assert!(changes(demand.top()));
    assert!(!changes(demand.top()));
    assert_eq!(video(&near), Some(1));
    let outlets = near.world.media.requested().outlets;
    let sent: Vec<u8> = outlets
        .iter()
        .map(|it| it.relay().unwrap().encoding)
        .collect();
    assert_eq!(sent, [0, 1], "and just that is sent");
}

#[tokio::test(start_paused = true)]
async fn a_mute_elsewhere_closes_the_routes_here() {
    let (near, there, offers) = two_nodes().await;
    there.world.viewer(&["p0"], &encoding(2));
    let id: PersonId = "p0".into();
    let update = |mutes: bool| {
        let (mut updates, _) = streams(&near, &id);
        for (update, offer) in updates.iter_mut().zip(&offers) {
            update.offer = Some(offer.clone());
            update.open = update.stream.kind == Kind::Audio || !mutes;
        }
        there.world.state().update_elsewhere(&id, updates).unwrap();
        let routes = there.world.media.requested().routes;
        routes.iter().filter(|route| route.options.enabled).count()
    };
    assert_eq!((update(false), update(true), update(false)), (2, 1, 2));
    // A stream that is offered anew has another ingest, and its viewers follow.
    let (updates, _) = streams(&near, &id);
    there.world.state().update_elsewhere(&id, updates).unwrap();
    let requested = there.world.media.requested();
    assert_eq!(requested.ingests.len(), 2);
    let is_present = |from: SourceRef| requested.ingests.iter().any(|it| from == it.id.into());
    assert_eq!(requested.routes.len(), 2);
    assert!(requested.routes.iter().all(|route| is_present(route.from)));
    let nobody = there.world.state().leave_elsewhere(&"p9".into());
    assert!(nobody.is_err());
    let own = near.world.state().leave_elsewhere(&id);
    assert_eq!(own, Err(Refusal::NotRemote));
}

#[tokio::test(start_paused = true)]
async fn what_another_node_has_claimed_is_given_to_nobody_else() {
    let world = World::new(RoomSettings {
        publishers: 1,
        ..RoomSettings::default()
    });
    let [bo, cy]: [PersonId; 2] = ["bo".into(), "cy".into()];
    world.state().claim(&bo, "b", true).unwrap();
    // Neither a client of this node nor one of a third one.
    let here = world.join_with("bo", Permissions::ALL);
    assert_eq!(here.unwrap_err(), Refusal::IdExists("bo".to_owned()));
    let there = world.state().claim(&bo, "c", false);
    assert_eq!(there, Err(Refusal::IdExists("bo".to_owned())));
    let full = Err(Refusal::PublishersFull(1));
    assert_eq!(world.state().claim(&cy, "c", true), full);
    assert_eq!(world.state().claim(&cy, "c", false), Ok(()));
    let al = world.join("al");
    assert!(world.publish("al", &al).is_err());
    // Who is there, and connects, keeps the place.
    let join = |id: &PersonId| {
        let mut state = world.state();
        state.join_elsewhere(id, Profile::default(), Permissions::ALL, at_b())
    };
    join(&bo).unwrap();
    join(&cy).unwrap();
    world.state().connects_elsewhere(&bo, true);
    assert!(world.publish("al", &al).is_err());
    assert_eq!(world.state().claim_place(&cy, "c"), full);
    world.state().connects_elsewhere(&bo, false);
    assert_eq!(world.state().claim_place(&cy, "c"), Ok(()));
    assert!(world.publish("al", &al).is_err());
    // One that joins there again may have left already.
    assert_eq!(world.state().claim(&bo, "b", false), Ok(()));
    assert!(world.state().claim(&bo, "c", false).is_err());
    world.state().leave_elsewhere(&cy).unwrap();
    world.publish("al", &al).unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_two_clients_that_join_with_one_id_the_later_one_stays() {
    let world = World::new(RoomSettings::default());
    let [bo, cy, dan]: [PersonId; 3] = ["bo".into(), "cy".into(), "dan".into()];
    let claim = |id: &PersonId, of: (&str, &str), limit: Option<usize>| {
        world.state().claim_over(id, of, limit)
    };
    assert_eq!(claim(&bo, ("b", "1"), None), Ok(None));
    let displaced = Displaced {
        node: "b".to_owned(),
        session: "1".to_owned(),
    };
    assert_eq!(claim(&bo, ("c", "2"), None), Ok(Some(displaced)));
    // The node decides between two of its own.
    assert_eq!(claim(&bo, ("c", "3"), None), Ok(None));
    // Those who are about to join count, and who joins again does not count twice.
    assert_eq!(claim(&cy, ("b", "4"), Some(1)), Err(ClaimRefusal::Full));
    assert_eq!(claim(&bo, ("c", "5"), Some(1)), Ok(None));
    assert_eq!(claim(&cy, ("", "6"), Some(2)), Ok(None));
    world.state().take_claim(&cy, "another");
    assert!(world.join_with("cy", Permissions::ALL).is_err());
    world.state().take_claim(&cy, "6");
    world.join("cy");
    assert_eq!(claim(&dan, ("b", "7"), Some(2)), Err(ClaimRefusal::Full));
    // Clients of other doors are not replaced.
    world.state().claim(&dan, "b", false).unwrap();
    let taken = ClaimRefusal::Refused(Refusal::IdExists("dan".to_owned()));
    assert_eq!(claim(&dan, ("c", "8"), None), Err(taken));
}
