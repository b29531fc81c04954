//! Keyframe requests to publishers, and what a viewer sees until keyframes come, in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

use std::time::Duration;

use portunus_media::testing::Simulation;
use portunus_media::{KeyframeInterval, RouteOptions};
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{BottleneckLink, seeds};
use portunus_sdp::negotiated::Codec;

fn every(seconds: u64) -> KeyframeInterval {
    KeyframeInterval {
        every: Duration::from_secs(seconds),
        opaque: false,
    }
}

/// Lets seconds pass in which the publisher sends a keyframe every second by itself. Returns the
/// number of requests.
fn asked_beside_its_own(simulation: &mut Simulation, seconds: u32) -> usize {
    let before = simulation.cameras[0].keyframe_requests;
    for _ in 0..seconds {
        let now = simulation.now;
        simulation.cameras[0].publisher.request_keyframe(0, now);
        simulation.run(1.0);
    }
    simulation.cameras[0].keyframe_requests - before
}

#[test]
fn a_publisher_is_asked_for_a_keyframe_when_none_has_come_for_a_time() {
    let mut simulation = Simulation::new(1);
    let link = simulation.link(BottleneckLink::of(DataRate::kbps(50_000)));
    let watched = simulation.publish(Layering::Encodings, &[500]);
    let unwatched = simulation.publish(Layering::Encodings, &[500]);
    simulation.watch(watched, link);
    simulation.run(5.0);
    let asked = |simulation: &Simulation| simulation.cameras[watched].keyframe_requests;
    let before = asked(&simulation);
    simulation.run(9.0);
    assert_eq!(asked(&simulation), before, "there is no reason to ask");
    for camera in [watched, unwatched] {
        simulation.ask_keyframes(camera, Some(every(2)));
    }
    simulation.run(9.0);
    assert_eq!(asked(&simulation) - before, 4);
    assert_eq!(simulation.cameras[unwatched].keyframe_requests, 0);
    // Each keyframe restarts the interval.
    assert_eq!(asked_beside_its_own(&mut simulation, 10), 0);
    let opaque = KeyframeInterval {
        opaque: true,
        ..every(2)
    };
    simulation.ask_keyframes(watched, Some(opaque));
    assert_eq!(asked_beside_its_own(&mut simulation, 9), 4);
    simulation.ask_keyframes(watched, None);
    let before = asked(&simulation);
    simulation.run(9.0);
    assert_eq!(asked(&simulation), before);
}

#[test]
fn a_viewer_of_an_encoding_that_ends_waits_for_one_keyframe_of_the_next() {
    for seed in seeds(5) {
        let mut simulation = Simulation::new(seed);
        let link = simulation.link(BottleneckLink::of(DataRate::kbps(8_000)));
        let camera = simulation.publish(Layering::Encodings, &[150, 500, 1_700]);
        simulation.watch(camera, link);
        simulation.run(15.0);
        assert_eq!(simulation.layer(0), Some(2));
        for (left, ends) in [(1, 2), (0, 1)] {
            let asked = simulation.cameras[camera].keyframe_requests;
            let from = simulation.seconds(simulation.now);
            simulation.cameras[camera].publisher.kbps[ends] = 0;
            simulation.run(10.0);
            assert_eq!(simulation.layer(0), Some(left as u8));
            // It is missed for 250 ms. The keyframe takes 120 ms to make, and up to 100 ms there
            // and back.
            let freeze = simulation.longest_freeze(0, from, from + 10.0);
            assert!(
                freeze < 0.5,
                "{freeze} s without a picture with seed {seed}"
            );
            let switches = simulation.switches(0, from, from + 10.0);
            assert_eq!(switches.len(), 1, "{switches:?}");
            let asked = simulation.cameras[camera].keyframe_requests - asked;
            assert!(asked <= 3, "{asked} keyframes were asked for");
        }
    }
}

#[test]
fn a_viewer_who_wants_less_than_there_is_gets_the_least() {
    for (seed, kbps) in seeds(2).flat_map(|seed| [(seed, 8_000), (seed, 700)]) {
        let mut simulation = Simulation::new(seed);
        let link = simulation.link(BottleneckLink::of(DataRate::kbps(kbps)));
        let camera = simulation.publish(Layering::Encodings, &[0, 500, 1_700]);
        simulation.watch(camera, link);
        let lowest = |enabled| RouteOptions {
            substream: 0,
            enabled,
            ..RouteOptions::default()
        };
        simulation.set_options(0, lowest(true));
        simulation.run(3.0);
        assert_eq!(simulation.layer(0), Some(1), "{kbps} kbit/s");
        assert!(simulation.pictures(0, 1.5, 3.0) > 30);
        simulation.run(20.0);
        assert!(simulation.longest_freeze(0, 3.0, 23.0) < 1.0);
        let layers = simulation.stats(0).media[0].layers;
        let layers = layers.unwrap();
        assert_eq!(layers.substream, Some(1));
        assert!(layers.bitrate > 300_000, "{layers:?}");
        simulation.set_options(0, lowest(false));
        simulation.run(2.0);
        simulation.set_options(0, lowest(true));
        simulation.run(2.0);
        assert_eq!(simulation.layer(0), Some(1), "resumed");
        assert!(simulation.pictures(0, 26.0, 27.0) > 20);
        simulation.cameras[camera].publisher.kbps[0] = 150;
        simulation.run(3.0);
        assert_eq!(simulation.layer(0), Some(0), "it is there now");
    }
}

#[test]
fn noise_is_taken_for_no_keyframe_of_who_encrypts_end_to_end() {
    for (codec, layering, clear, asked) in [
        // Its arrival cannot be recognized, so the request is repeated, but not forever.
        (Codec::Vp8, Layering::Encodings, 0, 3),
        // The usual encryption leaves the start of keyframes in the clear.
        (Codec::Vp8, Layering::Encodings, 10, 1),
        // The descriptor is outside of the encryption.
        (Codec::Vp9, Layering::Spatial, 0, 1),
    ] {
        let mut simulation = Simulation::new(1);
        let link = simulation.link(BottleneckLink::of(DataRate::kbps(50_000)));
        let camera = simulation.publish_as(codec, layering, &[500]);
        simulation.encrypt(camera, clear);
        simulation.watch(camera, link);
        simulation.run(10.0);
        let before = simulation.cameras[camera].keyframe_requests;
        simulation.request_keyframe(camera);
        simulation.run(10.0);
        let after = simulation.cameras[camera].keyframe_requests;
        assert_eq!(after - before, asked, "{codec:?} {clear}");
    }
}

#[test]
fn a_lost_request_of_who_encrypts_end_to_end_is_repeated() {
    let mut simulation = Simulation::new(1);
    let link = simulation.link(BottleneckLink::of(DataRate::kbps(50_000)));
    let camera = simulation.publish(Layering::Encodings, &[500]);
    simulation.encrypt(camera, 0);
    simulation.watch(camera, link);
    simulation.run(10.0);
    simulation.cameras[camera].is_deaf = true;
    let before = simulation.cameras[camera].keyframe_requests;
    simulation.request_keyframe(camera);
    simulation.run(0.5);
    simulation.cameras[camera].is_deaf = false;
    simulation.run(1.0);
    assert_eq!(simulation.cameras[camera].keyframe_requests - before, 2);
}
