//! Legs between telephones: what one sends into its leg comes to the other out of its own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]

mod rig;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use portunus_leg::{
    KeyframeAsking, Leg, LegEvent, LegGates, LegRemote, LegRtcp, LegSide, LegTones, Medium, Profile,
};
use portunus_media::ingest::Refused;
use portunus_rtp::rtcp::{
    ByeWriter, Compound, Packet, ReceiverReportWriter, ReportBlock, SenderInfo, SenderReportWriter,
};
use portunus_rtp::telephone_event::{Detector, TelephoneEvent};
use portunus_rtp::{Header, Pt, Ssrc};

use rig::{OPUS, PCMU, Phone, Rig, VP8, events, until};

/// Two telephones whose legs are routed into each other.
struct Call {
    rig: Rig,
    alice: (Phone, Leg),
    bob: (Phone, Leg),
}

fn call_of(workers: usize, alice: Phone, bob: Phone) -> Call {
    let rig = Rig::new(workers);
    let (one, other) = (
        rig.leg(|options| options.worker = Some(0)),
        rig.leg(|options| options.worker = Some(workers - 1)),
    );
    one.set_remote(alice.remote(&[PCMU, events(101)]));
    other.set_remote(bob.remote(&[PCMU, events(96)]));
    one.route_from(Some(other.source()));
    other.route_from(Some(one.source()));
    Call {
        rig,
        alice: (alice, one),
        bob: (bob, other),
    }
}

fn call() -> Call {
    call_of(1, Phone::new(), Phone::new())
}

/// Sends until something of it comes: routes between workers need a moment.
fn begin(from: &mut (Phone, Leg), to: &mut (Phone, Leg)) -> Header {
    let patience = Some(Duration::from_millis(20));
    to.0.rtp.set_read_timeout(patience).unwrap();
    let mut buffer = [0; 2_048];
    let mut first = None;
    until("what is sent comes", || {
        from.0.send(&from.1, Pt(0), b"hello");
        first =
            to.0.rtp
                .recv(&mut buffer)
                .ok()
                .map(|len| to.0.open(&mut buffer[..len]).0);
        first.is_some()
    });
    // What was sent meanwhile.
    let mut last = first.unwrap();
    while let Ok(len) = to.0.rtp.recv(&mut buffer) {
        last = to.0.open(&mut buffer[..len]).0;
    }
    let patience = Some(Duration::from_secs(10));
    to.0.rtp.set_read_timeout(patience).unwrap();
    last
}

#[test]
fn sound_passes_both_ways_with_every_kind_of_srtp_and_without() {
    let profiles = [
        None,
        Some(Profile::Aes128CmSha1_80),
        Some(Profile::Aes128CmSha1_32),
        Some(Profile::AeadAes128Gcm),
        Some(Profile::AeadAes256Gcm),
    ];
    for (n, profile) in profiles.into_iter().enumerate() {
        let phone = |profile: Option<Profile>| profile.map_or_else(Phone::new, Phone::secure);
        // The other one has another profile.
        let Call {
            rig: _rig,
            mut alice,
            mut bob,
        } = call_of(1 + n % 2, phone(profile), phone(profiles[(n + 1) % 5]));
        let mut before = begin(&mut alice, &mut bob);
        assert_eq!(before.ssrc, bob.1.ssrc());
        // Over a roll-over of the sender's numbers.
        for n in 0..100u8 {
            alice.0.send(&alice.1, Pt(0), &[n; 160]);
            let (header, payload) = bob.0.receive();
            assert_eq!(payload, [n; 160]);
            assert_eq!(header.ssrc, before.ssrc);
            assert_eq!(header.pt, Pt(0));
            assert_eq!(header.sequence, before.sequence.wrapping_add(1));
            assert_eq!(header.timestamp, before.timestamp.wrapping_add(160));
            before = header;
        }
        begin(&mut bob, &mut alice);
        bob.0.send(&bob.1, Pt(0), b"back");
        assert_eq!(alice.0.receive().1, b"back");
        let status = alice.1.status();
        until("all is counted", || status.incoming().packets() >= 101);
        assert_eq!(status.incoming().lost(), 0);
        assert_eq!(status.strangers(), 0);
    }
}

#[test]
fn what_is_not_sealed_with_the_key_is_refused() {
    let Call {
        rig: _rig,
        mut alice,
        mut bob,
    } = call_of(1, Phone::secure(Profile::Aes128CmSha1_80), Phone::new());
    begin(&mut alice, &mut bob);
    let mut plain = Phone::new();
    plain.ssrc = Ssrc(1);
    let packet = plain.packet(Pt(0), &[0; 160]);
    alice.0.send_as_it_is(&alice.1, &packet);
    let twice = alice.0.packet(Pt(0), b"once");
    alice.0.send_as_it_is(&alice.1, &twice);
    alice.0.send_as_it_is(&alice.1, &twice);
    alice.0.send(&alice.1, Pt(0), b"end");
    assert_eq!(bob.0.receive().1, b"once");
    assert_eq!(bob.0.receive().1, b"end");
    let incoming = alice.1.status().incoming();
    assert_eq!(incoming.refused_as(Refused::Unauthentic), 1);
    assert_eq!(incoming.refused_as(Refused::Late), 1);
}

#[test]
fn one_stream_goes_on_over_senders_that_begin_anew_and_sources_that_change() {
    let Call {
        rig,
        mut alice,
        mut bob,
    } = call();
    let mut before = begin(&mut alice, &mut bob);
    let mut follows = |bob: &mut (Phone, Leg), what: &[u8]| {
        let (header, payload) = bob.0.receive();
        assert_eq!(payload, what);
        assert_eq!(header.ssrc, before.ssrc);
        assert_eq!(header.sequence, before.sequence.wrapping_add(1));
        let later = header.timestamp.wrapping_sub(before.timestamp);
        assert!((1..80_000).contains(&later), "{later}");
        before = header;
    };
    for (ssrc, sequence, timestamp) in [(1, 9, 9), (2, 65_535, u32::MAX), (3, 30_000, 5)] {
        alice.0.ssrc = Ssrc(ssrc);
        (alice.0.sequence, alice.0.timestamp) = (sequence, timestamp);
        alice.0.send(&alice.1, Pt(0), b"anew");
        follows(&mut bob, b"anew");
        alice.0.send(&alice.1, Pt(0), b"again");
        follows(&mut bob, b"again");
    }
    // Somebody else is put through.
    let (mut carol, leg) = (Phone::new(), rig.leg(|_| {}));
    leg.set_remote(carol.remote(&[PCMU]));
    bob.1.route_from(Some(leg.source()));
    carol.send(&leg, Pt(0), b"carol");
    follows(&mut bob, b"carol");
    // She hangs up, and it is the first one again.
    drop(leg);
    bob.1.route_from(Some(alice.1.source()));
    alice.0.send(&alice.1, Pt(0), b"alice");
    follows(&mut bob, b"alice");
}

#[test]
fn behind_a_nat_the_first_valid_packet_says_where_the_far_end_is() {
    for secure in [false, true] {
        let alice = match secure {
            true => Phone::secure(Profile::AeadAes128Gcm),
            false => Phone::new(),
        };
        let mut call = call_of(1, alice, Phone::new());
        let (alice, bob) = (&mut call.alice, &mut call.bob);
        // What its description says is not where it is seen.
        let said = UdpSocket::bind("127.0.0.1:0").unwrap();
        let remote = LegRemote {
            rtp: Some(said.local_addr().unwrap()),
            ..alice.0.remote(&[PCMU])
        };
        alice.1.set_remote(remote.clone());
        // Not valid: another payload type, no RTP, and with SRTP what does not open.
        let mut attacker = Phone::new();
        let attack = attacker.packet(Pt(if secure { 0 } else { 99 }), b"attack");
        for attack in [&attack[..], b"nothing", &[0x40; 200]] {
            attacker.send_as_it_is(&alice.1, attack);
        }
        let status = alice.1.status().clone();
        until("attacks are refused", || status.incoming().refused() >= 3);
        alice.0.send(&alice.1, Pt(0), b"here");
        assert_eq!(bob.0.receive().1, b"here");
        let moved = call
            .rig
            .event(&alice.1, |it| matches!(it, LegEvent::Moved(_)));
        assert_eq!(moved, LegEvent::Moved(alice.0.at()));
        // From now on others are strangers, whatever they send, and the same description again changes nothing.
        alice.1.set_remote(remote);
        let before = status.strangers();
        for _ in 0..10 {
            let attack = attacker.packet(Pt(0), b"attack");
            attacker.send_as_it_is(&alice.1, &attack);
        }
        until("strangers are counted", || {
            status.strangers() == before + 10
        });
        bob.0.send(&bob.1, Pt(0), b"answer");
        assert_eq!(alice.0.receive().1, b"answer");
        assert!(attacker.hears_nothing() && bob.0.hears_nothing());
        // A new description counts.
        let mut other = Phone::new();
        other.ssrc = Ssrc(5);
        alice.1.set_remote(other.remote(&[PCMU]));
        bob.0.send(&bob.1, Pt(0), b"moved");
        assert_eq!(other.receive().1, b"moved");
        other.send(&alice.1, Pt(0), b"from there");
        assert_eq!(bob.0.receive().1, b"from there");
    }
}

#[test]
fn without_latching_the_description_alone_counts() {
    let Call {
        rig: _rig,
        mut alice,
        mut bob,
    } = call();
    let remote = LegRemote {
        latching: false,
        ..alice.0.remote(&[PCMU])
    };
    alice.1.set_remote(remote);
    let (mut other, before) = (Phone::new(), alice.1.status().strangers());
    other.send(&alice.1, Pt(0), b"elsewhere");
    let status = alice.1.status().clone();
    until("a stranger is counted", || status.strangers() == before + 1);
    begin(&mut alice, &mut bob);
    assert_eq!(status.strangers(), before + 1);
}

#[test]
fn before_a_far_end_is_known_nothing_is_taken_or_sent_and_hold_stops_all() {
    let Call {
        rig,
        mut alice,
        mut bob,
    } = call();
    let mut early = (Phone::new(), rig.leg(|_| {}));
    early.1.route_from(Some(alice.1.source()));
    early.0.send(&early.1, Pt(0), b"early");
    let status = early.1.status().clone();
    until("it is a stranger", || status.strangers() == 1);
    begin(&mut alice, &mut bob);
    assert_eq!(status.sent(), 0);
    // On hold nothing goes, and the gate keeps out what comes.
    let held = LegGates {
        send: false,
        receive: false,
    };
    bob.1.set_gates(held);
    let ignored = bob.1.status().incoming().ignored();
    bob.0.send(&bob.1, Pt(0), b"unheard");
    until("it is left out", || {
        bob.1.status().incoming().ignored() > ignored
    });
    let sent = bob.1.status().sent();
    let taken = alice.1.status().incoming().packets();
    alice.0.send(&alice.1, Pt(0), b"unheard");
    until("it came", || alice.1.status().incoming().packets() > taken);
    bob.1.set_gates(LegGates::OPEN);
    let next = begin(&mut alice, &mut bob);
    assert!(bob.1.status().sent() > sent);
    assert_eq!(next.ssrc, bob.1.ssrc());
    // c=0.0.0.0
    bob.1.set_remote(LegRemote::new(
        Some("0.0.0.0:4000".parse().unwrap()),
        vec![PCMU],
    ));
    let (sent, taken) = (bob.1.status().sent(), alice.1.status().incoming().packets());
    alice.0.send(&alice.1, Pt(0), b"unheard");
    until("it came", || alice.1.status().incoming().packets() > taken);
    assert_eq!(bob.1.status().sent(), sent);
    bob.1.set_remote(bob.0.remote(&[PCMU]));
    begin(&mut alice, &mut bob);
}

/// Presses a key as telephones do.
fn press(from: &mut (Phone, Leg), event: u8, pt: u8, ends: usize) {
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
fn whoever_speaks_first_is_heard_where_that_is_wanted() {
    let rig = Rig::new(1);
    let mut somebody = (
        Phone::new(),
        rig.leg(|options| options.hears_unknown = true),
    );
    let mut bob = (Phone::new(), rig.leg(|_| {}));
    somebody.1.set_remote(LegRemote::new(None, vec![PCMU]));
    bob.1.set_remote(bob.0.remote(&[PCMU]));
    bob.1.route_from(Some(somebody.1.source()));
    somebody.1.route_from(Some(bob.1.source()));
    begin(&mut somebody, &mut bob);
    let mut other = Phone::new();
    other.send(&somebody.1, Pt(0), b"second");
    let status = somebody.1.status().clone();
    until("a stranger", || status.strangers() == 1);
    bob.0.send(&bob.1, Pt(0), b"nobody is sent this");
    until("it came", || bob.1.status().incoming().packets() == 1);
    assert_eq!(status.sent(), 0);
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

#[test]
fn a_far_end_that_falls_silent_or_is_gone_is_told() {
    let mut rig = Rig::new(1);
    let mut alice = (
        Phone::new(),
        rig.leg(|options| options.silence = Some(Duration::from_millis(150))),
    );
    let mut bob = (Phone::new(), rig.leg(|_| {}));
    alice.1.set_remote(alice.0.remote(&[PCMU]));
    bob.1.set_remote(bob.0.remote(&[PCMU]));
    alice.1.route_from(Some(bob.1.source()));
    bob.1.route_from(Some(alice.1.source()));
    let is = |wanted: LegEvent| move |event: &LegEvent| *event == wanted;
    rig.event(&alice.1, is(LegEvent::Silent));
    begin(&mut alice, &mut bob);
    rig.event(&alice.1, is(LegEvent::Heard));
    rig.event(&alice.1, is(LegEvent::Silent));
    begin(&mut bob, &mut alice);
    // Nobody listens there any more.
    let (at, leg) = (alice.0.at(), alice.1);
    drop(alice.0);
    let mut failed = false;
    let status = leg.status().clone();
    until("it has failed", || {
        bob.0.send(&bob.1, Pt(0), b"anybody?");
        failed |= rig.told().contains(&LegEvent::Failed);
        failed
    });
    assert!(status.errors() >= 100);
    assert!(UdpSocket::bind(at).is_ok());
}

#[test]
fn rtcp_tells_both_sides_how_it_goes_and_says_goodbye() {
    for secure in [false, true] {
        let phone = || match secure {
            true => Phone::secure(Profile::AeadAes256Gcm),
            false => Phone::new(),
        };
        let Call {
            mut rig,
            mut alice,
            mut bob,
        } = call_of(1, phone(), phone());
        begin(&mut alice, &mut bob);
        // One packet is lost.
        alice.0.sequence += 1;
        alice.0.send(&alice.1, Pt(0), b"after a gap");
        let (last, _) = bob.0.receive();
        let compound = bob
            .0
            .receive_rtcp_with(|it| matches!(it, Packet::SenderReport(_)));
        let mut sent = None;
        for packet in Compound::new(&compound) {
            if let Packet::SenderReport(report) = packet.unwrap() {
                assert_eq!(report.ssrc, last.ssrc);
                assert!(report.info.packets >= 2);
                sent = Some(report.info);
            }
        }
        let sent = sent.unwrap();
        let ntp = sent.ntp >> 16;
        // He reports on it.
        let block = ReportBlock {
            ssrc: last.ssrc,
            fraction_lost: 10,
            cumulative_lost: 7,
            highest_sequence: 9,
            jitter: 80,
            last_sr: ntp as u32,
            delay_since_last_sr: 0,
        };
        let report = ReceiverReportWriter {
            ssrc: bob.0.ssrc,
            blocks: &[block],
        };
        bob.0.send_rtcp(&bob.1, &report);
        let status = bob.1.status().clone();
        until("it is known", || status.far_lost() == 7);
        assert!(status.round_trip().is_some());
        assert_eq!(status.far_jitter(), Duration::from_millis(10));
        // She is told of the loss.
        let told = alice.0.receive_rtcp_with(|it| match it {
            Packet::ReceiverReport(report) => report.blocks().any(|it| it.cumulative_lost == 1),
            _ => false,
        });
        assert!(!told.is_empty());
        // Her own report passes through to his timestamps.
        let info = SenderInfo {
            ntp: 5 << 32,
            rtp: alice.0.timestamp,
            packets: 1,
            octets: 1,
        };
        let report = SenderReportWriter {
            ssrc: alice.0.ssrc,
            info,
            blocks: &[],
        };
        alice.0.send_rtcp(&alice.1, &report);
        let ssrcs = &[alice.0.ssrc][..];
        alice
            .0
            .send_rtcp(&alice.1, &ByeWriter { ssrcs, reason: "" });
        rig.event(&alice.1, |event| *event == LegEvent::Bye);
        drop(bob.1);
        bob.0.receive_rtcp_with(|it| matches!(it, Packet::Bye(_)));
    }
}

/// A VP8 packet that is a frame of its own.
fn picture(keyframe: bool) -> Vec<u8> {
    let mut payload = vec![
        0x10,
        u8::from(!keyframe) | 0x10,
        0,
        0,
        0x9d,
        0x01,
        0x2a,
        16,
        0,
        16,
        0,
    ];
    payload.resize(500, 7);
    payload
}

#[test]
fn keyframes_are_asked_for_through_both_legs() {
    for asking in [KeyframeAsking::Pli, KeyframeAsking::Fir] {
        let mut rig = Rig::new(1);
        let video = |options: &mut portunus_leg::LegOptions| options.medium = Medium::Video;
        let mut alice = (Phone::new(), rig.leg(video));
        let mut bob = (Phone::secure(Profile::Aes128CmSha1_32), rig.leg(video));
        alice.1.set_remote(LegRemote {
            keyframes: asking,
            ..alice.0.remote(&[VP8])
        });
        bob.1.set_remote(bob.0.remote(&[VP8]));
        bob.1.route_from(Some(alice.1.source()));
        alice.0.send(&alice.1, Pt(96), &picture(true));
        assert_eq!(bob.0.receive().1, picture(true));
        bob.0.send_rtcp(&bob.1, &bob.0.pli(bob.1.ssrc()));
        rig.event(&bob.1, |event| *event == LegEvent::KeyframeWanted);
        let ssrc = alice.0.ssrc;
        alice.0.receive_rtcp_with(|packet| match (packet, asking) {
            (Packet::Pli(pli), KeyframeAsking::Pli) => pli.media == ssrc,
            (Packet::Fir(fir), KeyframeAsking::Fir) => fir.entries().any(|it| it.ssrc == ssrc),
            _ => false,
        });
        alice.0.send(&alice.1, Pt(96), &picture(true));
        assert_eq!(bob.0.receive().1, picture(true));
        alice.1.request_keyframe();
        alice
            .0
            .receive_rtcp_with(|it| matches!(it, Packet::Pli(_) | Packet::Fir(_)));
    }
}

#[test]
fn rtcp_may_share_the_port_of_rtp() {
    let Call {
        rig: _rig,
        mut alice,
        mut bob,
    } = call_of(1, Phone::new(), Phone::secure(Profile::Aes128CmSha1_80));
    bob.1.set_remote(LegRemote {
        rtcp: LegRtcp::Mux,
        ..bob.0.remote(&[PCMU])
    });
    begin(&mut alice, &mut bob);
    let mut buffer = [0; 2_048];
    let patience = Some(Duration::from_secs(10));
    bob.0.rtp.set_read_timeout(patience).unwrap();
    loop {
        let len = bob.0.rtp.recv(&mut buffer).unwrap();
        if portunus_rtp::rtcp::is_rtcp(&buffer[..len]) {
            break;
        }
    }
}

#[test]
fn codecs_that_the_far_end_does_not_take_leave_no_gap() {
    let rig = Rig::new(1);
    let (mut alice, mut bob) = (
        (Phone::new(), rig.leg(|_| {})),
        (Phone::new(), rig.leg(|_| {})),
    );
    alice
        .1
        .set_remote(alice.0.remote(&[PCMU, OPUS, events(101)]));
    bob.1.set_remote(bob.0.remote(&[PCMU]));
    bob.1.route_from(Some(alice.1.source()));
    let before = begin(&mut alice, &mut bob);
    for _ in 0..3 {
        alice.0.send(&alice.1, Pt(111), b"opus");
        press(&mut alice, 3, 101, 3);
    }
    alice.0.send(&alice.1, Pt(77), b"never agreed on");
    alice.0.send(&alice.1, Pt(0), b"known");
    let (after, payload) = bob.0.receive();
    assert_eq!(payload, b"known");
    // One is missing at the sender, too: the one that was refused.
    assert_eq!(after.sequence, before.sequence.wrapping_add(2));
    assert_eq!(bob.1.status().unshared(), 3 * 9);
    let refused = alice.1.status().incoming().refused_as(Refused::PayloadType);
    assert_eq!(refused, 1);
}

#[test]
fn ports_are_free_again_once_a_leg_is_closed() {
    let rig = Rig::new(1);
    let leg = rig.leg(|_| {});
    let (port, rtcp) = (leg.port(), leg.rtcp_port());
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_err());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(leg.close().closed());
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok());
    assert!(UdpSocket::bind(("127.0.0.1", rtcp)).is_ok());
}
