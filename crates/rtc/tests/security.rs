//! Authentication: which peers are accepted and refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::x509::X509;
use portunus_rtc::testing::{Link, Pair, Side};
use portunus_rtc::{
    DropReason, DtlsError, DtlsState, FailReason, Identity, Received, TransportEvent,
};
use portunus_rtp::SeqNo;
use portunus_sdp::negotiated::{DtlsRole, Fingerprint, FingerprintHash};
use portunus_srtp::OpenError;

const SECOND: Duration = Duration::from_secs(1);

/// A certificate with an RSA key and its SHA-1 fingerprint.
fn rsa_identity() -> (Identity, Fingerprint) {
    let key = PKey::from_rsa(Rsa::generate(2_048).unwrap()).unwrap();
    let mut builder = X509::builder().unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(1).unwrap())
        .unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    let certificate = builder.build();
    let digest = certificate.digest(MessageDigest::sha1()).unwrap().to_vec();
    let pem = (
        certificate.to_pem().unwrap(),
        key.private_key_to_pem_pkcs8().unwrap(),
    );
    let identity = Identity::from_pem(&pem.0, &pem.1).unwrap();
    (
        identity,
        Fingerprint {
            hash: FingerprintHash::Sha1,
            digest,
        },
    )
}

fn connected() -> Pair {
    let mut pair = Pair::new(1, Link::GOOD);
    assert!(pair.connect());
    pair
}

fn failed_by(side: &Side, error: &DtlsError) -> bool {
    side.saw(|e| *e == TransportEvent::Dtls(DtlsState::Failed))
        && side.saw(|e| *e == TransportEvent::Failed(FailReason::Dtls(error.clone())))
}

#[test]
fn peers_with_rsa_certificates_and_sha_1_fingerprints_are_welcome_in_both_roles() {
    for role in [DtlsRole::Client, DtlsRole::Server] {
        let (identity, sha1) = rsa_identity();
        let mut pair = Pair::new(1, Link::GOOD);
        let other = match role {
            DtlsRole::Client => DtlsRole::Server,
            DtlsRole::Server => DtlsRole::Client,
        };
        pair.left = Side::with(pair.left.config, other);
        pair.right.config.identity = Arc::new(identity);
        pair.right = Side::with(pair.right.config, role);
        let (offer, mut answer) = (pair.left.describe(), pair.right.describe());
        answer.fingerprints = vec![sha1];
        pair.right.transport.set_remote(&offer, pair.now).unwrap();
        pair.left.transport.set_remote(&answer, pair.now).unwrap();
        let connected =
            |pair: &Pair| pair.left.transport.is_connected() && pair.right.transport.is_connected();
        assert!(
            pair.run_until(10 * SECOND, connected),
            "{role:?}: {pair:#?}"
        );
    }
}

#[test]
fn a_certificate_that_was_not_announced_is_refused() {
    for left_role in [DtlsRole::Client, DtlsRole::Server] {
        let mut pair = Pair::new(1, Link::GOOD);
        let right_role = match left_role {
            DtlsRole::Client => DtlsRole::Server,
            DtlsRole::Server => DtlsRole::Client,
        };
        pair.left = Side::with(pair.left.config, left_role);
        pair.right = Side::with(pair.right.config, right_role);
        let (offer, mut answer) = (pair.left.describe(), pair.right.describe());
        answer.fingerprints[0].digest[7] ^= 1;
        pair.right.transport.set_remote(&offer, pair.now).unwrap();
        pair.left.transport.set_remote(&answer, pair.now).unwrap();
        pair.run(5 * SECOND);
        assert!(
            failed_by(&pair.left, &DtlsError::Fingerprint),
            "{:#?}",
            pair.left.events
        );
        assert!(!pair.left.transport.is_connected());
        assert_eq!(pair.left.transport.profile(), None);
    }
}

#[test]
fn where_there_are_sha_256_fingerprints_a_sha_1_match_is_not_enough() {
    let (identity, sha1) = rsa_identity();
    let mut pair = Pair::new(1, Link::GOOD);
    pair.right.config.identity = Arc::new(identity);
    pair.right = Side::with(pair.right.config, DtlsRole::Client);
    let (offer, mut answer) = (pair.left.describe(), pair.right.describe());
    answer.fingerprints[0].digest[0] ^= 1;
    answer.fingerprints.push(sha1);
    pair.right.transport.set_remote(&offer, pair.now).unwrap();
    pair.left.transport.set_remote(&answer, pair.now).unwrap();
    pair.run(5 * SECOND);
    assert!(failed_by(&pair.left, &DtlsError::Fingerprint));
}

#[test]
fn dtls_is_heard_only_from_where_ice_has_been() {
    let mut hello = [22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
    let stranger = "10.9.9.9:9".parse().unwrap();
    let here = "10.0.0.1:1001".parse().unwrap();
    let unverified = Received::Dropped(DropReason::UnverifiedDtls);

    let mut pair = Pair::new(1, Link::GOOD);
    let left = &mut pair.left.transport;
    assert_eq!(
        left.receive(pair.now, here, stranger, &mut hello),
        unverified
    );
    assert!(pair.connect());
    let left = &mut pair.left.transport;
    assert_eq!(
        left.receive(pair.now, here, stranger, &mut hello),
        unverified
    );
    assert_eq!(
        left.counters().dropped[DropReason::UnverifiedDtls.index()],
        2
    );
}

/// Splits the ClientHello into two datagrams, like that of a browser with post-quantum keys, and
/// renumbers the records to make room for one more.
fn split_client_hello(bytes: &[u8]) -> Vec<Vec<u8>> {
    let renumber = |record: &mut [u8], add: u64| {
        let mut number = [0; 8];
        number[2..].copy_from_slice(&record[5..11]);
        let number = (u64::from_be_bytes(number) * 2 + add).to_be_bytes();
        record[5..11].copy_from_slice(&number[2..]);
    };
    let mut bytes = bytes.to_vec();
    if !(20..=63).contains(&bytes[0]) {
        return vec![bytes];
    }
    let mut at = 0;
    while at + 13 <= bytes.len() {
        let len = usize::from(u16::from_be_bytes([bytes[at + 11], bytes[at + 12]]));
        if bytes[at + 3..at + 5] == [0, 0] {
            renumber(&mut bytes[at..at + 13], 0);
        }
        at += 13 + len;
    }
    let is_hello = bytes[0] == 22 && bytes[13] == 1;
    if !is_hello {
        return vec![bytes];
    }
    let body = &bytes[25..];
    let half = body.len() / 2;
    let fragment = |range: std::ops::Range<usize>, add: u64| {
        let mut out = bytes[..25].to_vec();
        let number = u64::from(add == 1);
        let len = range.len();
        out[10] += number as u8;
        out[11..13].copy_from_slice(&((len + 12) as u16).to_be_bytes());
        out[19..22].copy_from_slice(&(range.start as u32).to_be_bytes()[1..]);
        out[22..25].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
        out.extend(&body[range]);
        out
    };
    vec![fragment(0..half, 0), fragment(half..body.len(), 1)]
}

#[test]
fn a_client_hello_may_span_two_datagrams() {
    for link in [Link::GOOD, Link::lossy(0.2)] {
        let mut pair = Pair::new(3, link);
        pair.network.rewrite = split_client_hello;
        assert!(pair.connect(), "{pair:#?}");
    }
}

/// Returns whether a datagram starts with a handshake message of this type.
fn begins_with(bytes: &[u8], message: u8) -> bool {
    bytes[0] == 22 && bytes[13] == message
}

/// The place of a hello's random: after the record header, the message header and the version.
const RANDOM: std::ops::Range<usize> = 27..59;

/// Returns the same ClientHello with another random.
fn forged(hello: &[u8], random: u8) -> Vec<u8> {
    let mut forged = hello.to_vec();
    forged[RANDOM].fill(random);
    forged
}

#[test]
fn a_client_hello_in_the_peers_name_before_its_own_does_no_harm() {
    // The forged one replaces the first, and its answer is lost: the peer has not started.
    static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static HELLOS: AtomicU32 = AtomicU32::new(0);
    let mut pair = Pair::new(3, Link::GOOD);
    pair.network.rewrite = |bytes| {
        let mut answer = ANSWER.lock().unwrap();
        if begins_with(bytes, 1) && HELLOS.fetch_add(1, Ordering::Relaxed) == 0 {
            return vec![forged(bytes, 1)];
        }
        if begins_with(bytes, 2) && answer.is_empty() {
            answer.extend(&bytes[RANDOM]);
        }
        let is_lost = begins_with(bytes, 2) && bytes[RANDOM] == answer[..];
        Vec::from_iter((!is_lost).then(|| bytes.to_vec()))
    };
    assert!(pair.connect(), "{pair:#?}");
    assert!(HELLOS.load(Ordering::Relaxed) >= 2);
}

#[test]
fn client_hellos_in_the_peers_name_after_its_own_do_no_harm() {
    static HELLOS: AtomicU32 = AtomicU32::new(0);
    let mut pair = Pair::new(5, Link::GOOD);
    pair.network.rewrite = |bytes| match begins_with(bytes, 1) {
        true => {
            HELLOS.fetch_add(1, Ordering::Relaxed);
            vec![bytes.to_vec(), forged(bytes, 1), forged(bytes, 2)]
        }
        false => vec![bytes.to_vec()],
    };
    assert!(pair.connect(), "{pair:#?}");
    assert!(HELLOS.load(Ordering::Relaxed) >= 1);
}

#[test]
fn the_servers_last_flight_is_sent_again_when_it_got_lost() {
    static LOST: AtomicU32 = AtomicU32::new(0);
    let mut pair = Pair::new(3, Link::GOOD);
    // The server's ChangeCipherSpec and Finished are a separate datagram.
    pair.network.rewrite = |bytes| {
        let last_flight = bytes[0] == 20 && LOST.fetch_add(1, Ordering::Relaxed) < 3;
        if last_flight {
            Vec::new()
        } else {
            vec![bytes.to_vec()]
        }
    };
    assert!(pair.connect(), "{pair:#?}");
    assert!(LOST.load(Ordering::Relaxed) >= 3);
}

#[test]
fn a_handshake_that_nobody_answers_is_given_up() {
    let mut pair = Pair::new(3, Link::GOOD);
    pair.network.rewrite = |bytes| match bytes[0] {
        20..=63 => Vec::new(),
        _ => vec![bytes.to_vec()],
    };
    pair.negotiate();
    pair.run(25 * SECOND);
    let timeout = DtlsError::Timeout { seconds: 20 };
    assert!(failed_by(&pair.left, &timeout) && failed_by(&pair.right, &timeout));
}

#[test]
fn media_that_is_repeated_or_forged_is_refused() {
    let mut pair = connected();
    let mut packet = vec![0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 1, 2, 3, 4];
    let len = packet.len();
    packet.resize(100, 0);
    let len = pair
        .left
        .transport
        .seal_rtp(SeqNo(1), 12, len, &mut packet)
        .unwrap();
    packet.truncate(len);
    let at = *pair.right.transport.selected_pair().unwrap();
    let mut receive = |mut bytes: Vec<u8>| {
        pair.right
            .transport
            .receive(pair.now, at.local, at.remote, &mut bytes)
    };
    let mut forged = packet.clone();
    forged[14] ^= 1;
    let srtp = |error| Received::Dropped(DropReason::Srtp(error));
    assert_eq!(receive(forged), srtp(OpenError::Unauthenticated));
    assert!(matches!(
        receive(packet.clone()),
        Received::Rtp {
            index: SeqNo(1),
            len: 16,
            ..
        }
    ));
    assert_eq!(receive(packet), srtp(OpenError::Replayed));
    assert_eq!(
        receive(vec![0x80; 11]),
        Received::Dropped(DropReason::MalformedRtp)
    );
    assert_eq!(receive(vec![0x80, 200, 0, 0]), srtp(OpenError::Truncated));
    assert_eq!(
        receive(vec![70; 20]),
        Received::Dropped(DropReason::UnknownProtocol)
    );
    assert_eq!(
        receive(vec![0; 20]),
        Received::Dropped(DropReason::MalformedStun)
    );
}

#[test]
fn the_peer_is_told_of_the_end() {
    let mut pair = connected();
    pair.left.transport.close();
    pair.run(SECOND);
    assert!(pair.right.saw(|event| *event == TransportEvent::Closed));
    assert!(!pair.right.transport.is_connected());
    assert_eq!(pair.right.transport.poll_timeout(), None);
}

#[test]
fn damaged_datagrams_do_no_harm() {
    let mut survived = 0;
    for seed in 0..60 {
        // A forged handshake message may break a handshake, but nothing else.
        let mut pair = Pair::new(
            seed,
            Link {
                corruption: 0.5,
                ..Link::lossy(0.05)
            },
        );
        let connected = pair.connect();
        if !connected {
            continue;
        }
        pair.run(60 * SECOND);
        assert!(
            pair.left.transport.is_connected(),
            "seed {seed}: {:#?}",
            pair.left.events
        );
        assert!(
            pair.right.transport.is_connected(),
            "seed {seed}: {:#?}",
            pair.right.events
        );
        survived += 1;
    }
    assert!(survived > 15, "{survived} of 60 handshakes survived");
}
