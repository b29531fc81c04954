//! Bandwidth adaptation for viewers behind changing links, in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::time::Duration;

use portunus_media::testing::Simulation;
use portunus_media::{Event, Priority, RouteOptions};
use portunus_rtc::StreamConfig;
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{BottleneckLink, seeds, without_numbers};

const TOP: u8 = 2;
/// The layers of usual publishers, in kbit/s.
const USUAL: [u64; 3] = [150, 500, 1_700];

fn link(kbps: u64) -> BottleneckLink {
    BottleneckLink::of(DataRate::kbps(kbps))
}

/// One viewer of a usual simulcast publisher.
fn one(seed: u64, kbps: u64) -> (Simulation, usize) {
    let mut simulation = Simulation::new(seed);
    let down = simulation.link(link(kbps));
    let camera = simulation.publish(Layering::Encodings, &USUAL);
    simulation.watch(camera, down);
    (simulation, down)
}

#[test]
fn after_a_drop_the_queue_is_short_within_two_seconds_and_the_top_layer_comes_back_within_eight() {
    for seed in seeds(3) {
        let (mut simulation, down) = one(seed, 2_500);
        simulation.run(20.0);
        assert_eq!(simulation.layer(0), Some(TOP));
        simulation.set_link(down, link(400));
        simulation.run(20.0);
        let below = simulation.queue_below(down, Duration::from_millis(250), 20.0);
        assert!(below < 2.0, "{below}");
        assert!(simulation.longest_freeze(0, 22.0, 40.0) < 1.0);
        assert!(simulation.pictures(0, 22.0, 40.0) > 18 * 7);
        simulation.set_link(down, link(2_500));
        simulation.run(8.0);
        assert_eq!(simulation.layer(0), Some(TOP));
        let switches = simulation.switches(0, 40.0, 48.0);
        assert!(switches.len() <= 2, "{switches:?}");
    }
}

/// When a viewer's video was reported to pause or to go on.
fn pauses(simulation: &Simulation) -> Vec<(f64, bool)> {
    let heard = simulation.heard.iter();
    let pauses = heard.filter_map(|(at, event)| match event {
        Event::Paused { paused, .. } => Some((simulation.seconds(*at), *paused)),
        _ => None,
    });
    pauses.collect()
}

#[test]
fn a_video_that_may_pause_does_so_while_the_link_does_not_carry_its_lowest_layer() {
    for seed in seeds(3) {
        let (mut simulation, down) = one(seed, 2_500);
        simulation.set_options(
            0,
            RouteOptions {
                pausable: true,
                ..RouteOptions::default()
            },
        );
        simulation.run(20.0);
        assert_eq!(simulation.layer(0), Some(TOP));
        simulation.set_link(down, link(60));
        simulation.run(30.0);
        let told = pauses(&simulation);
        assert!(
            matches!(told.as_slice(), [(at, true)] if *at < 40.0),
            "{told:?}"
        );
        assert_eq!(simulation.pictures(0, 42.0, 50.0), 0);
        simulation.set_link(down, link(2_500));
        simulation.run(40.0);
        let told = pauses(&simulation);
        assert!(
            matches!(told.last(), Some((at, false)) if *at < 80.0),
            "{told:?}"
        );
        assert!(simulation.pictures(0, 82.0, 90.0) > 8 * 10);
        // Without the permission it goes on at once, whatever the link carries.
        simulation.set_link(down, link(60));
        simulation.run(20.0);
        simulation.set_options(0, RouteOptions::default());
        simulation.run(4.0);
        assert!(matches!(pauses(&simulation).last(), Some((_, false))));
    }
}

/// The larger of the shares of two viewers.
fn larger_share(simulation: &Simulation, from: f64, to: f64) -> f64 {
    let rates = [0, 1].map(|watcher| simulation.received(watcher, from, to).as_bps() as f64);
    rates[0].max(rates[1]) / (rates[0] + rates[1])
}

#[test]
fn two_viewers_on_one_link_share_it() {
    for seed in seeds(3) {
        for later in [0.0, 15.0] {
            let mut simulation = Simulation::new(seed);
            let down = simulation.link(link(2_000));
            // The maximum that Chromium sends of a 1280x720 camera.
            let camera = simulation.publish(Layering::Encodings, &[200, 700, 2_500]);
            simulation.watch(camera, down);
            simulation.run(later);
            simulation.watch(camera, down);
            simulation.run(75.0);
            let share = larger_share(&simulation, later + 15.0, later + 75.0);
            assert!(share <= 0.6, "{share} with seed {seed}");
            let received = |watcher| simulation.received(watcher, later + 15.0, later + 75.0);
            let both = received(0) + received(1);
            assert!(both > DataRate::kbps(1_300), "{both:?}");
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_simulation() {
    let run = || {
        let (mut simulation, down) = singles(7, 2, 2_000, 2_000);
        let camera = simulation.publish(Layering::Encodings, &USUAL);
        simulation.watch(camera, down);
        simulation.run(40.0);
        // Except for the bytes of the handshakes at the start.
        let received = [0, 1, 2].map(|watcher| simulation.received(watcher, 1.0, 40.0));
        let longest = simulation.longest_queue(down, 0.0, 40.0);
        (received, longest, simulation.switches(2, 0.0, 40.0))
    };
    assert_eq!(run(), run());
}

#[test]
fn a_viewer_of_another_link_is_untouched() {
    let (mut simulation, narrow) = one(1, 2_500);
    let wide = simulation.link(link(10_000));
    simulation.watch(0, wide);
    simulation.run(20.0);
    simulation.set_link(narrow, link(300));
    simulation.run(20.0);
    assert_eq!(simulation.layer(0), Some(0));
    assert_eq!(simulation.switches(1, 10.0, 40.0), []);
    assert_eq!(simulation.layer(1), Some(TOP));
}

#[test]
fn on_a_link_that_stays_as_it_is_nothing_flaps() {
    for seed in seeds(2) {
        for kbps in [200, 400, 620, 700, 1_000, 1_800, 2_000, 2_200, 3_000] {
            let (mut simulation, _) = one(seed, kbps);
            simulation.run(90.0);
            let stay = simulation.least_stay(0, 12.0, 90.0);
            assert!(stay >= 5.0, "{kbps} kbit/s: {stay}");
            let switches = simulation.switches(0, 20.0, 90.0).len();
            assert!(switches <= 4, "{kbps} kbit/s: {switches}");
            let freeze = simulation.longest_freeze(0, 12.0, 90.0);
            assert!(freeze < 1.0, "{kbps} kbit/s: {freeze}");
        }
    }
}

#[test]
fn a_silent_viewer_is_probed_as_well() {
    for seed in seeds(3) {
        let (mut simulation, down) = one(seed, 2_500);
        simulation.run(20.0);
        simulation.set_link(down, link(300));
        simulation.run(5.0);
        simulation.cameras[0].publisher.paused = true;
        simulation.run(5.0);
        simulation.set_link(down, link(2_500));
        simulation.run(8.0);
        simulation.cameras[0].publisher.paused = false;
        let resumed = simulation.seconds(simulation.now);
        simulation.run(3.0);
        assert_eq!(simulation.layer(0), Some(TOP));
        assert!(simulation.pictures(0, resumed, resumed + 3.0) > 60);
    }
}

#[test]
fn what_a_publisher_loses_is_not_the_viewers_congestion() {
    for seed in seeds(3) {
        let (mut simulation, _) = one(seed, 2_500);
        simulation.run(20.0);
        simulation.cameras[0].publisher.loss = 0.1;
        simulation.run(30.0);
        assert_eq!(simulation.switches(0, 20.0, 50.0), []);
        assert_eq!(simulation.layer(0), Some(TOP));
    }
}

#[test]
fn an_svc_top_layer_that_vanishes_is_not_waited_for() {
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        let down = simulation.link(link(3_000));
        let camera = simulation.publish(Layering::Spatial, &[150, 350, 1_000]);
        simulation.watch(camera, down);
        simulation.run(20.0);
        assert_eq!(simulation.layer(0), Some(TOP));
        simulation.cameras[camera].publisher.kbps[2] = 0;
        simulation.run(20.0);
        assert_eq!(simulation.layer(0), Some(1));
        simulation.cameras[camera].publisher.kbps[2] = 1_000;
        simulation.run(10.0);
        assert_eq!(simulation.layer(0), Some(TOP));
        // A layer that comes and goes is used once it stays.
        for n in 0..20 {
            simulation.cameras[camera].publisher.kbps[2] = if n % 2 == 0 { 0 } else { 1_000 };
            simulation.run(2.0);
        }
        let now = simulation.seconds(simulation.now);
        assert!(simulation.switches(0, 50.0, now).len() <= 16);
        assert!(simulation.longest_freeze(0, 3.0, now) < 0.4);
        let asked = simulation.cameras[camera].keyframe_requests;
        assert!(asked < 30, "{asked}");
    }
}

#[test]
fn what_the_client_asks_for_is_the_most_it_gets() {
    let (mut simulation, down) = one(1, 5_000);
    simulation.run(10.0);
    assert_eq!(simulation.layer(0), Some(TOP));
    let options = |substream, temporal| RouteOptions {
        substream,
        temporal,
        ..RouteOptions::default()
    };
    simulation.set_options(0, options(1, 2));
    simulation.run(2.0);
    assert_eq!(simulation.layer(0), Some(1));
    simulation.set_options(0, options(2, 2));
    simulation.run(2.0);
    assert_eq!(
        simulation.layer(0),
        Some(TOP),
        "nothing holds back what is asked for"
    );
    simulation.set_options(0, options(1, 1));
    simulation.run(2.0);
    let told = simulation.watchers[0].told.last().unwrap().1;
    assert_eq!((told.substream, told.temporal), (Some(1), Some(1)));
    simulation.set_link(down, link(300));
    simulation.run(10.0);
    assert_eq!(simulation.layer(0), Some(0), "the link is a bound as well");
}

/// Options of a client.
fn up_to(substream: u8, temporal: u8) -> RouteOptions {
    RouteOptions {
        substream,
        temporal,
        ..RouteOptions::default()
    }
}

#[test]
fn a_bound_that_the_client_lifts_is_lifted_at_once() {
    for seed in seeds(3) {
        for kbps in [2_500, 50_000] {
            for bounded in [1.0, 4.0, 30.0] {
                let (mut simulation, _) = one(seed, kbps);
                simulation.run(15.0);
                for (low, high) in [((0, 0), (0, 2)), ((0, 0), (2, 2)), ((1, 1), (2, 2))] {
                    simulation.set_options(0, up_to(low.0, low.1));
                    simulation.run(bounded);
                    simulation.set_options(0, up_to(high.0, high.1));
                    simulation.run(2.0);
                    let told = simulation.watchers[0].told.last().unwrap().1;
                    let expected = (Some(high.0), Some(high.1));
                    assert_eq!(
                        (told.substream, told.temporal),
                        expected,
                        "{kbps} {bounded}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_bound_is_lifted_soon_where_the_estimate_fell_while_little_was_sent() {
    for seed in seeds(3) {
        let (mut simulation, down) = one(seed, 5_000);
        simulation.run(15.0);
        simulation.set_options(0, up_to(0, 0));
        simulation.run(5.0);
        simulation.set_link(down, link(60));
        simulation.run(5.0);
        simulation.set_link(down, link(5_000));
        simulation.run(1.0);
        simulation.set_options(0, up_to(0, 2));
        simulation.run(2.0);
        let told = simulation.watchers[0].told.last().unwrap().1;
        assert_eq!((told.substream, told.temporal), (Some(0), Some(2)));
        simulation.set_options(0, up_to(2, 2));
        simulation.run(2.0);
        assert_eq!(simulation.layer(0), Some(TOP));
    }
}

#[test]
fn what_comes_first_for_the_viewer_is_raised_first() {
    let of = |priority| RouteOptions {
        priority,
        ..RouteOptions::default()
    };
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        // There is room for one top layer, or for two in the middle.
        let down = simulation.link(link(2_450));
        let kbps = [150, 900, 1_500];
        let cameras = [0, 1].map(|_| simulation.publish(Layering::Encodings, &kbps));
        let viewer = simulation.watch_all(&cameras, down);
        let lines = [0, 2];
        simulation.set_options_of(viewer, lines[1], of(Priority::High));
        let layer = |simulation: &mut Simulation, which: usize| {
            let layers = simulation.stats(viewer).media[lines[which]].layers;
            layers.map_or((0, ""), |l| (l.substream.unwrap_or(0), l.reason))
        };
        for _ in 0..50 {
            simulation.run(0.5);
            let [usual, first] = [0, 1].map(|which| layer(&mut simulation, which).0);
            assert!(usual <= first, "{usual} before {first} with seed {seed}");
        }
        assert_eq!(layer(&mut simulation, 0), (0, "priority"));
        assert_eq!(layer(&mut simulation, 1).0, TOP);
        // Another one is shown large.
        simulation.set_options_of(viewer, lines[1], of(Priority::Low));
        simulation.set_options_of(viewer, lines[0], of(Priority::Medium));
        simulation.run(3.0);
        assert_eq!(layer(&mut simulation, 0).0, TOP);
        assert_eq!(layer(&mut simulation, 1), (0, "priority"));
        simulation.set_options_of(viewer, lines[0], of(Priority::Low));
        simulation.run(15.0);
        // Equal viewers rise in turn, and the one with more keeps it as long as it fits.
        for which in [0, 1] {
            assert!(layer(&mut simulation, which).0 >= 1, "seed {seed}");
        }
    }
}

#[test]
fn a_viewer_that_tells_nothing_gets_what_it_asks_for() {
    for receiver_measures in [false, true] {
        let mut simulation = Simulation::new(1);
        let down = simulation.link(link(5_000));
        let camera = simulation.publish(Layering::Encodings, &USUAL);
        let silent = StreamConfig {
            twcc_period: Duration::from_secs(3_600),
            ..StreamConfig::default()
        };
        simulation.watch_as(camera, down, silent, |line| {
            for payload in &mut line.payloads {
                payload.feedback.transport_cc &= !receiver_measures;
            }
        });
        simulation.run(10.0);
        assert_eq!(simulation.layer(0), Some(TOP));
    }
}

#[test]
fn the_one_who_pays_for_a_keyframe_is_not_the_queue() {
    let (mut simulation, down) = one(3, 3_500);
    simulation.run(10.0);
    for _ in 0..10 {
        let now = simulation.now;
        simulation.cameras[0].publisher.request_keyframe(TOP, now);
        simulation.run(2.0);
    }
    // A keyframe of 42 kB would fill the queue for 97 ms if it left at once.
    let longest = simulation.longest_queue(down, 10.0, 30.0);
    assert!(longest < Duration::from_millis(60), "{longest:?}");
    assert!(simulation.pictures(0, 10.0, 30.0) > 580);
}

/// Viewers of one camera each, which has a single layer of up to this bitrate, in kbit/s.
fn singles(seed: u64, watchers: usize, kbps: u64, most: u64) -> (Simulation, usize) {
    let mut simulation = Simulation::new(seed);
    let down = simulation.link(link(kbps));
    for _ in 0..watchers {
        let camera = simulation.publish(Layering::Encodings, &[most]);
        simulation.cameras[camera].obeys = Some(most);
        simulation.watch(camera, down);
    }
    (simulation, down)
}

#[test]
fn a_publisher_of_a_single_layer_sends_what_its_viewer_can_take() {
    for seed in seeds(3) {
        let (mut simulation, down) = singles(seed, 1, 3_000, 1_500);
        simulation.run(20.0);
        assert_eq!(
            simulation.cameras[0].asked, None,
            "there is no reason to ask"
        );
        simulation.set_link(down, link(600));
        simulation.run(30.0);
        let sends = simulation.cameras[0].publisher.kbps[0];
        assert!((350..=620).contains(&sends), "{sends}");
        let below = simulation.queue_below(down, Duration::from_millis(250), 20.0);
        assert!(below < 10.0, "{below}");
        assert!(simulation.longest_freeze(0, 25.0, 50.0) < 1.0);
        assert!(simulation.pictures(0, 35.0, 50.0) > 15 * 20);
        simulation.set_link(down, link(3_000));
        simulation.run(30.0);
        let sends = simulation.cameras[0].publisher.kbps[0];
        assert!(sends > 1_300, "{sends}");
    }
}

#[test]
fn a_publisher_on_another_worker_sends_what_its_viewers_can_take() {
    let mut simulation = Simulation::of_workers(2, 1);
    let (wide, narrow) = (simulation.link(link(8_000)), simulation.link(link(3_000)));
    let camera = simulation.publish(Layering::Encodings, &[1_500]);
    simulation.cameras[camera].obeys = Some(1_500);
    simulation.watch(camera, wide);
    simulation.worker = 1;
    simulation.watch(camera, narrow);
    simulation.run(20.0);
    assert_eq!(simulation.cameras[camera].asked, None);
    assert!(simulation.pictures(1, 10.0, 20.0) > 280);
    simulation.set_link(narrow, link(600));
    simulation.run(30.0);
    let sends = simulation.cameras[camera].publisher.kbps[0];
    assert!((350..=620).contains(&sends), "{sends}");
    let asked = simulation.stats(1).media[0].layers.unwrap();
    assert!(asked.asked_of_publisher.is_some(), "{asked:?}");
    simulation.set_link(narrow, link(3_000));
    simulation.run(30.0);
    let sends = simulation.cameras[camera].publisher.kbps[0];
    assert!(sends > 1_300, "{sends}");
}

/// Lets time pass while the viewer reports what its link carries, as far as it can know: at most
/// 1.5 times the highest bitrate that has arrived.
fn run_telling(simulation: &mut Simulation, seconds: u32, carries: u64) {
    let mut says = 0;
    for _ in 0..seconds * 2 {
        simulation.run(0.5);
        let now = simulation.seconds(simulation.now);
        let arrives = simulation.received(0, now - 0.5, now);
        says = (arrives.as_bps() * 3 / 2).max(says);
        says = says.clamp(150_000, carries * 1_000);
        simulation.set_receiver_estimate(0, says);
    }
}

#[test]
fn where_only_the_receiver_measures_layers_follow_its_word() {
    for seed in seeds(3) {
        let mut simulation = Simulation::new(seed);
        let down = simulation.link(link(3_000));
        let camera = simulation.publish(Layering::Encodings, &USUAL);
        simulation.watch_as(camera, down, StreamConfig::default(), without_numbers);
        run_telling(&mut simulation, 40, 2_900);
        assert_eq!(simulation.layer(0), Some(TOP));
        simulation.set_link(down, link(400));
        run_telling(&mut simulation, 10, 350);
        assert_eq!(simulation.layer(0), Some(0));
        let stats = simulation.stats(0);
        assert_eq!(stats.bandwidth.unwrap().set_by, "receiver");
        assert!(simulation.longest_freeze(0, 45.0, 50.0) < 1.0);
        simulation.set_link(down, link(3_000));
        run_telling(&mut simulation, 40, 2_900);
        assert_eq!(simulation.layer(0), Some(TOP));
    }
}

#[test]
fn a_publisher_is_never_asked_for_more_than_its_cap_nor_for_next_to_nothing() {
    let (mut simulation, down) = singles(1, 1, 3_000, 1_500);
    simulation.set_bitrate(0, Some(800_000));
    simulation.run(10.0);
    let near =
        |asked: Option<u64>, bps: u64| asked.is_some_and(|asked| asked.abs_diff(bps) < 4_000);
    assert!(near(simulation.cameras[0].asked, 800_000));
    simulation.set_link(down, link(150));
    simulation.run(30.0);
    assert!(
        near(simulation.cameras[0].asked, 100_000),
        "{:?}",
        simulation.cameras[0].asked
    );
    simulation.set_link(down, link(3_000));
    simulation.run(40.0);
    assert!(near(simulation.cameras[0].asked, 800_000));
}

#[test]
fn a_longer_route_is_no_queue_of_a_single_layer() {
    for seed in seeds(8) {
        let (mut simulation, down) = singles(seed, 1, 1_500, 2_000);
        simulation.run(40.0);
        let longer = BottleneckLink {
            delay: Duration::from_millis(75),
            ..link(1_500)
        };
        simulation.set_link(down, longer);
        simulation.run(40.0);
        let before = simulation.received(0, 20.0, 40.0);
        let after = simulation.received(0, 42.0, 62.0);
        assert!(after >= before.times(0.6), "{after:?} after {before:?}");
    }
}

/// Two viewers of single layers on one link. The second comes later by this time.
fn singles_share(later: f64) {
    let mut shares = Vec::new();
    for seed in seeds(32) {
        let (mut simulation, down) = singles(seed, 1, 2_000, 2_000);
        simulation.run(later);
        let camera = simulation.publish(Layering::Encodings, &[2_000]);
        simulation.cameras[camera].obeys = Some(2_000);
        simulation.watch(camera, down);
        simulation.run(120.0);
        let (from, to) = (later + 20.0, later + 120.0);
        let share = larger_share(&simulation, from, to);
        assert!(share <= 0.6, "{share} with seed {seed}");
        shares.push(share);
        let both = simulation.received(0, from, to) + simulation.received(1, from, to);
        assert!(both > DataRate::kbps(1_700), "{both:?}");
        let longest = simulation.longest_queue(1, from, to);
        println!("larger share {share:.4}, {both:?}, longest queue {longest:?}");
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean <= 0.55, "{mean} {shares:.2?}");
}

#[test]
fn two_viewers_of_single_layers_share_a_link() {
    singles_share(0.0);
}

#[test]
fn a_viewer_of_a_single_layer_that_comes_later_gets_as_much() {
    singles_share(15.0);
}

#[test]
fn one_of_many_viewers_does_not_lower_what_a_publisher_sends() {
    let (mut simulation, _) = singles(1, 1, 20_000, 1_000);
    let wide = simulation.link(link(50_000));
    for _ in 0..12 {
        simulation.watch(0, wide);
    }
    let narrow = simulation.link(link(300));
    simulation.watch(0, narrow);
    simulation.run(20.0);
    assert_eq!(simulation.cameras[0].asked, None);
    assert_eq!(
        simulation.stats(13).media[0].layers.unwrap().reason,
        "least"
    );
}

#[test]
fn the_figures_say_why() {
    let (mut simulation, down) = one(1, 700);
    simulation.run(15.0);
    let stats = simulation.stats(0);
    let layers = stats.media[0].layers.unwrap();
    assert_eq!((layers.substream, layers.reason), (Some(1), "bandwidth"));
    let bandwidth = stats.bandwidth.unwrap();
    assert!(
        (500_000..800_000).contains(&bandwidth.estimate),
        "{bandwidth:?}"
    );
    assert_eq!(stats.media[1].layers.unwrap().reason, "audio");
    simulation.set_link(down, link(10_000));
    simulation.run(15.0);
    assert_eq!(simulation.stats(0).media[0].layers.unwrap().reason, "best");
}
