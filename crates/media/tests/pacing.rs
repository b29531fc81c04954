//! The queue of a viewer's pacer stays short, whatever happens to publisher and path.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use portunus_media::testing::Simulation;
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::BottleneckLink;

/// The layers of usual publishers, in kbit/s.
const USUAL: [u64; 3] = [150, 500, 1_700];
/// A quarter of a second of the top layer has 47 packets, and a keyframe of it has 37.
const FEW: usize = 120;

fn link(kbps: u64) -> BottleneckLink {
    BottleneckLink::of(DataRate::kbps(kbps))
}

/// A viewer that gets the top layer of a publisher, and its link.
fn settled(seed: u64, layering: Layering, layers: &[u64]) -> (Simulation, usize) {
    let mut simulation = Simulation::new(seed);
    let down = simulation.link(link(3_000));
    let camera = simulation.publish(layering, layers);
    simulation.watch(camera, down);
    simulation.run(15.0);
    assert_eq!(
        simulation.waiting(0).map(|waiting| waiting < FEW),
        Some(true)
    );
    (simulation, down)
}

/// Lets time pass. Returns the maximum number of packets that waited for a viewer.
fn most_waiting(simulation: &mut Simulation, watcher: usize, seconds: u32) -> usize {
    let mut most = 0;
    for _ in 0..seconds * 100 {
        simulation.run(0.01);
        most = simulation.waiting(watcher).unwrap_or(0).max(most);
    }
    most
}

/// Lets time pass until packets wait for a viewer.
fn until_some_wait(simulation: &mut Simulation, watcher: usize) {
    for _ in 0..5_000 {
        simulation.run(0.001);
        if simulation
            .waiting(watcher)
            .is_some_and(|waiting| waiting > 3)
        {
            return;
        }
    }
    panic!("nothing waits");
}

#[test]
fn a_link_that_collapses_and_one_that_is_far_too_narrow_leave_few_packets_waiting() {
    for seed in 0..3 {
        let (mut simulation, down) = settled(seed, Layering::Encodings, &USUAL);
        for kbps in [400, 40, 3_000, 100] {
            simulation.set_link(down, link(kbps));
            let most = most_waiting(&mut simulation, 0, 8);
            assert!((1..FEW).contains(&most), "{kbps} kbit/s: {most}");
        }
    }
}

#[test]
fn a_single_layer_that_no_link_can_lower_waits_no_longer_than_others() {
    // The publisher ignores REMB.
    let (mut simulation, down) = settled(1, Layering::Encodings, &[2_000]);
    simulation.set_link(down, link(200));
    let most = most_waiting(&mut simulation, 0, 20);
    assert!(most < FEW, "{most}");
}

#[test]
fn what_waits_has_left_soon_after_the_publisher_stopped() {
    for seed in 0..3 {
        for layering in [Layering::Encodings, Layering::Spatial] {
            let (mut simulation, _) = settled(seed, layering, &USUAL);
            let now = simulation.now;
            simulation.cameras[0].publisher.request_keyframe(2, now);
            until_some_wait(&mut simulation, 0);
            simulation.cameras[0].publisher.paused = true;
            // The delay from the publisher, and the longest time that anything waits.
            simulation.run(0.02 + 0.3);
            assert_eq!(simulation.waiting(0), Some(0));
        }
    }
}

#[test]
fn nothing_waits_for_a_viewer_whose_path_vanished() {
    for seed in 0..3 {
        let (mut simulation, down) = settled(seed, Layering::Encodings, &USUAL);
        let wide = simulation.link(link(10_000));
        simulation.watch(0, wide);
        simulation.run(5.0);
        simulation.set_link(down, link(0));
        simulation.watchers[0].mute = true;
        let most = most_waiting(&mut simulation, 0, 45);
        assert!(most < FEW, "{most}");
        assert_eq!(
            simulation.waiting(0),
            None,
            "it is gone, with all that waited"
        );
        let now = simulation.seconds(simulation.now);
        assert!(
            simulation.pictures(1, now - 5.0, now) > 140,
            "the other one stays"
        );
    }
}
