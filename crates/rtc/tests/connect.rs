//! Connecting two transports over different networks.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_rtc::testing::{Link, Pair, Side};
use portunus_rtc::{DtlsState, TransportEvent};
use portunus_rtp::SeqNo;
use portunus_sdp::negotiated::DtlsRole;
use portunus_srtp::Profile;

fn rtp(sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 96, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 1, 2, 3, 4];
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet
}

fn exchange_media(pair: &mut Pair) {
    let plain = rtp(1);
    let mut buf = plain.clone();
    buf.resize(100, 0);
    let len = pair
        .left
        .transport
        .seal_rtp(SeqNo(1), 12, plain.len(), &mut buf)
        .unwrap();
    let selected = *pair.left.transport.selected_pair().unwrap();
    pair.deliver(selected.local, selected.remote, buf[..len].to_vec());
    assert_eq!(pair.right.packets.last(), Some(&plain));
}

#[test]
fn both_dtls_roles_connect_and_prefer_gcm() {
    for (left_role, right_role) in [
        (DtlsRole::Server, DtlsRole::Client),
        (DtlsRole::Client, DtlsRole::Server),
    ] {
        let left = Side::new("left", ([10, 0, 0, 1], 1_001).into(), true, left_role);
        let right = Side::new("right", ([10, 0, 0, 2], 1_002).into(), false, right_role);
        let mut pair = Pair::of(1, Link::GOOD, left, right);
        assert!(pair.connect(), "{pair:#?}");
        for side in [&pair.left, &pair.right] {
            assert_eq!(side.transport.profile(), Some(Profile::AeadAes128Gcm));
            assert!(side.saw(|e| *e == TransportEvent::Dtls(DtlsState::Trying)));
            assert!(side.saw(|e| matches!(e, TransportEvent::SelectedPair(_))));
            assert!(side.saw(|e| matches!(e, TransportEvent::RemoteAddress(_))));
        }
        exchange_media(&mut pair);
    }
}

#[test]
fn the_handshake_survives_loss_reordering_and_duplication() {
    for seed in 0..40 {
        let loss = 0.1 + 0.2 * (seed as f64 / 40.0);
        let mut pair = Pair::new(seed, Link::lossy(loss));
        assert!(pair.connect(), "seed {seed}, loss {loss}: {pair:#?}");
    }
}

#[test]
fn an_idle_pair_sleeps_for_seconds() {
    let mut pair = Pair::new(1, Link::GOOD);
    assert!(pair.connect());
    pair.run(Duration::from_secs(60));
    let before = pair.left.transport.counters().received;
    pair.run(Duration::from_secs(60));
    let received = pair.left.transport.counters().received - before;
    assert!(received <= 30, "{received} datagrams a minute");
    assert!(pair.left.transport.is_connected());
}
