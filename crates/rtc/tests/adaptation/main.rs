//! Viewers behind links that change: what bandwidth adaptation makes of it, in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod publisher;
mod viewer;
mod world;

use std::time::Duration;

use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::testing::BottleneckLink;

use world::World;

const TOP: u8 = 2;

fn link(kbps: u64) -> BottleneckLink {
    BottleneckLink::of(DataRate::kbps(kbps))
}

#[test]
fn a_viewer_on_a_good_link_soon_gets_the_top_layer_and_keeps_it() {
    for seed in 0..6 {
        let mut world = World::one(seed, link(2_500));
        world.run(6.0);
        assert_eq!(world.layer(0), Some(TOP));
        world.run(114.0);
        assert_eq!(world.switches(0, 6.0, 120.0), []);
        assert!(world.longest_freeze(0, 2.0, 120.0) < 0.5);
    }
}

#[test]
fn after_a_drop_the_queue_is_short_again_within_two_seconds_and_video_moves_on() {
    for seed in 0..6 {
        for queue in [16_384, 65_536, 262_144] {
            let mut world = World::one(
                seed,
                BottleneckLink {
                    queue,
                    ..link(2_500)
                },
            );
            world.run(20.0);
            assert_eq!(world.layer(0), Some(TOP));
            world.set_rate(400);
            world.run(30.0);
            let below = world.queue_below(Duration::from_millis(250), 20.0);
            assert!(below < 2.0, "{below}");
            assert!(world.longest_freeze(0, 22.0, 50.0) < 1.0);
            assert!(world.pictures(0, 22.0, 50.0) > 28 * 7);
        }
    }
}

#[test]
fn after_a_link_recovers_the_top_layer_is_back_within_eight_seconds() {
    for seed in 0..6 {
        let mut world = World::one(seed, link(2_500));
        world.run(20.0);
        world.set_rate(400);
        world.run(20.0 + seed as f64 * 0.7);
        let recovers = world.seconds(world.now);
        world.set_rate(2_500);
        world.run(8.0);
        assert_eq!(world.layer(0), Some(TOP));
        let switches = world.switches(0, recovers, recovers + 8.0);
        assert!(switches.len() <= 2, "{switches:?}");
    }
}
