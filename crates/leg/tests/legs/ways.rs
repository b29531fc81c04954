//! The addresses of far ends, and their silence.

use std::net::UdpSocket;
use std::time::Duration;

use portunus_leg::{LegEvent, LegGates, LegRemote, Profile};
use portunus_rtp::{Pt, Ssrc};

use crate::call::{Call, begin, call, call_of};
use crate::rig::{PCMU, Phone, Rig, until};

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
        // From now on others are strangers, whatever they send, and the same description again
        // changes nothing.
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
