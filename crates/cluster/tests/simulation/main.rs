//! Clusters of three to six nodes in virtual time: a simulated bus and simulated links, and
//! schedules at random of joins, leaves, kills, partitions, stalls and outages of the bus. Each
//! schedule follows from its seed.
//!
//! `PORTUNUS_SIMULATION_SECONDS=60` runs as many seeds as a minute holds, and
//! `PORTUNUS_SIMULATION_SEED=7` repeats one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod bus;
mod cuts;
mod detours;
mod scenarios;
mod schedule;
mod world;

use std::time::{Duration, Instant};

/// How long the schedules at random take in a usual run of the tests.
const USUAL: Duration = Duration::from_secs(3);

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: expected a number")),
    )
}

#[test]
fn any_schedule_heals() {
    any(schedule::run);
}

#[test]
fn a_cut_between_two_nodes_is_noticed_by_nobody_while_a_third_one_hears_both() {
    any(cuts::run);
}

/// Runs schedules with many seeds, or with the one that is asked for.
fn any(run: fn(u64)) {
    if let Some(seed) = variable("PORTUNUS_SIMULATION_SEED") {
        run(seed);
        return;
    }
    let seconds = variable("PORTUNUS_SIMULATION_SECONDS");
    let end = Instant::now() + seconds.map_or(USUAL, Duration::from_secs);
    // Long runs begin elsewhere each time. Usual runs are always the same as far as they get.
    let first = seconds.map_or(1, |_| rand::random_range(1_000..u64::from(u32::MAX)));
    let mut seeds = 0;
    while seeds == 0 || Instant::now() < end {
        let seed = first + seeds;
        let outcome = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = outcome {
            eprintln!("repeat this with PORTUNUS_SIMULATION_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
        seeds += 1;
    }
    println!("{seeds} schedules from seed {first} on");
}
