//! A peer that knows the password and still sends nonsense, and the limits of the state that it can
//! cause.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod address_changes;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use portunus_sdp::negotiated::{DtlsRole, IceCredentials, RemoteTransport};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Ice, LocalCandidate, MAX_LOCAL_CANDIDATES, StunOutcome, sources};
use crate::{CandidateTransport, Carrier, Path};

const PASSWORD: &str = "a password of twenty-two";

fn here() -> SocketAddr {
    ([10, 0, 0, 1], 1_000).into()
}

fn ice(controlling: bool, lite: bool, now: Instant) -> Ice {
    let mut ice = alone(controlling, lite);
    ice.set_remote(&remote(), now).unwrap();
    ice
}

/// Makes an agent that does not know the remote side.
fn alone(controlling: bool, lite: bool) -> Ice {
    let local = IceCredentials {
        ufrag: "mine".into(),
        pwd: PASSWORD.into(),
    };
    let candidates = [LocalCandidate::udp(here(), here())];
    Ice::new(local, &candidates, controlling, lite, 5)
}

fn remote() -> RemoteTransport {
    RemoteTransport {
        ice: IceCredentials {
            ufrag: "your".into(),
            pwd: PASSWORD.into(),
        },
        ice_lite: false,
        fingerprints: Vec::new(),
        dtls_role: DtlsRole::Client,
        candidates: Vec::new(),
    }
}

/// Makes a STUN message with authentic integrity.
fn message(kind: u16, transaction: [u8; 12], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0x21, 0x12, 0xA4, 0x42]);
    bytes.extend(transaction);
    for (attribute, value) in attributes {
        bytes.extend(attribute.to_be_bytes());
        bytes.extend((value.len() as u16).to_be_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let len = (bytes.len() - 20 + 24) as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, PASSWORD.as_bytes());
    let sum = hmac::sign(&key, &bytes);
    bytes.extend([0, 8, 0, 20]);
    bytes.extend(sum.as_ref());
    bytes
}

fn request(transaction: [u8; 12]) -> Vec<u8> {
    let attributes = [
        (0x0006, b"mine:your".to_vec()),
        (0x0024, 1_853_824_767_u32.to_be_bytes().to_vec()),
        (0x802A, 9_u64.to_be_bytes().to_vec()),
    ];
    message(1, transaction, &attributes)
}

/// Makes the response to a check of ours from [`here`].
fn answer(check: &[u8]) -> Vec<u8> {
    let [a, b, c, d] = [10, 0, 0, 1];
    let [high, low] = 1_000_u16.to_be_bytes();
    let mapped = vec![
        0,
        1,
        high ^ 0x21,
        low ^ 0x12,
        a ^ 0x21,
        b ^ 0x12,
        c ^ 0xA4,
        d ^ 0x42,
    ];
    let transaction = check[8..20].try_into().unwrap();
    message(0x0101, transaction, &[(0x0020, mapped)])
}

#[test]
fn an_answer_from_elsewhere_than_its_check_went_to_verifies_nothing() {
    let now = Instant::now();
    let mut ice = ice(true, false, now);
    let there: SocketAddr = ([10, 0, 0, 2], 7).into();
    let elsewhere: SocketAddr = ([10, 0, 0, 3], 7).into();
    ice.add_remote_candidate("candidate:1 1 udp 2113937151 10.0.0.2 7 typ host")
        .unwrap();
    ice.handle_timeout(now);
    let check = ice.poll_transmit().unwrap();
    assert_eq!(check.path.remote, there);
    let answer = answer(&check.bytes);
    let refused = ice.receive(now, Path::udp(here(), elsewhere), &answer);
    assert_eq!(refused, StunOutcome::Refused);
    assert!(
        !ice.is_verified(Path::udp(here(), there))
            && !ice.is_verified(Path::udp(here(), elsewhere))
    );
    assert!(!ice.is_source(Path::udp(here(), elsewhere)));
    let accepted = ice.receive(now, Path::udp(here(), there), &answer);
    assert_eq!(accepted, StunOutcome::Accepted);
    assert!(ice.is_verified(Path::udp(here(), there)) && ice.selected().is_some());
}

#[test]
fn candidates_that_are_named_again_take_no_place_from_others() {
    let now = Instant::now();
    let mut ice = ice(true, false, now);
    let line = |n: u16| format!("candidate:{n} 1 udp 2113937151 10.0.0.2 {n} typ host");
    let mut described = remote();
    described.candidates = (1..=8).map(line).collect();
    for _ in 0..10 {
        ice.set_remote(&described, now).unwrap();
    }
    assert_eq!(ice.agent.remote_candidates().count(), 8);
    ice.add_remote_candidate(&line(9)).unwrap();
    assert_eq!(ice.agent.remote_candidates().count(), 9);
    // It belongs to another session, which may become this one later.
    let text = format!("{} ufrag other", line(10));
    assert!(ice.add_remote_candidate(&text).unwrap().is_some());
    ice.add_remote_candidate(&line(10)).unwrap();
    assert_eq!(ice.agent.remote_candidates().count(), 10);
}

#[test]
fn nonsense_with_authentic_integrity_does_no_harm() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut accepted = 0;
    for round in 0..2_000 {
        let mut now = Instant::now();
        let mut ice = ice(round % 2 == 0, round % 3 == 0, now);
        let mut transactions = vec![[0; 12]];
        for _ in 0..20 {
            now += Duration::from_millis(rng.random_range(0..3_000));
            let from: SocketAddr = ([10, 0, 0, 2], rng.random_range(0..4)).into();
            let mut attributes = Vec::new();
            if rng.random_bool(0.9) {
                attributes.push((0x0006, b"mine:your".to_vec()));
            }
            if rng.random_bool(0.9) {
                attributes.push((0x0024, rng.random::<u32>().to_be_bytes().to_vec()));
            }
            for _ in 0..rng.random_range(0..4) {
                let kinds = [
                    0x0009, 0x0020, 0x0025, 0x8029, 0x802A, 0x8028, 0xC057, 0x0012,
                ];
                let kind = kinds[rng.random_range(0..kinds.len())];
                let value = (0..rng.random_range(0..24)).map(|_| rng.random()).collect();
                attributes.push((kind, value));
            }
            let transaction = match rng.random_bool(0.5) {
                true => transactions[rng.random_range(0..transactions.len())],
                false => rng.random(),
            };
            let kind = [0x0001, 0x0101, 0x0111, 0x0011][rng.random_range(0..4)];
            let bytes = message(kind, transaction, &attributes);
            let outcome = ice.receive(now, Path::udp(here(), from), &bytes);
            accepted += u32::from(outcome == StunOutcome::Accepted);
            while let Some(datagram) = ice.poll_transmit() {
                transactions.push(datagram.bytes[8..20].try_into().unwrap());
            }
            ice.handle_timeout(now);
            while ice.poll_event().is_some() {}
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}

#[test]
fn the_number_of_addresses_is_bounded() {
    let now = Instant::now();
    let mut ice = ice(false, false, now);
    let mut accepted = 0;
    for n in 0..1_000_u16 {
        let from = ([10, 0, 0, 2], 1 + n).into();
        let mut transaction = [0; 12];
        transaction[..2].copy_from_slice(&n.to_be_bytes());
        let outcome = ice.receive(now, Path::udp(here(), from), &request(transaction));
        accepted += usize::from(outcome == StunOutcome::Accepted);
    }
    assert_eq!(accepted, sources::MOST);
}

/// A peer like Firefox with mDNS candidates: it checks each pair once, often before its answer is
/// here, and waits to be nominated.
#[test]
fn who_checks_before_its_answer_comes_is_checked_in_turn() {
    for checks in [1, 2, 200] {
        let mut now = Instant::now();
        let mut ice = alone(true, false);
        let from: SocketAddr = ([10, 0, 0, 2], 7).into();
        for n in 0..checks {
            assert_eq!(
                ice.receive(now, Path::udp(here(), from), &request([n; 12])),
                StunOutcome::Accepted
            );
        }
        now += Duration::from_millis(80);
        ice.set_remote(&remote(), now).unwrap();
        let mut asked = false;
        for _ in 0..20 {
            while let Some(datagram) = ice.poll_transmit() {
                asked |= datagram.path.remote == from && datagram.bytes.starts_with(&[0, 1]);
            }
            let Some(at) = ice
                .poll_timeout()
                .filter(|at| *at < now + Duration::from_secs(1))
            else {
                break;
            };
            now = now.max(at);
            ice.handle_timeout(now);
        }
        assert!(asked, "after {checks} checks");
    }
}

#[test]
fn a_check_that_is_answered_again_and_again_teaches_few_addresses() {
    let now = Instant::now();
    let mut ice = ice(false, false, now);
    let from: SocketAddr = ([10, 0, 0, 2], 7).into();
    ice.receive(now, Path::udp(here(), from), &request([9; 12]));
    ice.handle_timeout(now + Duration::from_millis(100));
    let mut sent = std::iter::from_fn(|| ice.poll_transmit());
    let check = sent.find(|datagram| datagram.bytes[0] == 0 && datagram.bytes[1] == 1);
    let transaction: [u8; 12] = check.unwrap().bytes[8..20].try_into().unwrap();
    let mut accepted = 0;
    for n in 0..10_000_u16 {
        // Each response has another XOR-MAPPED-ADDRESS.
        let [high, low] = n.to_be_bytes();
        let mapped = vec![0, 1, high, low, 1, 2, 3, 4];
        let answer = message(0x0101, transaction, &[(0x0020, mapped)]);
        let outcome = ice.receive(now, Path::udp(here(), from), &answer);
        accepted += usize::from(outcome == StunOutcome::Accepted);
    }
    assert!(accepted > 1, "{accepted}");
    let known = ice.agent.local_candidates().count();
    assert!(known <= MAX_LOCAL_CANDIDATES + 1, "{known}");
}

#[test]
fn the_same_addresses_by_tcp_are_another_path() {
    let now = Instant::now();
    let mut udp_only = ice(false, false, now);
    let from: SocketAddr = ([10, 0, 0, 2], 7).into();
    let (udp, tcp) = (Path::udp(here(), from), Path::tcp(here(), from));
    let candidate = LocalCandidate::udp(here(), here());
    let both = [
        candidate,
        LocalCandidate {
            transport: CandidateTransport::TcpPassive,
            ..candidate
        },
    ];
    let local = IceCredentials {
        ufrag: "mine".into(),
        pwd: PASSWORD.into(),
    };
    let outcome = udp_only.receive(now, tcp, &request([1; 12]));
    assert_eq!(outcome, StunOutcome::Refused);
    let mut ice = Ice::new(local, &both, false, false, 5);
    ice.set_remote(&remote(), now).unwrap();
    for (n, (path, other)) in [(tcp, udp), (udp, tcp)].into_iter().enumerate() {
        let outcome = ice.receive(now, path, &request([n as u8; 12]));
        assert_eq!(outcome, StunOutcome::Accepted);
        assert!(ice.is_source(path));
        assert_eq!(ice.is_source(other), n == 1);
        let mut sent = 0;
        while let Some(datagram) = ice.poll_transmit() {
            // The response comes at once, then our own checks to all addresses that were heard.
            assert!(n == 1 || datagram.path == path, "{datagram:?}");
            sent += usize::from(datagram.path == path);
        }
        assert!(sent > 0);
    }
    // Only the TCP path ends.
    ice.lose(tcp, now);
    let mut candidates = ice.agent.remote_candidates();
    assert!(candidates.all(|candidate| candidate.proto() == Carrier::Udp.into()));
}
