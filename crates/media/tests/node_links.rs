//! Sources that cross from one node to another: pictures over a link that loses and delays, layers,
//! keyframes, keys, and datagrams that nobody should have sent.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

use std::collections::HashSet;
use std::time::Duration;

use portunus_media::testing::{FarCamera, NodePath, Simulation};
use portunus_media::{Demand, KeyframeCache, RouteOptions};
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{BottleneckLink, seeds};
use portunus_sdp::negotiated::Codec;

const CLEAN: NodePath = NodePath {
    delay: Duration::from_millis(25),
    jitter: Duration::ZERO,
    loss: 0.0,
};
/// 50 ms there and back, and each twentieth datagram is lost.
const LOSSY: NodePath = NodePath {
    delay: Duration::from_millis(25),
    jitter: Duration::from_millis(4),
    loss: 0.05,
};

fn fast() -> BottleneckLink {
    BottleneckLink::of(DataRate::kbps(100_000))
}

fn wish(substream: u8, temporal: u8) -> RouteOptions {
    RouteOptions {
        substream,
        temporal,
        ..RouteOptions::default()
    }
}

/// A camera that is known at the other node.
fn publish(path: NodePath, seed: u64, kbps: &[u64]) -> (Simulation, FarCamera) {
    let mut simulation = Simulation::of_workers(2, seed);
    simulation.join_nodes(path);
    let camera = simulation.publish(Layering::Encodings, kbps);
    let far = simulation.make_known(camera, kbps.len() as u8);
    (simulation, far)
}

/// The same, with all encodings and the audio crossing.
fn cross(path: NodePath, seed: u64, kbps: &[u64]) -> (Simulation, FarCamera) {
    let (mut simulation, far) = publish(path, seed, kbps);
    for encoding in 0..kbps.len() as u8 {
        simulation.open_video(far, encoding, RouteOptions::default());
    }
    simulation.open_audio(far);
    (simulation, far)
}

/// Checks that a viewer got each packet from `from` on, seconds after the start, until a second
/// before the end.
fn assert_whole(simulation: &Simulation, watcher: usize, from: f64) {
    let end = simulation.seconds(simulation.now) - 1.0;
    let packets = &simulation.watchers[watcher].packets;
    let within = packets.iter().filter(|packet| {
        let at = simulation.seconds(packet.at);
        (from..end).contains(&at)
    });
    let numbers: Vec<u16> = within.map(|packet| packet.sequence).collect();
    assert!(numbers.len() > 100, "{}", numbers.len());
    let last = numbers[numbers.len() - 50];
    let first = numbers[0].wrapping_add(50);
    let came: HashSet<u16> = packets.iter().map(|packet| packet.sequence).collect();
    let missing = (0..last.wrapping_sub(first)).filter(|n| !came.contains(&first.wrapping_add(*n)));
    assert_eq!(missing.count(), 0);
}

#[test]
fn losses_and_delay_of_the_link_cost_the_far_viewer_no_picture() {
    for seed in seeds(3) {
        let mut pictures = Vec::new();
        for path in [CLEAN, LOSSY] {
            let (mut simulation, far) = cross(path, seed, &[1_500]);
            let down = simulation.link(fast());
            let watcher = simulation.watch_far(far, down);
            simulation.run(20.0);
            assert_whole(&simulation, watcher, 3.0);
            // A frame that lost a packet waits for a round trip and a little more.
            let freeze = simulation.longest_freeze(watcher, 3.0, 19.0);
            assert!(freeze < 0.4, "{freeze}");
            pictures.push(simulation.pictures(watcher, 3.0, 19.0));
            let [near, there] = simulation.node_link_stats();
            assert_eq!(there.lost_packets, 0, "{there:?}");
            assert_eq!(near.sent_streams, 2);
            assert_eq!(there.received_streams, 2);
            let round_trip = near.round_trip.unwrap().as_millis();
            assert!((48..70).contains(&round_trip), "{round_trip}");
            if path.loss > 0.0 {
                assert!(near.retransmitted_packets > 50, "{near:?}");
                assert!(there.requested_packets >= near.retransmitted_packets);
            }
        }
        assert!(pictures[0] > 450, "{pictures:?}");
        let difference = pictures[0].abs_diff(pictures[1]);
        assert!(difference <= 5, "{pictures:?}");
    }
}

#[test]
fn a_late_viewer_gets_its_picture_from_the_node_that_it_is_at() {
    let (mut simulation, far) = cross(LOSSY, 1, &[1_000]);
    simulation.keep_far_keyframe(
        far,
        KeyframeCache {
            max_age: Duration::from_secs(30),
            max_bytes: 0,
        },
    );
    let down = simulation.link(fast());
    simulation.watch_far(far, down);
    simulation.run(6.0);
    let asked = simulation.cameras[0].keyframe_requests;
    let late = simulation.watch_far(far, down);
    simulation.run(4.0);
    assert_eq!(simulation.cameras[0].keyframe_requests, asked);
    let came = simulation.watchers[late].pictures[0].0;
    let came = simulation.seconds(came);
    assert!(came < 7.0, "{came}");
    assert_whole(&simulation, late, 8.0);
}

#[test]
fn a_viewer_switches_between_the_encodings_that_cross() {
    let (mut simulation, far) = cross(LOSSY, 2, &[150, 500, 1_500]);
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(8.0);
    assert_eq!(simulation.layer(watcher), Some(2));
    for substream in [0, 1, 2] {
        simulation.set_wish(watcher, wish(substream, 2));
        simulation.run(4.0);
        assert_eq!(simulation.layer(watcher), Some(substream));
    }
    assert_whole(&simulation, watcher, 3.0);
}

#[test]
fn nothing_crosses_when_nobody_looks() {
    let (mut simulation, far) = publish(CLEAN, 3, &[150, 500]);
    let down = simulation.link(fast());
    simulation.run(4.0);
    assert_eq!(simulation.crossed(0, 0.0, 4.0), 0);
    assert_eq!(simulation.demands(), []);
    // What can be seen is reported as soon as somebody looks.
    let watcher = simulation.watch_far(far, down);
    simulation.run(1.0);
    let demands = simulation.demands();
    let of = |demands: &[(portunus_media::IngestId, Demand)], ingest| {
        let mut of = demands.iter().filter(|(of, _)| *of == ingest);
        of.next_back().map(|(_, demand)| demand.encodings)
    };
    assert_eq!(of(&demands, far.video), Some(3));
    assert_eq!(of(&demands, far.audio), Some(1));
    let low = simulation.open_video(far, 0, RouteOptions::default());
    simulation.run(4.0);
    assert!(simulation.pictures(watcher, 5.0, 9.0) > 50);
    // One encoding, once: the other one does not cross.
    let rate = simulation.received(watcher, 6.0, 9.0).as_bps();
    assert!((50_000..300_000).contains(&rate), "{rate}");
    simulation.set_wish(watcher, wish(0, 2));
    simulation.run(1.0);
    assert_eq!(of(&simulation.demands(), far.video), Some(1));
    simulation.close(low);
    simulation.run(4.0);
    assert_eq!(simulation.crossed(0, 11.0, 14.0), 0);
    let [near, there] = simulation.node_link_stats();
    assert_eq!((near.sent_streams, there.received_streams), (0, 0));
}

#[test]
fn a_stream_that_comes_back_goes_on_with_a_picture() {
    let (mut simulation, far) = publish(LOSSY, 4, &[800]);
    let crossing = simulation.open_video(far, 0, RouteOptions::default());
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(6.0);
    simulation.close(crossing);
    simulation.run(20.0);
    assert_eq!(simulation.pictures(watcher, 7.0, 26.0), 0);
    simulation.open_video(far, 0, RouteOptions::default());
    simulation.run(6.0);
    assert!(simulation.pictures(watcher, 27.0, 31.0) > 100);
    assert_whole(&simulation, watcher, 27.0);
}

#[test]
fn temporal_layers_that_nobody_sees_do_not_cross() {
    let (mut simulation, far) = publish(LOSSY, 5, &[1_000]);
    let crossing = simulation.open_video(far, 0, RouteOptions::default());
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(6.0);
    let all = simulation.crossed(0, 3.0, 6.0);
    simulation.set_crossing(crossing, wish(2, 0));
    simulation.run(6.0);
    let fewer = simulation.crossed(0, 9.0, 12.0);
    assert!(fewer * 3 < all * 2, "{fewer} of {all}");
    // What was left out is no loss.
    assert_whole(&simulation, watcher, 3.0);
    let [_, there] = simulation.node_link_stats();
    assert_eq!(there.lost_packets, 0);
}

#[test]
fn spatial_layers_cross_in_one_stream() {
    let mut simulation = Simulation::of_workers(2, 6);
    simulation.join_nodes(LOSSY);
    let camera = simulation.publish_as(Codec::Vp9, Layering::Spatial, &[150, 500, 1_500]);
    let far = simulation.make_known(camera, 1);
    simulation.open_video(far, 0, RouteOptions::default());
    simulation.open_audio(far);
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(8.0);
    assert_eq!(simulation.layer(watcher), Some(2));
    let low = RouteOptions {
        spatial: 0,
        ..RouteOptions::default()
    };
    simulation.set_wish(watcher, low);
    simulation.run(4.0);
    assert_eq!(simulation.layer(watcher), Some(0));
    assert_whole(&simulation, watcher, 3.0);
}

#[test]
fn a_new_key_disturbs_nothing() {
    let (mut simulation, far) = cross(LOSSY, 7, &[1_000]);
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(4.0);
    for number in 1..4 {
        simulation.change_key(number, true);
        simulation.run(1.0);
        simulation.change_key(number, false);
        simulation.run(3.0);
    }
    assert_whole(&simulation, watcher, 3.0);
    let [_, there] = simulation.node_link_stats();
    assert_eq!((there.lost_packets, there.unauthentic), (0, 0), "{there:?}");
}

#[test]
fn what_nobody_of_the_link_has_sent_is_counted_and_dropped() {
    let (mut simulation, far) = cross(CLEAN, 8, &[500]);
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(5.0);
    let [_, before] = simulation.node_link_stats();
    assert_eq!(
        before.unauthentic + before.unknown_ssrc + before.malformed,
        0
    );
    let last = simulation.last_crossed();
    let rtp = |datagram: &&Vec<u8>| !(192..=223).contains(&datagram[1]);
    let packets: Vec<Vec<u8>> = last.iter().filter(rtp).cloned().collect();
    for packet in &packets {
        // Once more; with another byte; of a stream that nobody expects; from elsewhere.
        simulation.forge(packet.clone(), false);
        let mut other = packet.clone();
        *other.last_mut().unwrap() ^= 1;
        // It has not come yet.
        other[2] = other[2].wrapping_add(1);
        simulation.forge(other, false);
        let mut stranger = packet.clone();
        stranger[8] ^= 0x10;
        simulation.forge(stranger, false);
        simulation.forge(packet.clone(), true);
    }
    for len in [0, 1, 8, 12, 40] {
        simulation.forge(vec![0x80; len], false);
        simulation.forge([&[0x80, 200, 0, 1][..], &vec![7; len]].concat(), false);
    }
    let [_, after] = simulation.node_link_stats();
    let count = packets.len() as u64;
    assert!(count > 50);
    assert_eq!(after.replayed, count);
    assert_eq!(after.unauthentic, count);
    assert_eq!(after.received_packets, before.received_packets);
    assert!(
        after.unknown_ssrc > count && after.malformed > 0,
        "{after:?}"
    );
    simulation.run(5.0);
    assert_whole(&simulation, watcher, 3.0);
}

#[test]
fn an_outage_of_the_link_ends_with_a_picture() {
    let (mut simulation, far) = cross(CLEAN, 9, &[800]);
    let down = simulation.link(fast());
    let watcher = simulation.watch_far(far, down);
    simulation.run(5.0);
    simulation.set_node_path(NodePath { loss: 1.0, ..CLEAN });
    simulation.run(8.0);
    simulation.set_node_path(CLEAN);
    simulation.run(5.0);
    assert!(simulation.pictures(watcher, 14.0, 18.0) > 100);
    assert_whole(&simulation, watcher, 14.5);
}
