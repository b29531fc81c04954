//! Reports, caps and transport-wide feedback between two connections.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portunus_rtc::testing::{Link, MediaPair, MediaSide, audio, video};
use portunus_rtc::{Feedback, StreamConfig};
use portunus_rtp::SeqNo;
use portunus_rtp::rtcp::{Compound, Packet, ReportBlock};

const AUDIO: usize = MediaPair::AUDIO;
const VIDEO: usize = MediaPair::VIDEO;
const TICK: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

/// Sends 100 packets of video and of audio a second.
fn talk(pair: &mut MediaPair, first: u64, packets: u64) {
    for seq in first..first + packets {
        pair.send(VIDEO, SeqNo(seq), (seq * 900) as u32, &[0; 200]);
        pair.send(AUDIO, SeqNo(seq), (seq * 480) as u32, &[0; 50]);
        pair.run(TICK);
    }
}

/// Returns the received report blocks with their arrival times.
fn blocks(side: &MediaSide, ssrc: u32) -> Vec<(Instant, ReportBlock)> {
    let mut blocks = Vec::new();
    for (at, compound) in &side.rtcp {
        for packet in Compound::new(compound) {
            let found: Vec<ReportBlock> = match packet.unwrap() {
                Packet::SenderReport(report) => report.blocks().collect(),
                Packet::ReceiverReport(report) => report.blocks().collect(),
                _ => continue,
            };
            let ours = found.into_iter().filter(|block| block.ssrc.0 == ssrc);
            blocks.extend(ours.map(|block| (*at, block)));
        }
    }
    blocks
}

#[test]
fn both_sides_measure_the_round_trip() {
    for delay in [5, 40, 150] {
        let delay = Duration::from_millis(delay);
        let link = Link {
            delay,
            ..Link::GOOD
        };
        let mut pair = MediaPair::connected(1, link);
        talk(&mut pair, 1, 500);
        for side in [&pair.left, &pair.right] {
            for media in [AUDIO, VIDEO] {
                let sent = side.connection.media()[media].sent().unwrap();
                let measured = sent.round_trip().unwrap();
                let error = measured.abs_diff(2 * delay);
                assert!(error < Duration::from_millis(2), "{measured:?}");
            }
        }
    }
}

#[test]
fn reports_tell_the_losses() {
    for seed in 0..6 {
        let mut pair = MediaPair::connected(seed, Link::GOOD);
        pair.right.echo = false;
        talk(&mut pair, 1, 100);
        pair.network.link.loss = 0.25;
        talk(&mut pair, 101, 1_000);
        pair.network.link.loss = 0.0;
        talk(&mut pair, 1_101, 300);
        pair.run(2 * SECOND);
        let arrived = pair.right.arrived(AUDIO).count() as u64;
        let sent = pair.left.connection.media()[AUDIO].sent().unwrap();
        assert_eq!(sent.counters().lost, 1_400 - arrived, "seed {seed}");
        let ssrc = pair.left.lines[AUDIO].local_ssrc.0;
        let blocks = blocks(&pair.left, ssrc);
        let last = blocks.last().unwrap().1;
        assert_eq!(last.fraction_lost, 0, "seed {seed}");
        assert!(last.highest_sequence > 1_290 && last.highest_sequence <= 1_400);
        let worst = blocks.iter().map(|(_, block)| block.fraction_lost).max();
        let worst = f64::from(worst.unwrap()) / 256.0;
        assert!((0.2..0.5).contains(&worst), "seed {seed}: {worst}");
        assert!(
            last.jitter < 48,
            "a steady stream has less than a millisecond"
        );

        let received = pair.right.connection.media()[AUDIO].received().next();
        let counters = received.unwrap().unwrap().counters();
        assert_eq!(
            (counters.packets, counters.lost),
            (arrived, 1_400 - arrived)
        );
    }
}

#[test]
fn reports_tell_the_jitter() {
    let link = Link {
        jitter: Duration::from_millis(8),
        ..Link::GOOD
    };
    let mut pair = MediaPair::connected(3, link);
    talk(&mut pair, 1, 500);
    let sent = pair.left.connection.media()[AUDIO].sent().unwrap();
    // The mean difference of two uniform distributions of width 8 ms is a third of it.
    let jitter = f64::from(sent.remote_jitter()) / 48.0;
    assert!((1.5..4.5).contains(&jitter), "{jitter} ms");
}

#[test]
fn sender_reports_tell_the_clock_of_the_stream() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    let start = pair.now;
    talk(&mut pair, 1, 400);
    for (media, rate) in [(AUDIO, 48_000), (VIDEO, 90_000)] {
        let ours =
            |f: &Feedback| matches!(f, Feedback::SenderReport { media: m, .. } if *m == media);
        let reports = pair.right.matching_feedback(ours);
        assert!((3..=5).contains(&reports.len()), "{}", reports.len());
        for (at, report) in reports {
            let Feedback::SenderReport { clock, .. } = report else {
                unreachable!()
            };
            assert_eq!(clock.at, at);
            let sent = at - pair.network.link.delay - start;
            // At the start, the first packet has the timestamp of one tick.
            let ticks = ((sent + TICK).as_micros() * rate / 1_000_000) as u32;
            assert!(clock.timestamp.abs_diff(ticks) < 90, "{clock:?}, {ticks}");
        }
    }
}

#[test]
fn a_sender_of_many_streams_reports_on_all_of_them() {
    let lines = (0..70).map(|n| match n % 2 {
        0 => audio(&n.to_string(), 1_000 + 10 * n),
        _ => video(&n.to_string(), 1_000 + 10 * n),
    });
    let mut pair = MediaPair::of(1, lines.collect(), StreamConfig::default());
    pair.connect();
    for seq in 1..300 {
        for media in 0..70 {
            pair.send(media, SeqNo(seq), 0, &[0; 20]);
        }
        pair.run(TICK);
    }
    for media in 0..70 {
        let ours =
            |f: &Feedback| matches!(f, Feedback::SenderReport { media: m, .. } if *m == media);
        let reports = pair.right.matching_feedback(ours).len();
        // The number of SSRCs is limited.
        assert!(
            reports == if media < 64 { 2 } else { 0 },
            "{media}: {reports}"
        );
    }
    for (_, compound) in &pair.right.rtcp {
        assert!(compound.len() <= 1_100);
    }
}

#[test]
fn a_cap_is_told_at_once_and_each_second() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    talk(&mut pair, 1, 130);
    let told = |pair: &MediaPair, bitrate| {
        pair.left
            .matching_feedback(|f| *f == Feedback::Remb(bitrate))
            .len()
    };
    pair.right.connection.set_bitrate(Some(500_000), pair.now);
    pair.run(Duration::from_millis(11));
    assert_eq!(told(&pair, 500_000), 1);
    talk(&mut pair, 131, 500);
    assert_eq!(told(&pair, 500_000), 6);
    pair.right.connection.set_bitrate(None, pair.now);
    talk(&mut pair, 631, 300);
    assert_eq!(told(&pair, 500_000), 6);
    assert_eq!(told(&pair, 1 << 30), 1, "lifted once");
    pair.right.connection.set_bitrate(None, pair.now);
    talk(&mut pair, 931, 130);
    assert_eq!(told(&pair, 1 << 30), 1, "there is none any more");
}

#[test]
fn a_cap_set_before_there_is_media_is_told_with_the_first_packet() {
    let lines = vec![audio("a", 1_000), video("v", 2_000)];
    let mut pair = MediaPair::of(1, lines, StreamConfig::default());
    pair.right.connection.set_bitrate(Some(64_000), pair.now);
    let due = pair.right.connection.poll_timeout();
    assert!(due.is_none_or(|at| at > pair.now), "nothing can leave yet");
    pair.connect();
    pair.run(5 * SECOND);
    assert!(pair.left.rtcp.is_empty());
    talk(&mut pair, 1, 4);
    let caps = pair
        .left
        .matching_feedback(|f| *f == Feedback::Remb(64_000));
    assert_eq!(caps.len(), 1);
}

/// Returns the last transport-wide feedback on each packet: its arrival on the receiver's clock.
fn transport_feedback(side: &MediaSide) -> BTreeMap<u16, Option<Duration>> {
    let mut told = BTreeMap::new();
    for (_, compound) in &side.rtcp {
        for packet in Compound::new(compound) {
            if let Packet::Twcc(feedback) = packet.unwrap() {
                for status in feedback.statuses() {
                    let known = told.entry(status.sequence).or_insert(None);
                    assert!(
                        known.is_none() || status.arrival.is_some(),
                        "no longer there"
                    );
                    *known = status.arrival;
                }
            }
        }
    }
    told
}

#[test]
fn transport_wide_feedback_covers_all_packets_and_marks_the_lost() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    pair.right.echo = false;
    let mut sent = BTreeMap::new();
    let start = pair.now;
    for seq in 0..1_000 {
        let number = if seq % 7 == 3 || (400..480).contains(&seq) {
            // It takes a number and is lost.
            (pair.left.connection.next_transport_seq(), None)
        } else {
            let next = sent.last_key_value().map_or(0, |(last, _)| last + 1);
            pair.send(AUDIO, SeqNo(seq), (seq * 480) as u32, &[0; 50]);
            (next, Some(pair.now - start))
        };
        sent.insert(number.0, number.1);
        // Bursts, and pauses longer than a small delta holds.
        let pause = [0, 1, 7, 100][seq as usize % 4];
        pair.run(Duration::from_millis(pause));
    }
    pair.run(SECOND);
    let told = transport_feedback(&pair.left);
    let last = *sent.iter().rev().find(|(_, at)| at.is_some()).unwrap().0;
    let mut offset = None;
    for (seq, sent) in sent.range(..=last) {
        let arrival = told.get(seq).unwrap_or_else(|| panic!("{seq} is not told"));
        assert_eq!(arrival.is_some(), sent.is_some(), "{seq}");
        if let (Some(arrival), Some(sent)) = (arrival, sent) {
            // All have the same delay. Feedback has units of 250 µs.
            let ahead = arrival.as_micros() as i64 - sent.as_micros() as i64;
            let expected = *offset.get_or_insert(ahead);
            assert!(
                (ahead - expected).abs() <= 500,
                "{seq}: {ahead}, {expected}"
            );
        }
    }
}

#[test]
fn transport_wide_feedback_survives_reordering() {
    for seed in 0..5 {
        let link = Link {
            jitter: Duration::from_millis(60),
            duplication: 0.1,
            ..Link::GOOD
        };
        let mut pair = MediaPair::connected(seed, link);
        pair.right.echo = false;
        talk(&mut pair, 1, 500);
        pair.run(SECOND);
        let told = transport_feedback(&pair.left);
        let missing: Vec<_> = told.iter().filter(|(_, at)| at.is_none()).collect();
        assert!(missing.is_empty(), "seed {seed}: {missing:?}");
        assert!(told.len() >= 1_000, "seed {seed}: {}", told.len());
    }
}

#[test]
fn silence_is_told_once_and_its_end_too() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    pair.right.echo = false;
    talk(&mut pair, 1, 200);
    pair.run(5 * SECOND);
    talk(&mut pair, 201, 50);
    for media in [AUDIO, VIDEO] {
        let ours = |f: &Feedback| matches!(f, Feedback::Receiving { media: m, .. } if *m == media);
        let told: Vec<bool> = pair
            .right
            .matching_feedback(ours)
            .iter()
            .map(|(_, f)| matches!(f, Feedback::Receiving { receiving, .. } if *receiving))
            .collect();
        assert_eq!(told, [true, false, true]);
    }
    let silent = pair.right.matching_feedback(|f| {
        matches!(
            f,
            Feedback::Receiving {
                receiving: false,
                ..
            }
        )
    });
    let last = pair.right.arrivals.iter().rev().nth(100).unwrap().at;
    for (at, _) in silent {
        let after = at - last;
        assert!(after >= SECOND && after <= 2 * SECOND, "{after:?}");
    }
}

#[test]
fn a_slow_link_is_told_on_both_sides() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    pair.right.echo = false;
    talk(&mut pair, 1, 300);
    let slow = |f: &Feedback| matches!(f, Feedback::SlowLink { .. });
    assert!(
        pair.left.matching_feedback(slow).is_empty()
            && pair.right.matching_feedback(slow).is_empty()
    );
    pair.network.link.loss = 0.3;
    talk(&mut pair, 301, 300);
    for (side, up) in [(&pair.left, false), (&pair.right, true)] {
        let told = side.matching_feedback(|f| {
            matches!(f, Feedback::SlowLink { media: AUDIO, uplink, lost } if *uplink == up && *lost >= 4)
        });
        assert!((1..=4).contains(&told.len()), "{told:?}");
    }
}

#[test]
fn an_idle_connection_wakes_for_ice_only() {
    for no_media in [Some(SECOND), None] {
        let streams = StreamConfig {
            no_media,
            ..StreamConfig::default()
        };
        let lines = vec![audio("a", 1_000), video("v", 2_000)];
        let mut pair = MediaPair::of(1, lines, streams);
        pair.right.echo = true;
        pair.connect();
        talk(&mut pair, 1, 200);
        pair.right.connection.set_bitrate(Some(500_000), pair.now);
        pair.run(10 * SECOND);
        let (end, mut wakes) = (pair.now + 60 * SECOND, 0);
        let quiet = pair.left.rtcp.len();
        while pair.now < end {
            let connection = &pair.right.connection;
            let due = connection.poll_timeout();
            assert_eq!(due, connection.transport.poll_timeout(), "only ICE goes on");
            let wait = due.unwrap().saturating_duration_since(pair.now);
            pair.run(wait + Duration::from_millis(1));
            wakes += 1;
        }
        // Once a second, and at each connectivity check.
        assert!(wakes <= 80, "{wakes} times a minute");
        assert_eq!(pair.left.rtcp.len(), quiet);
    }
}

#[test]
fn a_connection_that_has_ended_waits_for_nothing() {
    let mut pair = MediaPair::connected(1, Link::lossy(0.2));
    talk(&mut pair, 1, 100);
    let connection = &mut pair.right.connection;
    connection.set_bitrate(Some(1), pair.now);
    connection.request_keyframe(VIDEO, 0, pair.now);
    connection.transport.close();
    pair.run(SECOND);
    assert_eq!(pair.right.connection.poll_timeout(), None);
    let mut buf = [0; 1_500];
    let left = pair.right.connection.poll_transmit(pair.now, &mut buf);
    assert_eq!(left, None);
}
