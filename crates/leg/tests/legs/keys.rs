//! Keys of telephones (RFC 4733).

use std::time::{Duration, Instant};

use portunus_leg::{Leg, LegEvent, LegSide, LegTones, Profile};
use portunus_rtp::Pt;
use portunus_rtp::telephone_event::{Detector, TelephoneEvent};

use crate::call::{Call, begin, call, call_of};
use crate::rig::{PCMU, Phone, Rig, events, until};

/// Presses a key as telephones do.
pub fn press(from: &mut (Phone, Leg), event: u8, pt: u8, ends: usize) {
    let timestamp = from.0.timestamp;
    for (duration, end) in (1..=5)
        .map(|n| (n * 160, false))
        .chain(std::iter::repeat_n((800, true), ends))
    {
        let payload = TelephoneEvent {
            event,
            end,
            volume: 10,
            duration,
        };
        from.0.sequence += 1;
        let packet = from.0.packet_at(Pt(pt), timestamp, &payload.to_bytes());
        from.0.send_as_it_is(&from.1, &packet);
    }
    from.0.timestamp = timestamp.wrapping_add(800);
}

#[test]
fn keys_are_told_once_and_pass_with_the_payload_type_of_the_other_side() {
    let Call {
        mut rig,
        mut alice,
        mut bob,
    } = call();
    begin(&mut alice, &mut bob);
    let is_key = |event: &LegEvent| matches!(event, LegEvent::Key { .. });
    for (digit, ends) in [('5', 3), ('5', 1), ('#', 0), ('D', 3)] {
        let event = portunus_rtp::telephone_event::event(digit).unwrap();
        press(&mut alice, event, 101, ends);
        // One whose end is lost is told with the next one.
        if ends == 0 {
            press(&mut alice, event, 101, 2);
        }
        let told = rig.event(&alice.1, is_key);
        assert_eq!(told.digit(), Some(digit));
        let key = LegEvent::Key {
            by: LegSide::FarEnd,
            event,
            duration: 800,
            clock_rate: 8_000,
        };
        assert_eq!(told, key);
        if ends == 0 {
            assert_eq!(rig.event(&alice.1, is_key), key);
        }
    }
    let packets = 4 * 5 + 3 + 1 + 3 + 5 + 2;
    let mut heard = Detector::default();
    let mut pressed = Vec::new();
    for _ in 0..packets {
        let (header, payload) = bob.0.receive();
        assert_eq!(header.pt, Pt(96));
        let event = TelephoneEvent::parse(&payload).unwrap();
        let place = (header.timestamp, header.marker);
        pressed.extend(heard.take(event, place, Instant::now()));
    }
    let pressed: Vec<u8> = pressed.iter().map(|key| key.event).collect();
    assert_eq!(pressed, [5, 5, 11, 11, 15]);
    assert!(!rig.told().iter().any(is_key), "each is told once");
}

#[test]
fn keys_of_the_near_side_are_told_where_that_is_asked_for() {
    let mut rig = Rig::new(1);
    let mut alice = (Phone::new(), rig.leg(|_| {}));
    let mut bob = (Phone::new(), rig.leg(|options| options.hears_source = true));
    alice.1.set_remote(alice.0.remote(&[PCMU, events(101)]));
    bob.1.set_remote(bob.0.remote(&[PCMU, events(96)]));
    bob.1.route_from(Some(alice.1.source()));
    begin(&mut alice, &mut bob);
    press(&mut alice, 9, 101, 3);
    let told = rig.event(&bob.1, |event| matches!(event, LegEvent::Key { .. }));
    let by = LegSide::Near;
    assert!(matches!(told, LegEvent::Key { by: it, event: 9, .. } if it == by));
}

#[test]
fn keys_of_one_source_pass_while_another_is_heard() {
    let mut rig = Rig::new(2);
    let mut alice = (Phone::new(), rig.leg(|options| options.worker = Some(1)));
    let mut music = (Phone::new(), rig.leg(|options| options.worker = Some(0)));
    let mut bob = (
        Phone::new(),
        rig.leg(|options| (options.worker, options.hears_source) = (Some(0), true)),
    );
    alice.1.set_remote(alice.0.remote(&[PCMU, events(101)]));
    music.1.set_remote(music.0.remote(&[PCMU]));
    bob.1.set_remote(bob.0.remote(&[PCMU, events(96)]));
    bob.1.route_from(Some(music.1.source()));
    bob.1.keys_from(Some(alice.1.source()));
    begin(&mut music, &mut bob);
    // Until the other worker passes on what she sends.
    until("a key is heard", || {
        press(&mut alice, 7, 101, 3);
        let deadline = Instant::now() + Duration::from_millis(200);
        let is_key = |event: &LegEvent| {
            matches!(
                event,
                LegEvent::Key {
                    event: 7,
                    by: LegSide::Near,
                    ..
                }
            )
        };
        let mut told = false;
        while !told && Instant::now() < deadline {
            told = rig.told().iter().any(is_key);
        }
        told
    });
    let (mut detector, mut pressed) = (Detector::default(), None);
    while pressed.is_none() {
        let (header, payload) = bob.0.receive();
        assert_eq!(header.ssrc, bob.1.ssrc());
        assert_eq!(header.pt, Pt(96), "of her only keys are heard");
        let event = TelephoneEvent::parse(&payload).unwrap();
        let place = (header.timestamp, header.marker);
        pressed = detector.take(event, place, Instant::now()).next();
    }
    assert_eq!(pressed.map(|key| (key.event, key.duration)), Some((7, 800)));
}

#[test]
fn tones_of_ours_fit_into_the_stream_and_both_sides_can_hear_them() {
    let Call {
        rig: _rig,
        mut alice,
        mut bob,
    } = call_of(1, Phone::secure(Profile::Aes128CmSha1_80), Phone::new());
    let mut before = begin(&mut alice, &mut bob);
    // The far end of one leg is on the near side of the other.
    for (leg, to) in [(&bob.1, LegSide::FarEnd), (&alice.1, LegSide::Near)] {
        leg.send_tones(LegTones::new(&[1, 2, 10], to));
        let (mut detector, mut pressed, mut spoken) = (Detector::default(), vec![], 0);
        while pressed.len() < 3 {
            // Of its packets those are left out that come while a tone sounds, without a gap.
            let packet = alice.0.packet(Pt(0), b"speech");
            alice.0.send_as_it_is(&alice.1, &packet);
            let (header, payload) = bob.0.receive();
            assert_eq!(header.sequence, before.sequence.wrapping_add(1));
            before = header;
            if header.pt == Pt(0) {
                spoken += 1;
                continue;
            }
            assert_eq!(header.pt, Pt(96));
            let event = TelephoneEvent::parse(&payload).unwrap();
            let place = (header.timestamp, header.marker);
            pressed.extend(detector.take(event, place, Instant::now()));
        }
        assert!(spoken > 0);
        let pressed: Vec<(u8, u32)> = pressed.iter().map(|it| (it.event, it.duration)).collect();
        assert_eq!(pressed, [(1, 800), (2, 800), (10, 800)]);
        // The end of the last one is told twice more, and nothing else is heard meanwhile.
        loop {
            alice.0.send(&alice.1, Pt(0), b"over");
            let (header, payload) = bob.0.receive();
            before = header;
            if payload == b"over" {
                break;
            }
        }
    }
}
