//! ICE: kinds of addresses, restarts, consent, and reports of failures.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtc::testing::{Link, Pair, Side, credentials};
use portunus_rtc::{
    DropReason, FailReason, IceAttempt, IceState, LocalCandidate, Received, TransportEvent,
    stun_username,
};
use portunus_sdp::negotiated::DtlsRole;

const SECOND: Duration = Duration::from_secs(1);

fn side(name: &str, addresses: &[&str], controlling: bool) -> Side {
    let role = if controlling {
        DtlsRole::Server
    } else {
        DtlsRole::Client
    };
    let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let mut side = Side::new(name, addresses[0], controlling, role);
    let host = |address: &SocketAddr| LocalCandidate::udp(*address, *address);
    side.config.candidates = addresses.iter().map(host).collect();
    Side::with(side.config, role)
}

fn failure(side: &Side) -> Option<&IceAttempt> {
    side.events.iter().find_map(|event| match event {
        TransportEvent::Failed(FailReason::Ice(failure)) => Some(failure),
        _ => None,
    })
}

fn connections(side: &Side) -> usize {
    let connected = |event: &&TransportEvent| matches!(event, TransportEvent::Connected { .. });
    side.events.iter().filter(connected).count()
}

#[test]
fn ipv4_ipv6_and_loopback_work() {
    for (left, right) in [
        (vec!["[2001:db8::1]:1000"], vec!["[2001:db8::2]:2000"]),
        (vec!["127.0.0.1:1000"], vec!["127.0.0.1:2000"]),
        (
            vec!["10.0.0.1:1000", "[2001:db8::1]:1000"],
            vec!["[2001:db8::2]:2000"],
        ),
        (
            vec!["10.0.0.1:1000", "192.168.3.4:1000"],
            vec!["10.0.0.2:2000", "[::1]:2000"],
        ),
    ] {
        let (left, right) = (side("left", &left, true), side("right", &right, false));
        let mut pair = Pair::of(1, Link::GOOD, left, right);
        assert!(pair.connect(), "{pair:#?}");
    }
}

#[test]
fn a_peer_that_hides_its_addresses_or_cannot_be_reached_first_is_found_by_its_checks() {
    let mut pair = Pair::new(1, Link::GOOD);
    let (offer, mut answer) = (pair.left.describe(), pair.right.describe());
    answer.candidates = vec![
        "candidate:1 1 udp 2113937151 7a4f3a24-c9c2-4b6b-8d6f-3b8f3e9e0001.local 5 typ host".into(),
        "candidate:2 1 tcp 1518280447 10.0.0.2 9 typ host tcptype active".into(),
    ];
    pair.right.transport.set_remote(&offer, pair.now).unwrap();
    pair.left.transport.set_remote(&answer, pair.now).unwrap();
    let connected = |pair: &Pair| pair.left.transport.is_connected();
    assert!(pair.run_until(10 * SECOND, connected), "{pair:#?}");
    assert_eq!(
        pair.left.transport.selected_pair().unwrap().remote_kind,
        "prflx"
    );
}

#[test]
fn candidates_may_trickle_in_later_and_useless_ones_are_counted() {
    let mut pair = Pair::new(1, Link::GOOD);
    let (mut offer, mut answer) = (pair.left.describe(), pair.right.describe());
    let late = std::mem::take(&mut answer.candidates);
    offer.candidates.clear();
    pair.right.transport.set_remote(&offer, pair.now).unwrap();
    pair.left.transport.set_remote(&answer, pair.now).unwrap();
    pair.run(5 * SECOND);
    assert!(!pair.left.transport.is_connected());
    let now = pair.now;
    let left = &mut pair.left.transport;
    let mdns = "candidate:1 1 udp 1 abc.local 5 typ host";
    left.add_remote_candidate(mdns, now).unwrap();
    left.add_remote_candidate("a=end-of-candidates", now)
        .unwrap();
    assert!(left.add_remote_candidate("candidate:", now).is_ok());
    assert!(
        left.add_remote_candidate("candidate:1 1 udp zero", now)
            .is_err()
    );
    left.add_remote_candidate(&late[0], now).unwrap();
    assert_eq!(left.counters().ignored_candidates, 1);
    assert!(pair.run_until(10 * SECOND, |pair| pair.left.transport.is_connected()));
}

#[test]
fn one_to_one_nat_maps_address_and_port() {
    let mut left = side("left", &["10.0.0.1:1001"], true);
    let inner: SocketAddr = "10.0.0.1:1001".parse().unwrap();
    let outer: SocketAddr = "203.0.113.1:5001".parse().unwrap();
    left.config.candidates = vec![LocalCandidate::udp(outer, inner)];
    let left = Side::with(left.config, left.role);
    let mut pair = Pair::of(
        1,
        Link::GOOD,
        left,
        side("right", &["198.51.100.2:2"], false),
    );
    pair.network.nat = vec![(inner, outer)];
    assert!(pair.connect(), "{pair:#?}");
    assert_eq!(pair.left.transport.selected_pair().unwrap().local, inner);
    assert_eq!(pair.right.transport.selected_pair().unwrap().remote, outer);
}

#[test]
fn a_lite_agent_answers_only_and_notices_silence() {
    let mut left = side("left", &["10.0.0.1:1001"], false);
    left.config.ice_lite = true;
    let left = Side::with(left.config, DtlsRole::Server);
    let mut pair = Pair::of(
        1,
        Link::GOOD,
        left,
        side("right", &["10.0.0.2:1002"], false),
    );
    pair.right = Side::with(pair.right.config.clone(), DtlsRole::Client);
    assert!(pair.connect(), "{pair:#?}");
    pair.run(120 * SECOND);
    assert!(pair.left.transport.is_connected());
    pair.network.link.loss = 1.0;
    pair.run(60 * SECOND);
    assert!(
        failure(&pair.left)
            .unwrap()
            .to_string()
            .contains("no consent")
    );
}

#[test]
fn a_peer_that_is_lite_is_found_even_by_a_server_that_is() {
    for (left_is_lite, left_role) in [
        (false, DtlsRole::Server),
        (false, DtlsRole::Client),
        (true, DtlsRole::Server),
    ] {
        let right_role = match left_role {
            DtlsRole::Server => DtlsRole::Client,
            DtlsRole::Client => DtlsRole::Server,
        };
        let mut left = side("left", &["10.0.0.1:1001"], false);
        left.config.ice_lite = left_is_lite;
        let mut right = side("right", &["10.0.0.2:1002"], false);
        right.config.ice_lite = true;
        let (left, right) = (
            Side::with(left.config, left_role),
            Side::with(right.config, right_role),
        );
        let mut pair = Pair::of(1, Link::GOOD, left, right);
        assert!(pair.connect(), "{left_is_lite} {left_role:?}: {pair:#?}");
        pair.run(120 * SECOND);
        assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
        // The role is that of the peer's view, also after a restart.
        pair.left.config.local_ice = credentials("left", 2);
        let (ice, now) = (credentials("left", 2), pair.now);
        pair.left.transport.restart_ice(ice, false, now);
        pair.negotiate();
        pair.run(120 * SECOND);
        assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
        pair.network.link.loss = 1.0;
        pair.run(60 * SECOND);
        let text = failure(&pair.left).unwrap().to_string();
        assert!(text.contains("no consent"), "{text}");
    }
}

#[test]
fn a_conflict_of_roles_is_settled() {
    let (left, right) = (
        side("left", &["10.0.0.1:1001"], true),
        side("right", &["10.0.0.2:1002"], true),
    );
    let right = Side::with(right.config, DtlsRole::Client);
    let mut pair = Pair::of(1, Link::GOOD, left, right);
    assert!(pair.connect(), "{pair:#?}");
}

#[test]
fn a_restart_finds_a_new_path_and_keeps_dtls() {
    for both in [true, false] {
        let mut pair = Pair::new(1, Link::GOOD);
        assert!(pair.connect());
        pair.run(10 * SECOND);
        let now = pair.now;
        pair.left.config.local_ice = credentials("left", 2);
        pair.left
            .transport
            .restart_ice(credentials("left", 2), true, now);
        assert_eq!(pair.left.transport.local_ufrag(), "left2");
        if both {
            pair.right.config.local_ice = credentials("right", 2);
            pair.right
                .transport
                .restart_ice(credentials("right", 2), false, now);
        }
        let before = pair.left.events.len();
        pair.negotiate();
        pair.run(10 * SECOND);
        let events = &pair.left.events[before..];
        assert!(
            events.contains(&TransportEvent::Ice(IceState::Checking)),
            "{events:?}"
        );
        assert!(
            events.contains(&TransportEvent::Ice(IceState::Completed)),
            "{events:?}"
        );
        pair.run(120 * SECOND);
        for side in [&pair.left, &pair.right] {
            assert!(side.transport.is_connected());
            assert_eq!(connections(side), 1);
        }
    }
}

#[test]
fn consent_runs_out_after_30_seconds_of_silence() {
    let mut pair = Pair::new(1, Link::GOOD);
    assert!(pair.connect());
    pair.run(20 * SECOND);
    pair.network.link.loss = 1.0;
    pair.run(20 * SECOND);
    assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
    pair.network.link.loss = 0.0;
    pair.run(20 * SECOND);
    pair.network.link.loss = 1.0;
    pair.run(40 * SECOND);
    for side in [&mut pair.left, &mut pair.right] {
        let failed = failure(side).unwrap();
        assert!(failed.was_connected);
        let text = failed.to_string();
        assert!(text.starts_with("no consent for 30 s"), "{text}");
        assert_eq!(side.transport.poll_timeout(), None);
        let from = "10.0.0.9:9".parse().unwrap();
        let received = side.transport.receive(pair.now, from, from, &mut [0, 1]);
        assert_eq!(received, Received::Dropped(DropReason::Closed));
    }
}

#[test]
fn checks_of_the_peer_are_no_consent() {
    let mut pair = Pair::new(1, Link::GOOD);
    assert!(pair.connect());
    // From now on, checks are not answered, but are still sent in both directions.
    pair.network.rewrite = |bytes| match bytes {
        [1, 1, ..] => Vec::new(),
        _ => vec![bytes.to_vec()],
    };
    pair.run(40 * SECOND);
    assert!(failure(&pair.left).is_some() && failure(&pair.right).is_some());
}

#[test]
fn a_failure_names_the_pairs_and_the_likely_cause() {
    let mut pair = Pair::new(
        1,
        Link {
            loss: 1.0,
            ..Link::GOOD
        },
    );
    pair.negotiate();
    pair.run(40 * SECOND);
    let failed = failure(&pair.left).unwrap();
    assert!(!failed.was_connected);
    let text = failed.to_string();
    for part in [
        "no working pair for 30 s",
        "10.0.0.1:1001",
        "10.0.0.2:1002 (host)",
        "firewall",
    ] {
        assert!(text.contains(part), "{text}");
    }

    // Only the packets of the right side arrive.
    let mut pair = Pair::new(1, Link::GOOD);
    pair.network.rewrite = |bytes| match stun_username(bytes) {
        Some("left1") => vec![bytes.to_vec()],
        _ => Vec::new(),
    };
    pair.negotiate();
    pair.run(40 * SECOND);
    let text = failure(&pair.left).unwrap().to_string();
    assert!(text.contains("what the server sends is lost"), "{text}");
}

#[test]
fn a_peer_whose_address_changes_is_followed_within_seconds() {
    let inner: SocketAddr = "10.0.0.2:1002".parse().unwrap();
    let outer = |port| SocketAddr::from(([203, 0, 113, 2], port));
    for left_controls in [true, false] {
        let left = side("left", &["10.0.0.1:1001"], left_controls);
        let right = side("right", &["10.0.0.2:1002"], !left_controls);
        let mut pair = Pair::of(1, Link::GOOD, left, right);
        pair.network.nat = vec![(inner, outer(5_000))];
        assert!(pair.connect(), "{pair:#?}");
        pair.run(60 * SECOND);
        for port in [6_000, 7_000, 5_000] {
            pair.network.nat = vec![(inner, outer(port))];
            let followed = |pair: &Pair| {
                pair.left
                    .transport
                    .selected_pair()
                    .is_some_and(|at| at.remote == outer(port))
            };
            let start = pair.now;
            assert!(
                pair.run_until(25 * SECOND, followed),
                "{port}: {:#?}",
                pair.left.events
            );
            // The next check of the peer comes within 5 s, and a second more shows that the old
            // address is silent.
            let took = pair.now - start;
            assert!(took <= 6 * SECOND + SECOND / 2, "{port}: {took:?}");
            pair.run(60 * SECOND);
            assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
        }
    }
}

#[test]
fn a_lite_side_follows_a_peer_whose_address_changes() {
    let inner: SocketAddr = "10.0.0.2:1002".parse().unwrap();
    let outer = |port| SocketAddr::from(([203, 0, 113, 2], port));
    let mut left = side("left", &["10.0.0.1:1001"], false);
    left.config.ice_lite = true;
    let left = Side::with(left.config, left.role);
    let right = side("right", &["10.0.0.2:1002"], true);
    let mut pair = Pair::of(1, Link::GOOD, left, right);
    pair.network.nat = vec![(inner, outer(5_000))];
    assert!(pair.connect(), "{pair:#?}");
    pair.run(60 * SECOND);
    for port in [6_000, 7_000, 5_000] {
        let took = roam(&mut pair, outer(port));
        // The peer nominates it twice, with its checks every 5 s.
        assert!(took <= 11 * SECOND, "{port}: {took:?}");
        pair.run(60 * SECOND);
        assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
    }
}

/// A message from a spare address does not mean that the peer has moved, while the selected pair
/// works.
#[test]
fn a_pair_that_works_is_not_left_for_a_spare_one() {
    for left_controls in [true, false] {
        let left = side("left", &["10.0.0.1:1001"], left_controls);
        let right = side("right", &["10.0.0.2:1002", "10.0.1.2:1002"], !left_controls);
        let mut pair = Pair::of(3, Link::GOOD, left, right);
        assert!(pair.connect(), "{pair:#?}");
        pair.run(10 * SECOND);
        pair.left.events.clear();
        pair.network.link = Link::lossy(0.1);
        pair.run(300 * SECOND);
        let left = |event: &TransportEvent| matches!(event, TransportEvent::SelectedPair(_));
        assert!(!pair.left.saw(left), "{:?}", pair.left.events);
    }
}

/// Makes a pair behind a NAT, where each port stands for a network of the right side.
fn roaming(left_controls: bool) -> (Pair, impl Fn(u16) -> SocketAddr) {
    let inner: SocketAddr = "10.0.0.2:1002".parse().unwrap();
    let outer = |port| SocketAddr::from(([203, 0, 113, 2], port));
    let left = side("left", &["10.0.0.1:1001"], left_controls);
    let mut right = side("right", &["10.0.0.2:1002"], !left_controls);
    right.config.candidates = vec![LocalCandidate::udp(outer(5_000), inner)];
    let right = Side::with(right.config, right.role);
    let mut pair = Pair::of(1, Link::GOOD, left, right);
    pair.network.nat = vec![(inner, outer(5_000))];
    assert!(pair.connect(), "{pair:#?}");
    (pair, outer)
}

/// Moves to another network. Returns the time until the left side follows.
fn roam(pair: &mut Pair, to: SocketAddr) -> Duration {
    pair.network.nat[0].1 = to;
    let start = pair.now;
    let followed = |pair: &Pair| {
        let selected = pair.left.transport.selected_pair();
        selected.is_some_and(|at| at.remote == to)
    };
    assert!(pair.run_until(40 * SECOND, followed), "{to}");
    pair.now - start
}

#[test]
fn a_signalled_address_is_given_up_as_soon_the_second_time_as_the_first() {
    for left_controls in [true, false] {
        let (mut pair, outer) = roaming(left_controls);
        pair.run(60 * SECOND);
        let kind = pair.left.transport.selected_pair().unwrap().remote_kind;
        assert_eq!(kind, "host");
        for port in [6_000, 5_000, 7_000, 5_000, 6_000, 5_000, 8_000] {
            let took = roam(&mut pair, outer(port));
            assert!(took <= 6 * SECOND + SECOND / 2, "{port}: {took:?}");
            pair.run(60 * SECOND);
            assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
        }
    }
}

#[test]
fn a_peer_may_roam_for_long() {
    for left_controls in [true, false] {
        let (mut pair, outer) = roaming(left_controls);
        for network in 0..80 {
            roam(&mut pair, outer(10_000 + network));
            pair.run(400 * SECOND);
            assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
        }
    }
}
