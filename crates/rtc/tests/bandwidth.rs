//! The bandwidth estimate of a connection, over a bottleneck in the simulated network.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_rtc::bandwidth::{DataRate, Estimate, Limit};
use portunus_rtc::testing::{BottleneckLink, Link, MediaPair, audio, video};
use portunus_rtc::{Feedback, StreamConfig};
use portunus_rtp::rtcp::{Compound, Packet};
use portunus_rtp::{ExtensionMap, SeqNo};
use portunus_sdp::negotiated::NegotiatedMedia;

const VIDEO: usize = 0;
const TICK: Duration = Duration::from_millis(10);
const WANTED: DataRate = DataRate::kbps(2_000);

/// Makes a pair whose left side sends video through a bottleneck.
fn connected(seed: u64, line: NegotiatedMedia, kbps: u64) -> MediaPair {
    let mut pair = MediaPair::of(seed, vec![line], StreamConfig::default());
    pair.connect();
    limit(&mut pair, kbps);
    pair
}

fn limit(pair: &mut MediaPair, kbps: u64) {
    let right = pair.right.config.candidates[0].base;
    let link = BottleneckLink {
        delay: Link::GOOD.delay,
        ..BottleneckLink::of(DataRate::kbps(kbps))
    };
    pair.network.limit(right, link, pair.now);
}

fn estimate(pair: &MediaPair) -> Estimate {
    pair.left.connection.bandwidth().unwrap()
}

/// Sends 100 packets a second.
fn talk(pair: &mut MediaPair, seq: &mut u64, seconds: u64, bytes: usize) {
    for _ in 0..seconds * 100 {
        *seq += 1;
        pair.send(VIDEO, SeqNo(*seq), (*seq * 900) as u32, &vec![0; bytes]);
        pair.run(TICK);
    }
}

/// Makes an m-line of a peer that has only REMB.
fn receiver_measures() -> NegotiatedMedia {
    let mut line = video("v", 1_000);
    let mut extensions = ExtensionMap::default();
    for (kind, id) in line.extensions.iter() {
        if kind != portunus_rtp::ExtensionKind::TransportCc {
            extensions.set(kind, id);
        }
    }
    line.extensions = extensions;
    line.payloads[0].feedback.transport_cc = false;
    line
}

#[test]
fn padding_finds_out_what_a_link_carries_that_is_hardly_used() {
    for seed in 0..4 {
        let mut pair = connected(seed, video("v", 1_000), 3_000);
        pair.left.connection.want_bandwidth(WANTED, pair.now);
        talk(&mut pair, &mut 0, 4, 100);
        let estimate = estimate(&pair);
        assert!(estimate.rate > WANTED, "{estimate:?}");
        assert_eq!(estimate.loss, 0.0);
        pair.run(TICK * 5);
        let arrived = pair.right.arrived(VIDEO).count();
        assert_eq!(arrived, 400, "padding is not handed on");
        let retransmissions = pair.left.connection.media()[VIDEO]
            .sent()
            .unwrap()
            .counters();
        assert_eq!(
            retransmissions.retransmissions, 0,
            "nor is it a retransmission"
        );
    }
}

#[test]
fn it_is_found_out_as_well_while_nothing_is_sent() {
    let mut pair = connected(1, video("v", 1_000), 3_000);
    pair.left.connection.want_bandwidth(WANTED, pair.now);
    pair.run(Duration::from_secs(4));
    let estimate = estimate(&pair);
    assert!(estimate.rate > WANTED, "{estimate:?}");
    assert!(pair.right.arrivals.is_empty());
}

#[test]
fn probes_find_no_more_than_there_is_and_end_when_enough_is_found() {
    let mut pair = connected(1, video("v", 1_000), 800);
    pair.left.connection.want_bandwidth(WANTED, pair.now);
    talk(&mut pair, &mut 0, 20, 100);
    let found = estimate(&pair);
    assert!(
        (600_000..850_000).contains(&found.rate.as_bps()),
        "{found:?}"
    );
    let sent = |pair: &MediaPair| pair.right.connection.transport.counters().received;
    limit(&mut pair, 5_000);
    talk(&mut pair, &mut 3_000, 8, 100);
    assert!(estimate(&pair).rate > WANTED);
    let before = sent(&pair);
    talk(&mut pair, &mut 4_000, 10, 100);
    let more = sent(&pair) - before;
    assert!(more < 1_100, "{more} packets for 1000 of media");
}

#[test]
fn a_link_that_becomes_slow_is_noticed() {
    let mut pair = connected(1, video("v", 1_000), 3_000);
    pair.left.connection.want_bandwidth(WANTED, pair.now);
    let mut seq = 0;
    talk(&mut pair, &mut seq, 6, 1_000);
    assert!(estimate(&pair).rate > DataRate::kbps(1_000));
    while pair.left.connection.poll_bandwidth().is_some() {}
    limit(&mut pair, 400);
    talk(&mut pair, &mut seq, 2, 1_000);
    let estimate = pair.left.connection.poll_bandwidth().unwrap();
    assert!(estimate.rate < DataRate::kbps(500), "{estimate:?}");
    assert!(estimate.is_emptying(), "{estimate:?}");
}

#[test]
fn the_receivers_estimate_holds_where_it_is_all_there_is() {
    let mut pair = connected(1, receiver_measures(), 3_000);
    let mut seq = 0;
    talk(&mut pair, &mut seq, 1, 500);
    assert_eq!(estimate(&pair).limit, Limit::Start);
    pair.right.connection.set_bitrate(Some(700_000), pair.now);
    talk(&mut pair, &mut seq, 1, 500);
    let told = estimate(&pair);
    assert_eq!(
        (told.rate.as_bps() / 10_000, told.limit),
        (70, Limit::Receiver)
    );
    assert!(
        !pair
            .left
            .matching_feedback(|feedback| matches!(feedback, Feedback::Remb(_)))
            .is_empty()
    );
    // Padding raises the received rate, so that the receiver can raise its estimate.
    let received = |pair: &MediaPair| pair.right.connection.transport.counters().received;
    let before = received(&pair);
    pair.left.connection.want_bandwidth(WANTED, pair.now);
    talk(&mut pair, &mut seq, 4, 500);
    let more = received(&pair) - before;
    assert!(more > 600, "{more} packets for 400 of media");
}

#[test]
fn a_peer_that_measures_nothing_has_no_estimate_and_gets_no_padding() {
    let mut line = receiver_measures();
    line.payloads[0].feedback.remb = false;
    let mut pair = connected(1, line, 3_000);
    pair.left.connection.want_bandwidth(WANTED, pair.now);
    talk(&mut pair, &mut 0, 2, 500);
    assert_eq!(pair.left.connection.bandwidth(), None);
    assert_eq!(pair.left.connection.poll_bandwidth(), None);
    let twcc = |packet| matches!(packet, Ok(Packet::Twcc(_)));
    assert!(
        !pair
            .left
            .rtcp
            .iter()
            .any(|(_, compound)| Compound::new(compound).any(twcc))
    );
}

#[test]
fn feedback_on_packets_that_were_never_sent_changes_nothing() {
    use portunus_rtp::Ssrc;
    use portunus_rtp::rtcp::{TwccWriter, WritePacket};
    let mut pair = connected(1, video("v", 1_000), 3_000);
    pair.right.echo = true;
    talk(&mut pair, &mut 0, 1, 500);
    let estimate = |pair: &MediaPair| pair.right.connection.bandwidth().unwrap().rate;
    let before = estimate(&pair);
    let arrivals: Vec<(u16, Duration)> = (0..500).map(|n| (n + 30_000, TICK * n.into())).collect();
    let (writer, _) = TwccWriter::new((Ssrc(1), Ssrc(2)), 0, 29_000, &arrivals, 1_100).unwrap();
    let mut compound = [0; 1_200];
    let len = writer.write_into(&mut compound).unwrap();
    pair.send_rtcp(&compound[..len]);
    pair.run(TICK * 10);
    assert!(estimate(&pair) <= before.times(1.05));
}

#[test]
fn video_without_a_repair_stream_is_not_measured() {
    let mut line = video("v", 1_000);
    line.local_rtx_ssrc = None;
    let lines = vec![audio("a", 2_000), line];
    let mut pair = MediaPair::of(1, lines, StreamConfig::default());
    pair.connect();
    let connection = &pair.left.connection;
    assert_eq!(connection.measure(), None, "its packets have no numbers");
    assert_eq!(connection.bandwidth(), None);
}
