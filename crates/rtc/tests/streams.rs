//! Media and data between two connections: completeness, repair, renegotiation.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::collections::HashSet;
use std::time::Duration;

use portunus_rtc::Feedback;
use portunus_rtc::data::DataMessage;
use portunus_rtc::testing::{Link, MediaPair, MediaSide};
use portunus_rtp::SeqNo;

const AUDIO: usize = MediaPair::AUDIO;
const VIDEO: usize = MediaPair::VIDEO;
const TICK: Duration = Duration::from_millis(10);

/// Returns a unique payload for the packet.
fn payload(media: usize, seq: u64) -> Vec<u8> {
    let len = 20 + (seq * 37 % 900) as usize;
    let head = (seq + ((media as u64) << 32)).to_be_bytes();
    head.into_iter()
        .chain((0..len).map(|i| (i as u64 * 7 + seq) as u8))
        .collect()
}

/// Sends `packets` of video from `first` on, 100 a second, and audio at half that rate.
fn talk(pair: &mut MediaPair, first: u64, packets: u64) {
    for seq in first..first + packets {
        pair.send(VIDEO, SeqNo(seq), (seq * 900) as u32, &payload(VIDEO, seq));
        if seq % 2 == 0 {
            let audio = seq / 2;
            let timestamp = (audio * 960) as u32;
            pair.send(AUDIO, SeqNo(audio), timestamp, &payload(AUDIO, audio));
        }
        pair.run(TICK);
    }
}

/// Returns the numbers that arrived on an m-line in order of arrival, and checks their payloads.
fn numbers(side: &MediaSide, media: usize) -> Vec<u64> {
    let check = |arrival: &portunus_rtc::testing::Arrival| {
        assert_eq!(arrival.payload, payload(media, arrival.seq.0));
        arrival.seq.0
    };
    side.arrived(media).map(check).collect()
}

#[test]
fn media_and_data_come_back_complete_and_in_order() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    for n in 0..20 {
        pair.send_text("chat", &format!("message {n}"));
    }
    talk(&mut pair, 100, 500);
    pair.run(Duration::from_secs(1));
    for side in [&pair.left, &pair.right] {
        assert_eq!(numbers(side, VIDEO), Vec::from_iter(100..600));
        assert_eq!(numbers(side, AUDIO), Vec::from_iter(50..300));
        let texts: Vec<DataMessage> = (0..20)
            .map(|n| DataMessage::Text(format!("message {n}")))
            .collect();
        assert_eq!(side.messages("chat"), Vec::from_iter(&texts));
        assert!(side.refusals.is_empty(), "{:?}", side.refusals);
        let counters = side.connection.media()[VIDEO].sent().unwrap().counters();
        assert_eq!((counters.packets, counters.nacks), (500, 0));
    }
}

#[test]
fn every_video_packet_is_repaired_within_a_second_and_none_comes_twice() {
    for seed in 0..12 {
        let mut pair = MediaPair::connected(seed, Link::lossy(0.1));
        talk(&mut pair, 1, 600);
        pair.run(Duration::from_secs(2));
        for side in [&pair.right, &pair.left] {
            let came = numbers(side, VIDEO);
            let distinct: HashSet<u64> = came.iter().copied().collect();
            assert_eq!(distinct.len(), came.len(), "seed {seed}: some came twice");
            // Packets before the first received one do not count as lost.
            let first = came.iter().min().unwrap();
            let missing: Vec<u64> = (*first..=600).filter(|n| !distinct.contains(n)).collect();
            // After the last packet, nothing shows that one is missing.
            assert!(
                missing.iter().all(|n| *n > 590),
                "seed {seed}: {missing:?} never came"
            );
        }
        let received = pair.right.connection.media()[VIDEO].received().next();
        let counters = received.unwrap().unwrap().counters();
        assert!(counters.retransmissions > 20, "seed {seed}: {counters:?}");
    }
}

#[test]
fn repairs_on_one_hop_take_less_than_a_second() {
    for seed in 0..12 {
        let mut pair = MediaPair::connected(seed, Link::lossy(0.1));
        pair.right.echo = false;
        let start = pair.now;
        talk(&mut pair, 1, 300);
        pair.run(Duration::from_secs(2));
        for arrival in pair.right.arrived(VIDEO) {
            let sent = start + TICK * (arrival.seq.0 as u32 - 1);
            let delay = arrival.at.saturating_duration_since(sent);
            assert!(delay < Duration::from_secs(1), "seed {seed}: {delay:?}");
        }
    }
}

#[test]
fn a_packet_that_is_overtaken_by_the_first_is_kept() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    for (seq, delay) in [(7, 30), (8, 10)] {
        pair.network.link.delay = Duration::from_millis(delay);
        pair.send(VIDEO, SeqNo(seq), 0, &payload(VIDEO, seq));
    }
    pair.run(Duration::from_secs(1));
    assert_eq!(numbers(&pair.right, VIDEO), [8, 7]);
}

#[test]
fn numbers_wrap_under_loss() {
    for seed in 0..6 {
        let mut pair = MediaPair::connected(seed, Link::GOOD);
        talk(&mut pair, 65_400, 20);
        pair.network.link = Link::lossy(0.1);
        talk(&mut pair, 65_420, 300);
        pair.network.link = Link::GOOD;
        talk(&mut pair, 65_720, 20);
        pair.run(Duration::from_secs(1));
        for side in [&pair.right, &pair.left] {
            let mut came = numbers(side, VIDEO);
            came.sort_unstable();
            assert_eq!(came, Vec::from_iter(65_400..65_740), "seed {seed}");
        }
    }
}

#[test]
fn without_a_repair_stream_packets_come_again_by_their_own_number() {
    for seed in 0..6 {
        let lines = vec![portunus_rtc::testing::audio("a", 1_000), {
            let mut line = portunus_rtc::testing::video("v", 2_000);
            line.payloads[0].rtx = None;
            line.local_rtx_ssrc = None;
            line
        }];
        let mut pair = MediaPair::of(seed, lines, portunus_rtc::StreamConfig::default());
        pair.right.echo = true;
        pair.connect();
        talk(&mut pair, 1, 10);
        pair.network.link = Link::lossy(0.1);
        talk(&mut pair, 11, 300);
        pair.network.link = Link::GOOD;
        talk(&mut pair, 311, 20);
        pair.run(Duration::from_secs(1));
        for side in [&pair.right, &pair.left] {
            let mut came = numbers(side, VIDEO);
            came.sort_unstable();
            assert_eq!(came, Vec::from_iter(1..331), "seed {seed}");
        }
        let sent = pair.left.connection.media()[VIDEO].sent().unwrap();
        assert!(sent.counters().retransmissions > 20);
        assert_eq!(
            sent.counters().packets,
            330,
            "repeats are not counted as new"
        );
    }
}

#[test]
fn a_gap_beyond_repair_asks_for_a_keyframe() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    pair.right.echo = false;
    talk(&mut pair, 1, 10);
    pair.send(VIDEO, SeqNo(1_000), 0, &payload(VIDEO, 1_000));
    pair.run(Duration::from_secs(1));
    let keyframe = Feedback::Keyframe { media: VIDEO };
    assert_eq!(pair.left.matching_feedback(|f| *f == keyframe).len(), 1);
    let sent = pair.left.connection.media()[VIDEO].sent().unwrap();
    assert_eq!(sent.counters().keyframe_requests, 1);
    let received = pair.right.connection.media()[VIDEO].received().next();
    let counters = received.unwrap().unwrap().counters();
    assert_eq!(counters.keyframe_requests, 1);
    assert_eq!(counters.nacks, 0, "what is given up is not asked for");
}

#[test]
fn packets_that_are_given_up_ask_for_a_keyframe() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    pair.left.repairs = false;
    pair.right.echo = false;
    talk(&mut pair, 1, 10);
    talk(&mut pair, 15, 500);
    let keyframe = Feedback::Keyframe { media: VIDEO };
    let asked = pair.left.matching_feedback(|f| *f == keyframe).len();
    assert_eq!(asked, 3, "once, and twice again since none comes");
    let sent = pair.left.connection.media()[VIDEO].sent().unwrap();
    assert_eq!(sent.counters().nacks, 40, "four packets, ten times each");
}

#[test]
fn an_m_line_comes_and_goes_while_media_flows() {
    const SCREEN: usize = 3;
    let mut pair = MediaPair::connected(1, Link::GOOD);
    talk(&mut pair, 1, 50);
    let screen = portunus_rtc::testing::video("screen", 3_000);
    pair.left
        .lines
        .push(portunus_rtc::testing::mirrored(&screen));
    pair.right.lines.push(screen);
    pair.negotiate();
    for seq in 51..101 {
        pair.send(SCREEN, SeqNo(seq), 0, &payload(SCREEN, seq));
        talk(&mut pair, seq, 1);
    }
    pair.run(TICK * 5);
    pair.right.lines[SCREEN].disabled = true;
    pair.negotiate_right();
    for seq in 101..151 {
        // The left side does not know the m-line yet.
        pair.send(SCREEN, SeqNo(seq), 0, &payload(SCREEN, seq));
        talk(&mut pair, seq, 1);
    }
    pair.left.lines[SCREEN].disabled = true;
    pair.negotiate();
    talk(&mut pair, 151, 50);
    pair.run(TICK * 5);
    for side in [&pair.left, &pair.right] {
        assert_eq!(numbers(side, VIDEO), Vec::from_iter(1..201));
        assert_eq!(numbers(side, SCREEN), Vec::from_iter(51..101));
    }
    let refused = &pair.right.refusals;
    assert_eq!(refused.len(), 50, "what the m-line is not for any more");
}

#[test]
fn a_held_stream_resumes_with_repairs() {
    let mut pair = MediaPair::connected(3, Link::GOOD);
    pair.right.echo = false;
    let lossy = Link {
        loss: 0.15,
        ..Link::GOOD
    };
    let mut next = 1;
    for _ in 0..3 {
        for side in [&mut pair.left, &mut pair.right] {
            side.lines[VIDEO].send = true;
            side.lines[VIDEO].recv = true;
        }
        pair.negotiate();
        talk(&mut pair, next, 10);
        pair.network.link = lossy;
        talk(&mut pair, next + 10, 200);
        pair.network.link = Link::GOOD;
        talk(&mut pair, next + 210, 10);
        pair.run(Duration::from_secs(1));
        next += 220;
        for side in [&mut pair.left, &mut pair.right] {
            side.lines[VIDEO].send = false;
            side.lines[VIDEO].recv = false;
        }
        pair.negotiate();
        pair.run(Duration::from_secs(2));
    }
    let mut came = numbers(&pair.right, VIDEO);
    came.sort_unstable();
    assert_eq!(came, Vec::from_iter(1..661));
    // A repair stream that starts again would repeat its numbers and the nonces of SRTP.
    assert_eq!(pair.right.refusals, []);
}
