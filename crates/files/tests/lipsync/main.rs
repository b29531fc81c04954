//! Audio and video of a sender with drifting clocks stay synchronous in the file, whatever the
//! network and the sender do.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod measurement;
mod sender;
mod world;

use std::time::Duration;

use portunus_files::assembly::{ClockKind, GapReason, Note, PartReason};
use proptest::prelude::*;

use measurement::Made;
use sender::run;
use world::{Happens, PICTURE, SOUND, World};

/// The smallest noticeable error, in ms.
const NOTICED: f64 = 20.0;

/// Checks that pictures from `from` on are synchronous with their audio, which has no holes, and
/// that nothing jumps.
fn assert_smooth(world: &World, made: &Made, from: f64) {
    let (times, samples, count) = made.worst(from);
    let steps = [made.largest_step(SOUND), made.largest_step(PICTURE)];
    let told = format!("{times:.1} {samples:.1} ms of {count}, steps {steps:.1?}, {world:?}");
    println!("{told}");
    assert!(count > 30, "{told}");
    assert!(times < NOTICED && samples < NOTICED, "{told}");
    assert!(steps.iter().all(|step| *step < NOTICED), "{told}");
    assert!(made.largest_hole() < 0.01, "{} {told}", made.largest_hole());
}

fn gaps(made: &Made, track: usize) -> Vec<(f64, f64, GapReason)> {
    let gap = |(of, note): &(usize, Note)| match note {
        Note::Gap { from, to, why } if *of == track => {
            Some((from.as_secs_f64(), to.as_secs_f64(), *why))
        }
        _ => None,
    };
    made.notes.iter().filter_map(gap).collect()
}

#[test]
fn ten_minutes_of_drift_jitter_and_loss() {
    for (seed, drift) in [(1, [200.0, 20.0]), (2, [-200.0, 0.0]), (3, [150.0, -50.0])] {
        let world = World {
            seed,
            drift,
            seconds: 600,
            lost: 0.02,
            ..World::default()
        };
        let made = run(&world);
        assert_smooth(&world, &made, 5.0);
        let (.., count) = made.worst(5.0);
        assert!(count > 6_000, "{count}");
        let stats = made.stats[SOUND];
        assert!(
            stats.lost > 300 && stats.clock == ClockKind::Reports,
            "{stats:?}"
        );
        assert!(
            gaps(&made, PICTURE)
                .iter()
                .all(|gap| gap.2 == GapReason::Loss)
        );
        assert!(gaps(&made, SOUND).len() > 200);
    }
}

#[test]
fn ten_minutes_without_loss() {
    let world = World {
        seconds: 600,
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    let (.., count) = made.worst(5.0);
    assert!(count > 595 * 29, "{count}");
    // A sampling clock that is 200 ppm fast is ahead by 10 ms after each 50 s.
    let left_out = made.stats[SOUND].left_out;
    assert!((8..=16).contains(&left_out), "{left_out}");
    // Packets on their way at the end are lost.
    let is_gap = |(_, note): &&(usize, Note)| match note {
        Note::Gap { from, .. } => from.as_secs() < 599,
        _ => false,
    };
    assert_eq!(made.notes.iter().find(is_gap), None);
}

#[test]
fn first_reports_that_are_late() {
    let world = World {
        first_report: [25.0, 12.0],
        ..World::default()
    };
    assert_smooth(&world, &run(&world), 30.0);
}

#[test]
fn no_reports_at_all() {
    let world = World {
        seconds: 120,
        reports: [false, false],
        delay: [0.040, 0.045],
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    assert_eq!(made.stats[SOUND].clock, ClockKind::Arrival);
}

#[test]
fn capture_times_alone() {
    let world = World {
        reports: [false, false],
        captures: true,
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 1.0);
    assert_eq!(made.stats[PICTURE].clock, ClockKind::Capture);
}

#[test]
fn who_joins_late_is_in_time() {
    for begins in [[20.0, 0.0], [0.0, 20.0]] {
        let world = World {
            begins,
            ..World::default()
        };
        let made = run(&world);
        assert_smooth(&world, &made, 25.0);
        let late = begins.iter().position(|at| *at > 0.0).unwrap();
        let offset = made.stats[late].offset.unwrap();
        assert!(
            offset.abs_diff(Duration::from_secs(20)) < Duration::from_millis(100),
            "{offset:?}"
        );
    }
}

#[test]
fn mutes_are_gaps_and_silence() {
    let world = World {
        seconds: 90,
        happens: vec![
            (20.0, Happens::Mute(SOUND)),
            (35.0, Happens::Unmute(SOUND)),
            (45.0, Happens::Mute(PICTURE)),
            (55.0, Happens::Unmute(PICTURE)),
        ],
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    for (track, from, to) in [(SOUND, 20.0, 35.0), (PICTURE, 45.0, 55.0)] {
        let gaps = gaps(&made, track);
        let [(begins, ends, GapReason::Muted)] = gaps[..] else {
            panic!("{gaps:?}");
        };
        assert!(
            (begins - from).abs() < 0.3 && (ends - to).abs() < 0.5,
            "{gaps:?}"
        );
    }
    let filled = made.stats[SOUND].filled.as_secs_f64();
    assert!((14.8..15.4).contains(&filled), "{filled}");
}

#[test]
fn sound_that_is_away_for_minutes_is_a_gap_of_times() {
    let world = World {
        seconds: 200,
        happens: vec![
            (20.0, Happens::Mute(SOUND)),
            (170.0, Happens::Unmute(SOUND)),
        ],
        ..World::default()
    };
    let made = run(&world);
    let filled = made.stats[SOUND].filled.as_secs_f64();
    assert!((59.5..60.5).contains(&filled), "{filled}");
    let (times, _, count) = made.worst(5.0);
    assert!(times < NOTICED && count > 900, "{times} {count}");
}

#[test]
fn silence_that_is_not_sent_is_filled() {
    let world = World {
        seconds: 120,
        happens: (1..10)
            .flat_map(|n| {
                let at = f64::from(n) * 10.0;
                [
                    (at, Happens::Silence(true)),
                    (at + 4.3, Happens::Silence(false)),
                ]
            })
            .collect(),
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    assert_eq!(gaps(&made, SOUND), []);
}

#[test]
fn a_camera_that_pauses() {
    let world = World {
        seconds: 60,
        happens: vec![
            (20.0, Happens::Pause(PICTURE)),
            (30.0, Happens::GoOn(PICTURE)),
        ],
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    let gaps = gaps(&made, PICTURE);
    let [(_, _, GapReason::Silent)] = gaps[..] else {
        panic!("{gaps:?}");
    };
}

#[test]
fn layers_that_change() {
    let world = World {
        seconds: 90,
        happens: vec![
            (20.0, Happens::Layer(1)),
            (30.0, Happens::Layer(0)),
            (41.3, Happens::Layer(2)),
        ],
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    let layer = |(_, note): &(usize, Note)| match note {
        Note::Layer { encoding, .. } => Some(*encoding),
        _ => None,
    };
    let layers: Vec<_> = made.notes.iter().filter_map(layer).collect();
    assert_eq!(layers, [0, 1, 0, 2]);
    let changes = made
        .notes
        .iter()
        .filter(|(_, note)| matches!(note, Note::Change { .. }));
    assert_eq!(changes.count(), 3);
    assert_eq!(made.parts, []);
}

#[test]
fn other_ssrcs() {
    for is_known in [true, false] {
        let world = World {
            seconds: 90,
            // Without reports, a stream starts with the delay of its first packet.
            jitter: if is_known { 0.030 } else { 0.015 },
            happens: vec![
                (20.0, Happens::NewStream(SOUND, is_known)),
                (40.0, Happens::NewStream(PICTURE, is_known)),
                (60.0, Happens::NewStream(SOUND, is_known)),
                (60.0, Happens::NewStream(PICTURE, is_known)),
            ],
            ..World::default()
        };
        assert_smooth(&world, &run(&world), 5.0);
    }
}

#[test]
fn reports_that_are_wrong() {
    let cases = [
        // One or two slips, small and large.
        vec![(15.0, Happens::Slip(SOUND, 3.0, 1))],
        vec![
            (15.0, Happens::Slip(PICTURE, -7.0, 1)),
            (30.0, Happens::Slip(SOUND, 0.4, 1)),
        ],
        // A sender's clock that is set and reset.
        vec![
            (15.0, Happens::SetClock(5.0)),
            (40.0, Happens::SetClock(-1.2)),
        ],
        vec![(15.0, Happens::SetClock(0.4))],
        vec![(15.0, Happens::SetClock(-3_600.0))],
        // Reports of one track that become wrong.
        vec![(15.0, Happens::Mistake(SOUND, 30.0))],
        vec![(15.0, Happens::Mistake(PICTURE, -0.6))],
    ];
    for happens in cases {
        let world = World {
            seconds: 90,
            happens,
            ..World::default()
        };
        assert_smooth(&world, &run(&world), 5.0);
    }
}

#[test]
fn reports_that_are_off_by_seconds_from_the_start_are_not_believed() {
    let world = World {
        report_error: [6.0, 0.0],
        delay: [0.040, 0.050],
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    assert_eq!(made.stats[SOUND].clock, ClockKind::Arrival);
    let doubt = |(_, note): &(usize, Note)| matches!(note, Note::ClockDoubt(_));
    assert!(made.notes.iter().any(doubt), "{:?}", made.notes);
}

#[test]
fn reports_that_are_off_by_a_third_of_a_second_are_believed_and_doubted() {
    let world = World {
        report_error: [0.32, 0.0],
        ..World::default()
    };
    let made = run(&world);
    let (times, ..) = made.worst(30.0);
    assert!((300.0..340.0).contains(&times), "{times}");
    let doubts = made.stats.iter().filter_map(|stats| stats.clock_doubt);
    let doubts: Vec<_> = doubts.collect();
    assert!(
        matches!(doubts[..], [doubt] if doubt > Duration::from_millis(250)),
        "{doubts:?}"
    );
    assert!(made.largest_step(SOUND).max(made.largest_step(PICTURE)) < NOTICED);
}

#[test]
fn a_network_that_becomes_slower_and_faster() {
    let world = World {
        seconds: 90,
        happens: vec![(20.0, Happens::Slower(0.4)), (50.0, Happens::Slower(0.0))],
        ..World::default()
    };
    assert_smooth(&world, &run(&world), 5.0);
}

#[test]
fn pictures_of_another_size_stay_in_the_part() {
    let world = World {
        happens: vec![(20.0, Happens::Size(320))],
        ..World::default()
    };
    let made = run(&world);
    assert_smooth(&world, &made, 5.0);
    assert_eq!(made.parts, [] as [PartReason; 0]);
}

#[test]
fn times_are_those_of_the_server() {
    let world = World {
        seconds: 300,
        host_drift: 150.0,
        ..World::default()
    };
    let made = run(&world);
    for track in [SOUND, PICTURE] {
        let errors = made.seen[track].iter().filter(|seen| seen.true_at > 10.0);
        let worst = errors.map(|seen| seen.error().abs()).fold(0.0, f64::max);
        assert!(worst * 1e3 < NOTICED, "{track}: {worst}");
    }
}

#[test]
fn sound_that_was_longer_under_way_is_in_time_soon_after_the_reports() {
    // Audio and video are 178 ms apart until both reports have come, after 4 s.
    let world = World {
        seed: 11_810_674_617_528_525_071,
        drift: [144.392_190_286_417_73, 64.309_927_359_809_95],
        host_drift: -27.161_607_705_612_27,
        delay: [0.190_610_385_290_284_87, 0.012_788_315_351_988_02],
        jitter: 0.060_314_476_311_986_77,
        nacked: 0.006_377_239_716_094_932,
        lost: 0.039_991_570_112_039_826,
        first_report: [3.540_765_986_595_797_4, 3.994_370_967_650_546_8],
        ..World::default()
    };
    assert_smooth(&world, &run(&world), 7.0);
    // The other way round, the report of the video is the last one.
    let world = World {
        delay: [0.012_788_315, 0.190_610_385],
        ..world
    };
    assert_smooth(&world, &run(&world), 7.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_sender_stays_in_time(
        seed in any::<u64>(),
        drift in [-200.0..200.0, -100.0..100.0],
        host_drift in -200.0..200.0,
        delay in [0.01..0.2, 0.01..0.2],
        jitter in 0.0..0.1,
        nacked in 0.0..0.1,
        lost in 0.0..0.05,
        first_report in [0.1..5.0, 0.1..5.0],
    ) {
        let world = World {
            seed,
            drift,
            host_drift,
            delay,
            jitter,
            nacked,
            lost,
            first_report,
            ..World::default()
        };
        // Within 3 s after both reports.
        assert_smooth(&world, &run(&world), 8.0);
    }
}
