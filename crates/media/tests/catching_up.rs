//! New viewers of a stream with a keyframe cache get the kept packets at a pace that their links
//! carry, and then the live stream.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

use std::collections::HashSet;
use std::time::{Duration, Instant};

use portunus_media::testing::{Seen, Simulation};
use portunus_media::{KeyframeCache, RouteOptions};
use portunus_rtc::StreamConfig;
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{BottleneckLink, seeds, without_feedback};

/// The time between two keyframes.
const GROUP: f64 = 10.0;
const FRAME: Duration = Duration::from_micros(33_333);

fn link(kbps: u64, queue: usize) -> BottleneckLink {
    BottleneckLink {
        queue,
        ..BottleneckLink::of(DataRate::kbps(kbps))
    }
}

/// A stream of one layer with a keyframe cache.
fn publish(simulation: &mut Simulation, kbps: u64, max_age: Duration) -> usize {
    let camera = simulation.publish(Layering::Encodings, &[kbps]);
    let keep = KeyframeCache {
        max_age,
        max_bytes: 0,
    };
    simulation.keep_keyframe(camera, keep);
    camera
}

/// Lets time pass until `seconds` after the start. Cameras make keyframes at multiples of ten
/// seconds.
fn run_to(simulation: &mut Simulation, end: f64) {
    loop {
        let now = simulation.seconds(simulation.now);
        let next = ((now / GROUP).floor() + 1.0) * GROUP;
        if next > end {
            return simulation.run(end - now);
        }
        simulation.run(next - now);
        // The request takes 120 ms.
        let now = simulation.now;
        for camera in &mut simulation.cameras {
            camera.publisher.request_keyframe(0, now);
        }
    }
}

/// How many pictures the last complete one is behind.
fn behind(simulation: &Simulation, packet: &Seen) -> i64 {
    let filmed = packet.at.saturating_duration_since(simulation.start);
    let filmed = filmed.as_micros() / FRAME.as_micros();
    filmed as i64 - i64::from(packet.number)
}

/// Since when the viewer is live, except for the delay of its link.
fn live_since(simulation: &Simulation, watcher: usize) -> Instant {
    let packets = simulation.watchers[watcher].packets.iter().rev();
    let live = packets.take_while(|packet| behind(simulation, packet) < 15);
    live.last().unwrap().at
}

/// Checks that numbers have no gaps or duplicates since `from`.
fn assert_whole(simulation: &Simulation, watcher: usize, from: Instant) {
    let packets = &simulation.watchers[watcher].packets;
    let since: Vec<_> = packets.iter().filter(|packet| packet.at > from).collect();
    let mut numbers: Vec<u16> = since.iter().map(|packet| packet.sequence).collect();
    assert!(numbers.len() > 100);
    let first = numbers[0];
    numbers.sort_by_key(|number| number.wrapping_sub(first));
    for pair in numbers.windows(2) {
        assert_eq!(pair[1].wrapping_sub(pair[0]), 1, "{pair:?}");
    }
}

/// The number of packets that a viewer did not get, without the last second.
fn lost_for_good(simulation: &Simulation, watcher: usize) -> usize {
    let packets = &simulation.watchers[watcher].packets;
    let first = packets[0].sequence;
    let end = simulation.now - Duration::from_secs(1);
    let before = packets.iter().filter(|packet| packet.at < end);
    let last = before.map(|packet| packet.sequence.wrapping_sub(first));
    let last = last.max().unwrap();
    let came = packets
        .iter()
        .map(|packet| packet.sequence.wrapping_sub(first));
    let came = came.filter(|number| *number <= last);
    usize::from(last) + 1 - came.collect::<HashSet<_>>().len()
}

/// Adds a viewer some seconds after the start, until nine seconds after the next keyframe. Returns
/// the seconds from its first packet to its first and second picture, and to the live stream.
/// second picture, and to what comes, in seconds.
fn join(simulation: &mut Simulation, camera: usize, down: usize, at: f64) -> [f64; 3] {
    run_to(simulation, at);
    let joined = simulation.now;
    let watcher = simulation.watch_as(camera, down, StreamConfig::default(), without_feedback);
    run_to(simulation, (at / GROUP).ceil() * GROUP + 9.0);
    assert_whole(simulation, watcher, joined);
    let seen = &simulation.watchers[watcher];
    let first = seen.packets[0].at;
    let [one, two] = [seen.pictures[0].0, seen.pictures[1].0];
    [one, two, live_since(simulation, watcher)].map(|at| (at - first).as_secs_f64())
}

#[test]
fn a_viewer_behind_a_short_queue_loses_nothing_and_catches_up() {
    for seed in seeds(3) {
        for (after, live) in [(0.5, 2.0), (1.0, 3.0), (2.0, 6.0), (5.0, 5.3), (9.0, 1.3)] {
            let mut simulation = Simulation::new(seed);
            let down = simulation.link(link(3_000, 100 * 1_024));
            let camera = publish(&mut simulation, 2_000, Duration::ZERO);
            let took = join(&mut simulation, camera, down, 20.15 + after);
            assert_eq!(simulation.lost(down), 0, "after {after} s: {took:?}");
            assert!(took[0] < 0.25 && took[1] < 0.3, "after {after} s: {took:?}");
            assert!(took[2] < live, "after {after} s: {took:?}");
        }
    }
}

#[test]
fn what_another_worker_has_kept_comes_at_the_same_pace() {
    let mut simulation = Simulation::of_workers(2, 1);
    let down = simulation.link(link(3_000, 100 * 1_024));
    let camera = publish(&mut simulation, 2_000, Duration::ZERO);
    simulation.worker = 1;
    let took = join(&mut simulation, camera, down, 22.15);
    assert_eq!(simulation.lost(down), 0, "{took:?}");
    assert!(took[0] < 0.25 && took[2] < 6.0, "{took:?}");
    // The other worker has the stream already.
    let down = simulation.link(link(3_000, 100 * 1_024));
    let took = join(&mut simulation, camera, down, 42.15);
    assert!(took[0] < 0.25 && took[2] < 6.0, "{took:?}");
}

#[test]
fn who_joins_before_the_limit_of_what_is_kept_misses_nothing_after_it() {
    let mut simulation = Simulation::new(1);
    let down = simulation.link(link(3_000, 100 * 1_024));
    let camera = publish(&mut simulation, 2_000, Duration::from_millis(3_000));
    let took = join(&mut simulation, camera, down, 22.15);
    let watcher = &simulation.watchers[0];
    let numbers: Vec<u32> = watcher.packets.iter().map(|packet| packet.number).collect();
    assert!(numbers.is_sorted());
    assert!(took[2] < 6.0, "{took:?}");
    // Each picture up to the next keyframe.
    let missing = numbers
        .windows(2)
        .filter(|pair| pair[1] > pair[0] + 1)
        .count();
    assert_eq!(missing, 0);
}

#[test]
fn a_link_that_hardly_carries_the_stream_is_not_overrun_for_long() {
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        let down = simulation.link(link(2_400, 64 * 1_024));
        let camera = publish(&mut simulation, 2_000, Duration::ZERO);
        let took = join(&mut simulation, camera, down, 25.15);
        assert!(took[0] < 0.3 && took[1] < 0.4, "{took:?}");
        assert!(simulation.lost(down) < 150, "{}", simulation.lost(down));
        // It is live from the next keyframe on.
        let now = simulation.seconds(simulation.now);
        assert!(simulation.longest_freeze(0, now - 8.0, now) < 0.5);
        assert!(simulation.pictures(0, now - 5.0, now) > 145);
    }
}

#[test]
fn a_queue_that_does_not_hold_the_keyframe_is_not_kept_full_by_what_is_sent_again() {
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        let down = simulation.link(link(2_400, 32 * 1_024));
        let camera = publish(&mut simulation, 2_000, Duration::ZERO);
        run_to(&mut simulation, 25.15);
        let watcher = simulation.watch_as(camera, down, StreamConfig::default(), without_feedback);
        run_to(&mut simulation, 39.0);
        assert_eq!(lost_for_good(&simulation, watcher), 0);
        assert!(simulation.lost(down) < 250, "{}", simulation.lost(down));
        assert!(simulation.longest_freeze(watcher, 25.65, 39.0) < 0.5);
    }
}

#[test]
fn what_did_not_fit_into_a_queue_finds_room_in_it() {
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        let down = simulation.link(link(2_400, 256 * 1_024));
        let camera = publish(&mut simulation, 2_000, Duration::ZERO);
        run_to(&mut simulation, 25.15);
        let watcher = simulation.watch_as(camera, down, StreamConfig::default(), without_feedback);
        run_to(&mut simulation, 39.0);
        assert_eq!(lost_for_good(&simulation, watcher), 0);
        assert!(simulation.lost(down) < 150, "{}", simulation.lost(down));
    }
}

#[test]
fn what_is_lost_at_random_before_the_next_keyframe_comes_again() {
    for seed in seeds(6) {
        let mut simulation = Simulation::new(seed);
        let lossy = BottleneckLink {
            loss: 0.05,
            ..link(20_000, 256 * 1_024)
        };
        let down = simulation.link(lossy);
        let camera = publish(&mut simulation, 2_000, Duration::ZERO);
        run_to(&mut simulation, 25.15);
        let joined = simulation.now;
        let watcher = simulation.watch_as(camera, down, StreamConfig::default(), without_feedback);
        run_to(&mut simulation, 39.0);
        assert_eq!(lost_for_good(&simulation, watcher), 0);
        // Without the next keyframe, it would take eleven seconds.
        let live = (live_since(&simulation, watcher) - joined).as_secs_f64();
        assert!(live < 5.5, "live after {live} s");
        assert!(simulation.longest_freeze(watcher, 25.65, 39.0) < 0.5);
    }
}

#[test]
fn where_the_link_is_known_more_than_a_pacer_holds_comes_in_order() {
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        let down = simulation.link(link(8_000, 256 * 1_024));
        let first = publish(&mut simulation, 2_500, Duration::ZERO);
        let second = publish(&mut simulation, 2_500, Duration::ZERO);
        simulation.watch(first, down);
        simulation.run(12.0);
        let (from, had) = (simulation.now, simulation.watchers[0].pictures.len());
        assert!(simulation.waiting(0).is_some(), "the link is known");
        simulation.switch(0, second);
        let mut most = 0;
        for _ in 0..2_000 {
            simulation.run(0.01);
            most = simulation.waiting(0).unwrap_or(0).max(most);
        }
        assert!(most < 200, "{most} packets waited");
        assert_whole(&simulation, 0, from);
        let live = (live_since(&simulation, 0) - from).as_secs_f64();
        assert!(live < 12.0, "live after {live} s");
        // Twelve seconds of pictures, and what arrived meanwhile.
        let pictures = simulation.watchers[0].pictures.len() - had;
        assert!(pictures > 30 * 31, "{pictures} pictures");
        let (first, _) = simulation.watchers[0].pictures[had + 2];
        assert!((first - from).as_secs_f64() < 0.3);
    }
}

#[test]
fn who_pauses_or_switches_while_behind_goes_on_without_a_gap() {
    let mut simulation = Simulation::new(1);
    let down = simulation.link(link(4_000, 256 * 1_024));
    let first = publish(&mut simulation, 2_000, Duration::ZERO);
    let second = publish(&mut simulation, 2_000, Duration::ZERO);
    run_to(&mut simulation, 25.15);
    let from = simulation.now;
    let watcher = simulation.watch_as(first, down, StreamConfig::default(), without_feedback);
    simulation.run(1.0);
    let options = |enabled| RouteOptions {
        enabled,
        ..RouteOptions::default()
    };
    simulation.set_options(watcher, options(false));
    simulation.run(0.2);
    simulation.set_options(watcher, options(true));
    simulation.run(0.8);
    simulation.switch(watcher, second);
    simulation.run(1.0);
    simulation.switch(watcher, first);
    run_to(&mut simulation, 39.0);
    assert_eq!(simulation.lost(down), 0);
    assert_whole(&simulation, watcher, from);
    let live = live_since(&simulation, watcher);
    assert!((live - simulation.start).as_secs_f64() < 30.5);
}
