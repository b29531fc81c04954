//! RTCP with far ends.

use std::time::Duration;

use portunus_leg::{KeyframeAsking, Leg, LegEvent, LegRemote, LegRtcp, Medium, Profile};
use portunus_rtp::rtcp::{
    ByeWriter, Compound, NackWriter, Packet, ReceiverReportWriter, ReportBlock, SenderInfo,
    SenderReportWriter,
};
use portunus_rtp::{Pt, Ssrc};

use crate::call::{Call, begin, call_of};
use crate::rig::{PCMU, Phone, Rig, VP8, until};

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
fn what_a_far_end_has_lost_leaves_again_as_it_was() {
    let secure = || Phone::secure(Profile::Aes128CmSha1_80);
    for (alice, bob) in [(Phone::new(), Phone::new()), (secure(), secure())] {
        let mut call = call_of(1, alice, bob);
        let last = begin(&mut call.alice, &mut call.bob);
        let receive = |bob: &mut (Phone, Leg)| {
            let mut buffer = [0; 2_048];
            let len = bob.0.rtp.recv(&mut buffer).expect("a packet");
            buffer[..len].to_vec()
        };
        let mut came = Vec::new();
        for payload in [b"one", b"two", b"tri"] {
            call.alice.0.send(&call.alice.1, Pt(0), payload);
            came.push(receive(&mut call.bob));
        }
        // Not of us, or never sent: nothing.
        let nack = |media: Ssrc, lost: Vec<u16>| NackWriter {
            sender: Ssrc(1),
            media,
            lost,
        };
        let first = last.sequence.wrapping_add(1);
        let bob = &mut call.bob;
        bob.0.send_rtcp(&bob.1, &nack(Ssrc(4), vec![first]));
        let never = nack(last.ssrc, vec![first.wrapping_add(900)]);
        bob.0.send_rtcp(&bob.1, &never);
        let lost = nack(last.ssrc, vec![first, first.wrapping_add(1)]);
        bob.0.send_rtcp(&bob.1, &lost);
        for datagram in &came[..2] {
            assert_eq!(&receive(bob), datagram);
        }
        // With another number for its codec it would not be the same packet.
        let pcmu = portunus_leg::LegPayload {
            pt: Pt(100),
            ..PCMU
        };
        bob.1.set_remote(bob.0.remote(&[pcmu]));
        bob.0
            .send_rtcp(&bob.1, &nack(last.ssrc, vec![first.wrapping_add(2)]));
        call.alice.0.send(&call.alice.1, Pt(0), b"new");
        assert_eq!(call.bob.0.receive().1, b"new");
    }
}
