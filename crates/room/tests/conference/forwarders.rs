//! Forwarders of publishers' streams, recordings, and publications on other servers.

use std::net::SocketAddr;

use portunus_media::{Encodings, Framing};
use portunus_room::{ForwardRequest, Refusal, RemotePublication, RoomSettings};
use portunus_rtp::Pt;

use crate::world::{World, mid};

fn settings() -> RoomSettings {
    RoomSettings {
        publishers: 10,
        ..RoomSettings::default()
    }
}

fn to(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn request(port: u16, encodings: Encodings) -> ForwardRequest {
    ForwardRequest {
        to: to(port),
        rtcp: None,
        pt: Some(Pt(100)),
        ssrc: None,
        encodings,
        srtp: None,
        messages: Framing::Bare,
    }
}

/// The ports that are forwarded to, and whether each forwarder is open.
fn forwarded(world: &World) -> Vec<(u16, bool)> {
    let outlets = world.media.requested().outlets;
    let ports = outlets.iter().filter_map(|outlet| {
        let options = outlet.forward()?;
        Some((options.to.port(), outlet.options.enabled))
    });
    let mut ports: Vec<_> = ports.collect();
    ports.sort_unstable();
    ports
}

#[tokio::test(start_paused = true)]
async fn forwarders_follow_their_stream() {
    let (world, publishers) = World::with_publishers(settings(), 10).await;
    let (p0, video) = ("p0".into(), mid("1"));
    let mut state = world.state();
    let best = state.forward(&p0, video, request(5_000, Encodings::Best));
    let (id, ssrc) = best.map(|it| (it.id, it.ssrc)).unwrap();
    assert_eq!(ssrc.map(|ssrc| ssrc.0), Some(id));
    let upper = state.forward(&p0, video, request(5_002, Encodings::Only(2)));
    assert_eq!(upper.unwrap().substream, Some(2));
    let audio = state.forward(&p0, mid("0"), request(5_004, Encodings::Best));
    assert_eq!(audio.unwrap().substream, None);
    assert_eq!(state.publication(&p0).unwrap().forwarders().count(), 3);
    drop(state);
    assert_eq!(
        forwarded(&world),
        [(5_000, true), (5_002, true), (5_004, true)]
    );
    world.state().moderate(&p0, "1", true).unwrap();
    assert_eq!(
        forwarded(&world),
        [(5_000, false), (5_002, false), (5_004, true)]
    );
    world.state().end_forwarder(&p0, id.into()).unwrap();
    assert_eq!(forwarded(&world), [(5_002, false), (5_004, true)]);
    let again = world.state().end_forwarder(&p0, id.into());
    assert_eq!(again, Err(Refusal::NoSuchFeed(id.to_string())));
    drop(publishers);
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_so_many_forwarders_and_no_more() {
    let (world, _publishers) = World::with_publishers(settings(), 1).await;
    let mut state = world.state();
    for port in 6_000..6_064 {
        let request = request(port, Encodings::Only(0));
        state.forward(&"p0".into(), mid("0"), request).unwrap();
    }
    let refused = state.forward(&"p0".into(), mid("0"), request(7_000, Encodings::Only(0)));
    assert_eq!(refused.unwrap_err(), Refusal::TooManyForwarders);
    let stranger = state.forward(&"p1".into(), mid("0"), request(7_000, Encodings::Only(0)));
    assert_eq!(stranger.unwrap_err(), Refusal::NoSuchFeed("p1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_is_published_elsewhere_is_so_with_all_encodings() {
    let (world, _publishers) = World::with_publishers(settings(), 2).await;
    let remote = |id: &str| RemotePublication {
        id: id.to_owned(),
        to: to(8_000),
        rtcp: None,
        srtp: None,
    };
    let p0 = "p0".into();
    world.state().publish_remotely(&p0, remote("far")).unwrap();
    // One of audio, and one for each encoding of video.
    assert_eq!(forwarded(&world), [(8_000, true); 4]);
    let twice = world.state().publish_remotely(&p0, remote("far"));
    assert_eq!(twice, Err(Refusal::IdExists("far".to_owned())));
    // They cannot be ended one by one.
    assert_eq!(
        world.state().publication(&p0).unwrap().forwarders().count(),
        0
    );
    world.state().unpublish_remotely(&p0, "far").unwrap();
    assert!(forwarded(&world).is_empty());
}
