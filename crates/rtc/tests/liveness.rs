//! Keeping a connection alive when the peer does not answer checks, like ffmpeg once it sends.
#![allow(
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_rtc::testing::{Link, MediaPair, video};
use portunus_rtc::{StreamConfig, TransportEvent};
use portunus_rtp::SeqNo;

/// Drops the checks of the controlled side: STUN with the attribute ICE-CONTROLLED.
fn without_checks_of_the_server(datagram: &[u8]) -> Vec<Vec<u8>> {
    let is_stun = datagram.first().is_some_and(|byte| *byte < 4);
    let is_lost = is_stun && datagram.windows(4).any(|bytes| bytes == [0x80, 0x29, 0, 8]);
    if is_lost {
        Vec::new()
    } else {
        vec![datagram.to_vec()]
    }
}

/// Makes a client that sends only, or receives too. Its responses to checks are lost once it is
/// connected.
fn pair(seed: u64, server_sends: bool) -> MediaPair {
    let mut line = video("v", 2_000);
    line.send = server_sends;
    let mut pair = MediaPair::of(seed, vec![line], StreamConfig::default());
    pair.connect();
    pair.network.link = Link::GOOD;
    pair.network.rewrite = without_checks_of_the_server;
    pair
}

/// Sends 10 packets a second from the client.
fn send_for(pair: &mut MediaPair, from: u64, seconds: u64) -> u64 {
    let until = from + seconds * 10;
    for seq in from..until {
        let timestamp = u32::try_from(seq * 9_000 % (1 << 32)).unwrap_or_default();
        pair.send(0, SeqNo(seq), timestamp, b"a frame");
        pair.run(Duration::from_millis(100));
    }
    until
}

fn has_failed(pair: &MediaPair) -> bool {
    let failed = |event: &TransportEvent| matches!(event, TransportEvent::Failed(_));
    pair.right.events.iter().any(failed)
}

#[test]
fn a_publisher_lives_as_long_as_its_media_comes() {
    let mut pair = pair(71, false);
    let next = send_for(&mut pair, 1, 120);
    assert!(!has_failed(&pair), "{:?}", pair.right.events);
    assert!(pair.right.arrived(0).count() > 1_190);
    pair.run(Duration::from_secs(25));
    assert!(!has_failed(&pair), "a pause is no end");
    send_for(&mut pair, next, 1);
    pair.run(Duration::from_secs(40));
    assert!(has_failed(&pair), "silence is");
}

#[test]
fn who_is_sent_media_has_to_consent_to_it() {
    let mut pair = pair(72, true);
    send_for(&mut pair, 1, 45);
    assert!(has_failed(&pair));
}
