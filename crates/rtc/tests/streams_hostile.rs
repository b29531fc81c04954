//! Simulcast, streams that were not negotiated, and nonsense in authentic packets.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_rtc::connection::Refusal;
use portunus_rtc::testing::{
    AUDIO_PT, Link, MediaPair, RTX_PT, VIDEO_PT, audio, data, simulcast, video,
};
use portunus_rtc::{DropReason, Feedback, StreamConfig};
use portunus_rtp::rtcp::{CompoundWriter, NackWriter, Pli, ReceiverReportWriter, ReportBlock};
use portunus_rtp::{ExtensionKind, Fields, Pt, SeqNo, Ssrc};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

const VIDEO: usize = MediaPair::VIDEO;
const TICK: Duration = Duration::from_millis(10);

/// The refusal of packets without an m-line.
const UNKNOWN: Refusal = Refusal::UnknownStream;

fn pair_with(video: portunus_sdp::negotiated::NegotiatedMedia) -> MediaPair {
    let lines = vec![audio("a", 1_000), video, data("d")];
    let mut pair = MediaPair::of(1, lines, StreamConfig::default());
    pair.connect();
    pair
}

/// Sends a packet of a hand-made stream from the left side.
fn send(
    pair: &mut MediaPair,
    (ssrc, pt, sequence): (u32, Pt, u16),
    extensions: &[(ExtensionKind, &str)],
    payload: &[u8],
) {
    let fields = Fields {
        marker: false,
        padding: false,
        pt,
        sequence,
        timestamp: u32::from(sequence) * 900,
        ssrc: Ssrc(ssrc),
    };
    let numbers = pair.left.lines[VIDEO].extensions;
    let extensions: Vec<(u8, &[u8])> = extensions
        .iter()
        .map(|(kind, value)| (numbers.id(*kind).unwrap(), value.as_bytes()))
        .collect();
    pair.send_raw(&fields, &extensions, payload);
    pair.run(Duration::from_millis(11));
}

const MID: (ExtensionKind, &str) = (ExtensionKind::Mid, "v");

fn rid(rid: &str) -> (ExtensionKind, &str) {
    (ExtensionKind::Rid, rid)
}

/// Returns the encoding, extended sequence number and payload of received video.
fn arrived(pair: &MediaPair) -> Vec<(u8, u64, &[u8])> {
    let arrivals = pair.right.arrived(VIDEO);
    arrivals
        .map(|a| (a.encoding, a.seq.0, a.payload.as_slice()))
        .collect()
}

#[test]
fn simulcast_encodings_are_known_by_their_rids() {
    let mut pair = pair_with(simulcast("v", 2_000, &["l", "m", "h"]));
    for (ssrc, name) in [(30, "h"), (10, "l"), (20, "m")] {
        send(&mut pair, (ssrc, VIDEO_PT, 1), &[MID, rid(name)], b"first");
        // Senders omit the extensions once they have been understood.
        send(&mut pair, (ssrc, VIDEO_PT, 2), &[], b"second");
    }
    let expected = [2, 2, 0, 0, 1, 1];
    let encodings: Vec<u8> = arrived(&pair).iter().map(|a| a.0).collect();
    assert_eq!(encodings, expected);
    let told = pair.right.matching_feedback(|f| {
        matches!(
            f,
            Feedback::Receiving {
                receiving: true,
                ..
            }
        )
    });
    assert_eq!(told.len(), 3);
    assert!(pair.right.refusals.is_empty());
}

#[test]
fn a_repair_stream_is_known_by_the_rid_that_it_repairs() {
    let mut pair = pair_with(simulcast("v", 2_000, &["l", "h"]));
    let repaired = (ExtensionKind::RepairedRid, "h");
    send(&mut pair, (20, VIDEO_PT, 1), &[MID, rid("h")], b"one");
    send(&mut pair, (20, VIDEO_PT, 3), &[], b"three");
    send(&mut pair, (21, RTX_PT, 1), &[MID, repaired], b"\x00\x02two");
    // A repeat, one that was never missing, and one without a number: all are dropped.
    send(&mut pair, (21, RTX_PT, 2), &[], b"\x00\x02two");
    send(&mut pair, (21, RTX_PT, 3), &[], b"\x00\x01one");
    send(&mut pair, (21, RTX_PT, 4), &[], b"\x00");
    send(&mut pair, (21, RTX_PT, 5), &[], b"");
    let expected: [(u8, u64, &[u8]); 3] = [(1, 1, b"one"), (1, 3, b"three"), (1, 2, b"two")];
    assert_eq!(arrived(&pair), expected);
    let repaired = pair.right.arrivals.last().unwrap();
    assert_eq!((repaired.ssrc.0, repaired.timestamp), (20, 900));
    let received = pair.right.connection.media()[VIDEO].received().nth(1);
    let counters = received.unwrap().unwrap().counters();
    assert_eq!((counters.retransmissions, counters.repeated), (1, 2));
}

#[test]
fn streams_that_nothing_stands_for_are_refused() {
    let mut pair = pair_with(simulcast("v", 2_000, &["l", "h"]));
    let cases: [&[(ExtensionKind, &str)]; 5] = [
        &[MID, rid("x")],
        &[MID],
        &[(ExtensionKind::Mid, "nobody"), rid("l")],
        &[MID, (ExtensionKind::RepairedRid, "x")],
        &[(ExtensionKind::Mid, "d")],
    ];
    for (ssrc, extensions) in (50..).zip(cases) {
        send(&mut pair, (ssrc, VIDEO_PT, 1), extensions, b"?");
    }
    assert_eq!(pair.right.refusals, [UNKNOWN; 5]);
    // Without a mid, the payload type decides if only one m-line has it.
    send(&mut pair, (60, AUDIO_PT, 1), &[], b"sound");
    send(&mut pair, (61, Pt(13), 1), &[], b"?");
    assert_eq!(pair.right.arrivals.len(), 1);
    assert_eq!(pair.right.refusals, [UNKNOWN; 6]);
}

#[test]
fn a_flood_of_ssrcs_is_bounded() {
    let mut pair = pair_with(video("v", 2_000));
    pair.send(VIDEO, SeqNo(1), 0, b"before");
    pair.run(TICK);
    for ssrc in 100..3_100 {
        send(&mut pair, (ssrc, VIDEO_PT, 1), &[MID], b"flood");
    }
    assert_eq!(pair.right.arrivals.len(), 64);
    let refused = |reason| pair.right.refusals.iter().filter(|r| **r == reason).count();
    let sources = portunus_srtp::OpenError::TooManySources;
    let sources = refused(Refusal::Transport(DropReason::Srtp(sources)));
    assert_eq!((refused(UNKNOWN), sources), (2_048 - 64, 3_001 - 2_048));
    // Known streams continue.
    pair.send(VIDEO, SeqNo(2), 900, b"after");
    pair.run(TICK * 2);
    assert_eq!(pair.right.arrivals.last().unwrap().payload, b"after");
}

#[test]
fn a_peer_may_change_its_ssrc_at_every_renegotiation() {
    let mut pair = pair_with(video("v", 2_000));
    for ssrc in 100..300 {
        pair.negotiate();
        send(&mut pair, (ssrc, VIDEO_PT, 1), &[MID], b"again");
    }
    pair.run(TICK);
    assert_eq!(pair.right.arrivals.len(), 200);
}

#[test]
fn malformed_rtp_in_the_clear_is_refused_and_harms_nothing() {
    let mut pair = MediaPair::connected(5, Link::GOOD);
    let mut rng = StdRng::seed_from_u64(5);
    let mut payload = [0; 60];
    for n in 0..400_u16 {
        pair.send(VIDEO, SeqNo(n.into()), 0, b"good");
        rng.fill_bytes(&mut payload);
        let len = rng.random_range(0..payload.len());
        // There is no padding, or more than payload.
        if let Some(padding) = payload[..len].last_mut()
            && (1..=len).contains(&usize::from(*padding))
        {
            *padding = 0;
        }
        let fields = Fields {
            marker: rng.random(),
            padding: true,
            pt: [VIDEO_PT, RTX_PT, AUDIO_PT, Pt(5)][usize::from(n) % 4],
            sequence: n,
            timestamp: rng.random(),
            ssrc: Ssrc(70 + u32::from(n) % 4),
        };
        let extension = rng.random_range(0..16);
        let extensions = [(1, &payload[..extension]), (4, &payload[..extension / 8])];
        pair.send_raw(&fields, &extensions, &payload[..len]);
        pair.run(TICK);
    }
    pair.run(TICK * 5);
    let wrong = Refusal::Transport(DropReason::MalformedRtp);
    let refused = pair.right.refusals.iter().filter(|r| **r == wrong).count();
    assert_eq!(refused, 400);
    let good = pair.left.arrived(VIDEO).filter(|a| a.payload == b"good");
    assert_eq!(good.count(), 400);
}

#[test]
fn malformed_rtcp_in_the_clear_is_counted_and_harms_nothing() {
    let mut pair = MediaPair::connected(6, Link::GOOD);
    let mut rng = StdRng::seed_from_u64(6);
    for n in 0..2_000_u32 {
        if n % 10 == 0 {
            pair.send(VIDEO, SeqNo(u64::from(n / 10)), 0, b"good");
        }
        let mut compound = [0; 80];
        rng.fill_bytes(&mut compound);
        let len = rng.random_range(8..compound.len());
        // A plausible type and length, or not.
        compound[0] = 0x80 | (compound[0] & 0x3f);
        compound[1] = rng.random_range(192..=223);
        if rng.random() {
            compound[2..4].copy_from_slice(&((len / 4 - 1) as u16).to_be_bytes());
            compound[1] = rng.random_range(200..=207);
        }
        // Some are about existing streams.
        let ssrc = pair.right.lines[VIDEO].local_ssrc.0.to_be_bytes();
        compound[8..12].copy_from_slice(&ssrc);
        // SRTCP accepts a limited number of senders.
        compound[4..8].copy_from_slice(&[0, 0, 0, 9]);
        pair.send_rtcp(&compound[..len]);
        pair.run(Duration::from_millis(1));
    }
    pair.run(TICK * 5);
    assert!(pair.right.connection.malformed_rtcp() > 500);
    assert_eq!(pair.left.arrived(VIDEO).count(), 200);
    assert!(pair.left.connection.transport.is_connected());
}

#[test]
fn retransmissions_are_made_only_where_they_were_agreed() {
    let mut pair = MediaPair::connected(8, Link::GOOD);
    for media in [MediaPair::AUDIO, VIDEO] {
        pair.send(media, SeqNo(20), 0, b"good");
    }
    pair.run(TICK * 3);
    for media in [MediaPair::AUDIO, VIDEO] {
        let mut buf = [0; 100];
        let nack = NackWriter {
            sender: Ssrc(1),
            media: pair.right.lines[media].local_ssrc,
            lost: [20].into_iter(),
        };
        let mut out = CompoundWriter::new(&mut buf);
        out.push(&nack).unwrap();
        let len = out.len();
        pair.send_rtcp(&buf[..len]);
    }
    pair.run(TICK * 3);
    let asked = pair
        .right
        .matching_feedback(|f| matches!(f, Feedback::Nack { .. }));
    let seq = SeqNo(20);
    let expected = Feedback::Nack { media: VIDEO, seq };
    assert_eq!(
        asked.iter().map(|(_, f)| *f).collect::<Vec<_>>(),
        [expected]
    );
}

#[test]
fn requests_for_what_was_never_sent_are_bounded() {
    let mut pair = MediaPair::connected(7, Link::GOOD);
    pair.send(VIDEO, SeqNo(20), 0, b"good");
    pair.run(TICK * 3);
    let stream = pair.right.lines[VIDEO].local_ssrc;
    let mut buf = [0; 1_200];
    let mut out = CompoundWriter::new(&mut buf);
    let block = ReportBlock {
        ssrc: stream,
        fraction_lost: 255,
        cumulative_lost: -1,
        highest_sequence: u32::MAX,
        jitter: u32::MAX,
        last_sr: 1,
        delay_since_last_sr: u32::MAX,
    };
    let report = ReceiverReportWriter {
        ssrc: Ssrc(1),
        blocks: &[block],
    };
    out.push(&report).unwrap();
    for media in [stream, Ssrc(stream.0 + 1), Ssrc(77)] {
        let nack = NackWriter {
            sender: Ssrc(1),
            media,
            lost: (0..40_000).step_by(17).take(70),
        };
        out.push(&nack).unwrap();
        let pli = Pli {
            sender: Ssrc(1),
            media,
        };
        out.push(&pli).unwrap();
    }
    let len = out.len();
    for _ in 0..50 {
        pair.send_rtcp(&buf[..len]);
    }
    pair.run(TICK * 3);
    let asked = pair
        .right
        .matching_feedback(|f| matches!(f, Feedback::Nack { .. }));
    // Only 0 and 17 of these precede the sent packet. Each is retransmitted once per round trip.
    assert_eq!(asked.len(), 2);
    let keyframes = pair
        .right
        .matching_feedback(|f| *f == Feedback::Keyframe { media: VIDEO });
    assert_eq!(keyframes.len(), 50);
    let sent = pair.right.connection.media()[VIDEO].sent().unwrap();
    assert_eq!(
        (sent.counters().retransmissions, sent.counters().lost),
        (0, 0)
    );
    assert_eq!(sent.round_trip(), None, "nobody answered a report of ours");
}

#[test]
fn what_a_datagram_of_rtcp_may_ask_for_is_bounded() {
    let mut pair = MediaPair::connected(9, Link::GOOD);
    // Two runs, of 8,191 packets and of one, all lost.
    let mut feedback = [0; 24];
    feedback[..4].copy_from_slice(&[0x80 | 15, 205, 0, 5]);
    feedback[7] = 9;
    feedback[14..16].copy_from_slice(&8_192_u16.to_be_bytes());
    feedback[20..24].copy_from_slice(&[0x1f, 0xff, 0, 1]);
    for (count, malformed) in [(1, 0), (4, 3), (1, 3)] {
        pair.send_rtcp(&feedback.repeat(count));
        pair.run(TICK * 3);
        assert_eq!(pair.right.connection.malformed_rtcp(), malformed);
    }
    pair.send(VIDEO, SeqNo(20), 0, b"good");
    pair.run(TICK * 3);
    let nack = NackWriter {
        sender: Ssrc(9),
        media: pair.right.lines[VIDEO].local_ssrc,
        lost: 0..1_700,
    };
    let mut buf = [0; 1_200];
    let mut out = CompoundWriter::new(&mut buf);
    out.push(&nack).unwrap();
    out.push(&nack).unwrap();
    let len = out.len();
    pair.send_rtcp(&buf[..len]);
    pair.run(TICK * 3);
    let sent = pair.right.connection.media()[VIDEO].sent().unwrap();
    assert_eq!(sent.counters().nacks, 1_024);
}
