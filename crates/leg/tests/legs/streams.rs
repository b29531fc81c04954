//! Streams of packets, in the clear and encrypted.

use std::net::UdpSocket;

use portunus_leg::{Leg, Profile};
use portunus_media::ingest::Refused;
use portunus_rtp::{Pt, Ssrc};

use crate::call::{Call, begin, call, call_of};
use crate::keys::press;
use crate::rig::{OPUS, PCMU, Phone, Rig, events, until};

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
