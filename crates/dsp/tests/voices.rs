//! A talker is heard from the first frame on, and open microphones cost nothing.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use portunus_dsp::ParticipantId;
use rig::{MONO_16, Rig, noise, participant};

fn room(participants: u64, loudest: usize) -> Rig {
    let mut rig = Rig::mono(loudest);
    for id in 1..=participants {
        rig.join(id, participant());
    }
    rig
}

fn send_noise(rig: &mut Rig, id: u64, level: f32) {
    let sound = noise(MONO_16, level, rig.log.tick * 16 + id);
    rig.send(id, &sound);
}

fn is_heard(rig: &Rig, id: u64) -> bool {
    rig.room
        .participant(ParticipantId(id))
        .expect("in the room")
        .heard
}

#[test]
fn open_microphones_are_not_decoded() {
    let mut rig = room(4, 8);
    for _ in 0..300 {
        rig.send_speech(1, 0.7);
        send_noise(&mut rig, 2, 62.0);
        send_noise(&mut rig, 3, 55.0);
        send_noise(&mut rig, 4, 75.0);
        rig.tick();
        for id in 2..=4 {
            assert!(!is_heard(&rig, id), "{id}");
        }
    }
    // The talker has a mix of its own, which is empty. The other three share one.
    assert_eq!(rig.mix_of(2), rig.mix_of(3));
    assert_eq!(rig.mix_of(2), rig.mix_of(4));
    assert!(rig.room.stats().decoded <= 300);
    assert!(rig.room.stats().encoded <= 320);
}

#[test]
fn where_all_are_mixed_noise_is_too() {
    let mut rig = room(2, 0);
    for _ in 0..50 {
        send_noise(&mut rig, 1, 62.0);
        rig.tick();
    }
    assert!(is_heard(&rig, 1));
}

/// Returns the number of frames for which a fan at -45 dBov is heard, after 4 s of a quiet room.
fn fan(levels: bool) -> Option<usize> {
    let mut rig = room(2, 8);
    rig.levels = levels;
    for _ in 0..200 {
        send_noise(&mut rig, 1, 66.0);
        rig.tick();
        assert!(!is_heard(&rig, 1));
    }
    let heard: Vec<_> = (0..300)
        .map(|_| {
            send_noise(&mut rig, 1, 45.0);
            rig.tick();
            is_heard(&rig, 1)
        })
        .collect();
    assert!(heard[5], "nobody knows yet that it is none who talks");
    heard.iter().rposition(|heard| *heard)
}

#[test]
fn a_fan_that_starts_leaves_the_mix() {
    for levels in [true, false] {
        let last = fan(levels).expect("heard at first");
        assert!((100..150).contains(&last), "levels: {levels}, {last}");
    }
}

#[test]
fn music_stays_in_the_mix() {
    let mut rig = room(2, 8);
    for frame in 0..1_000 {
        send_noise(&mut rig, 1, 25.0);
        rig.tick();
        assert!(frame < 3 || is_heard(&rig, 1), "frame {frame}");
    }
}
