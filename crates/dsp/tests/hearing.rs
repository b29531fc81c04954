//! The choice of the participants that are heard.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use std::collections::HashSet;

use portunus_dsp::{ParticipantId, ParticipantOptions};
use rig::{MONO_16, Rig, noise, participant};

/// Whether a tone of this loudness is heard.
fn is_heard(amount: f32, loud: f32) -> bool {
    (0.8 * loud..1.2 * loud).contains(&amount)
}

#[test]
fn the_loudest_are_heard_and_nobody_else_is_decoded() {
    let mut rig = Rig::mono(2);
    rig.join(0, participant());
    for id in 1..=5 {
        rig.join(id, participant());
    }
    let tick = |rig: &mut Rig, louds: [f32; 5]| {
        for (id, loud) in (1..).zip(louds) {
            rig.send_tone(id, 200.0 + 300.0 * id as f32, loud);
        }
        rig.tick();
    };
    let heard = |rig: &Rig| -> HashSet<u64> {
        (1..=5)
            .filter(|id| rig.hears(0, 200.0 + 300.0 * *id as f32) > 0.01)
            .collect()
    };
    for _ in 0..50 {
        tick(&mut rig, [0.1, 0.3, 0.05, 0.2, 0.0001]);
    }
    assert_eq!(heard(&rig), HashSet::from([2, 4]));
    let before = rig.room.stats();
    for _ in 0..50 {
        tick(&mut rig, [0.1, 0.3, 0.05, 0.2, 0.0001]);
    }
    let stats = rig.room.stats();
    assert_eq!(stats.decoded - before.decoded, 100);
    assert_eq!(stats.skipped - before.skipped, 150);
    // A louder newcomer is heard at once: after the delay of its jitter buffer and a frame or two.
    for _ in 0..20 {
        tick(&mut rig, [0.8, 0.3, 0.05, 0.2, 0.0001]);
    }
    assert_eq!(heard(&rig), HashSet::from([1, 2]));
}

#[test]
fn loudness_is_measured_where_packets_do_not_tell() {
    let mut rig = Rig::mono(2);
    rig.levels = false;
    for id in 0..=5 {
        rig.join(id, participant());
    }
    for _ in 0..50 {
        for (id, loud) in (1..).zip([0.1, 0.3, 0.05, 0.2, 0.01]) {
            rig.send_tone(id, 200.0 + 300.0 * id as f32, loud);
        }
        rig.tick();
    }
    for (id, heard) in (1..).zip([false, true, false, true, false]) {
        let amount = rig.hears(0, 200.0 + 300.0 * id as f32);
        assert_eq!(amount > 0.02, heard, "{id}: {amount}");
    }
    // A participant that is not heard is decoded from time to time only.
    let stats = rig.room.stats();
    assert!(stats.skipped > 80, "{stats:?}");
    // Two of five are heard. Every fourth frame of the other three is measured.
    let probes = stats.decoded + stats.skipped - 5 * stats.ticks;
    assert!((20..=40).contains(&probes), "{probes} {stats:?}");
}

#[test]
fn who_is_muted_is_not_heard_and_hears() {
    let mut rig = Rig::mono(8);
    for id in 1..=3 {
        rig.join(id, participant());
    }
    let run = |rig: &mut Rig, frames| {
        for _ in 0..frames {
            rig.send_tone(1, 400.0, 0.3);
            rig.send_tone(2, 700.0, 0.3);
            rig.tick();
        }
    };
    run(&mut rig, 50);
    assert!(is_heard(rig.hears(3, 400.0), 0.3));
    let muted = ParticipantOptions {
        muted: true,
        ..participant()
    };
    rig.room.set(ParticipantId(1), muted).expect("in the room");
    let before = rig.room.stats();
    run(&mut rig, 40);
    let stats = rig.room.stats();
    assert!(rig.hears(3, 400.0) < 0.01);
    assert!(is_heard(rig.hears(1, 700.0), 0.3));
    assert_eq!(
        stats.decoded - before.decoded,
        41,
        "one more to fade out, and 2"
    );
    rig.room
        .set(ParticipantId(1), participant())
        .expect("in the room");
    run(&mut rig, 40);
    assert!(is_heard(rig.hears(3, 400.0), 0.3));
}

#[test]
fn a_muted_room_hears_who_is_immune() {
    let mut rig = Rig::mono(8);
    rig.join(1, participant());
    rig.join(
        2,
        ParticipantOptions {
            immune: true,
            ..participant()
        },
    );
    rig.join(3, participant());
    rig.room.set_muted(true);
    for muted in [true, false] {
        rig.room.set_muted(muted);
        for _ in 0..50 {
            rig.send_tone(1, 400.0, 0.3);
            rig.send_tone(2, 700.0, 0.3);
            rig.tick();
        }
        assert!(is_heard(rig.hears(3, 700.0), 0.3));
        assert_eq!(rig.hears(3, 400.0) < 0.01, muted);
    }
}

#[test]
fn who_is_suspended_or_not_connected_neither_hears_nor_is_heard() {
    let mut rig = Rig::mono(8);
    for id in 1..=3 {
        rig.join(id, participant());
    }
    rig.join(4, participant());
    rig.room.connect(ParticipantId(4), false);
    let suspended = ParticipantOptions {
        suspended: true,
        ..participant()
    };
    rig.room
        .set(ParticipantId(1), suspended)
        .expect("in the room");
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.3);
        rig.send_tone(2, 700.0, 0.3);
        rig.send_tone(4, 1_100.0, 0.3);
        rig.tick();
    }
    assert_eq!(rig.mix_of(1), None);
    assert_eq!(rig.mix_of(4), None);
    assert!(rig.hears(3, 400.0) < 0.01 && rig.hears(3, 1_100.0) < 0.01);
    rig.room
        .set(ParticipantId(1), participant())
        .expect("in the room");
    rig.room.connect(ParticipantId(4), true);
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.3);
        rig.send_tone(2, 700.0, 0.3);
        rig.tick();
    }
    assert!(is_heard(rig.hears(4, 400.0), 0.3));
    assert!(is_heard(rig.hears(1, 700.0), 0.3));
    rig.room
        .set(
            ParticipantId(1),
            ParticipantOptions {
                suspended: true,
                ..participant()
            },
        )
        .expect("in the room");
    rig.tick();
    assert_eq!(rig.mix_of(1), None);
}

/// Eight participants claim full loudness and send next to nothing. A talker is still heard.
#[test]
fn who_tells_more_than_is_true_silences_nobody() {
    let mut rig = Rig::mono(8);
    for id in 1..=10 {
        rig.join(id, participant());
    }
    let mut heard = Vec::new();
    for frame in 0..600 {
        for id in 1..=8 {
            let noise = noise(MONO_16, 80.0, frame * 8 + id);
            rig.send_as(id, &noise, Some(0));
        }
        if frame >= 100 {
            rig.send_tone(9, 400.0, 0.2);
        }
        rig.tick();
        let state = rig.room.participant(ParticipantId(9)).expect("there");
        heard.push(state.heard);
    }
    let first = heard.iter().position(|heard| *heard).expect("heard");
    assert!(first < 105, "frame {first}");
    assert!(heard[first..].iter().all(|heard| *heard));
    assert!(is_heard(rig.hears(10, 400.0), 0.2));
}

/// Every fourth frame of many senders without levels is measured. One that starts to talk is still
/// heard.
#[test]
fn who_talks_among_many_without_levels_is_heard_soon() {
    let mut rig = Rig::mono(3);
    rig.levels = false;
    for id in 1..=21 {
        rig.join(id, participant());
    }
    let mut first = None;
    for frame in 0..200 {
        for id in 1..=20 {
            if id == 7 && frame >= 100 {
                rig.send_tone(id, 400.0, 0.2);
            } else {
                let noise = noise(MONO_16, 70.0, frame * 20 + id);
                rig.send(id, &noise);
            }
        }
        rig.tick();
        let state = rig.room.participant(ParticipantId(7)).expect("there");
        if state.heard {
            first = first.or(Some(frame));
        }
    }
    let first = first.expect("heard");
    assert!((100..110).contains(&first), "frame {first}");
    assert!(is_heard(rig.hears(21, 400.0), 0.2));
}
