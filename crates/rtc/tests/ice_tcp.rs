//! ICE-TCP (RFC 6544): one side listens, the other connects. The simulated network neither loses
//! nor reorders datagrams, like a connection.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtc::testing::{Link, Pair, Side, credentials};
use portunus_rtc::{
    CandidateTransport, Carrier, FailReason, IceState, LocalCandidate, Path, TransportEvent,
};
use portunus_sdp::negotiated::DtlsRole;

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 1_001);
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 2], 1_002);
const SERVER_UDP: ([u8; 4], u16) = ([10, 0, 0, 1], 3_001);
const CLIENT_UDP: ([u8; 4], u16) = ([10, 0, 0, 2], 3_002);

fn candidate(at: ([u8; 4], u16), transport: CandidateTransport) -> LocalCandidate {
    LocalCandidate {
        transport,
        ..LocalCandidate::udp(at.into(), at.into())
    }
}

/// Makes a listening server and a connecting client. The server is the controlling one if it
/// `offers`.
fn pair(offers: bool, lite: bool) -> Pair {
    let mut server = Side::new("server", SERVER.into(), offers, DtlsRole::Server);
    server.config.candidates = vec![candidate(SERVER, CandidateTransport::TcpPassive)];
    server.config.ice_lite = lite;
    let mut client = Side::new("client", CLIENT.into(), !offers, DtlsRole::Client);
    client.config.candidates = vec![candidate(CLIENT, CandidateTransport::TcpActive)];
    let left = Side::with(server.config, server.role);
    let right = Side::with(client.config, client.role);
    Pair::of(1, Link::GOOD, left, right)
}

fn path_to(client: ([u8; 4], u16)) -> Path {
    Path::tcp(SERVER.into(), client.into())
}

fn selected(side: &Side) -> Option<Path> {
    side.transport.selected_pair().map(Path::from)
}

#[test]
fn a_client_that_connects_is_found_and_used() {
    for (offers, lite) in [(true, false), (false, false), (false, true)] {
        let mut pair = pair(offers, lite);
        assert!(pair.connect(), "offers {offers}, lite {lite}");
        assert_eq!(selected(&pair.left), Some(path_to(CLIENT)));
        assert_eq!(selected(&pair.right).unwrap().carrier, Carrier::Tcp);
        let learnt = |event: &TransportEvent| matches!(event, TransportEvent::RemoteAddress(_));
        assert!(!pair.left.saw(learnt), "datagrams of UDP come from nowhere");
        // The connecting client is as expected. Other TCP candidates are not used.
        for (tcptype, ignored) in [("active", 0), ("passive", 1), ("so", 2)] {
            let text = format!("candidate:7 1 tcp 1 192.0.2.7 9 typ host tcptype {tcptype}");
            let left = &mut pair.left.transport;
            left.add_remote_candidate(&text, pair.now).unwrap();
            assert_eq!(left.counters().ignored_candidates, ignored);
        }
    }
}

#[test]
fn a_connection_outlasts_the_patience_of_consent() {
    let mut pair = pair(true, false);
    assert!(pair.connect());
    pair.run(Duration::from_secs(120));
    assert!(pair.left.transport.is_connected() && pair.right.transport.is_connected());
    assert_eq!(selected(&pair.left), Some(path_to(CLIENT)));
}

#[test]
fn a_closed_connection_is_no_way_any_more_and_another_takes_its_place() {
    for (offers, lite) in [(true, false), (false, false), (false, true)] {
        let mut pair = pair(offers, lite);
        assert!(pair.connect());
        pair.left.events.clear();
        pair.left
            .transport
            .connection_lost(path_to(CLIENT), pair.now);
        pair.flush();
        assert_eq!(selected(&pair.left), None, "at once");
        let left = |event: &TransportEvent| {
            matches!(
                event,
                TransportEvent::Ice(IceState::Disconnected | IceState::Checking)
            )
        };
        assert!(pair.left.saw(left), "offers {offers}, lite {lite}");
        // The client connects again, from another port.
        let again = ([10, 0, 0, 2], 2_002);
        pair.network.nat = vec![(SocketAddr::from(CLIENT), SocketAddr::from(again))];
        let is_back = |pair: &Pair| selected(&pair.left) == Some(path_to(again));
        assert!(
            pair.run_until(Duration::from_secs(20), is_back),
            "offers {offers}, lite {lite}"
        );
        assert!(pair.left.transport.is_connected());
    }
}

#[test]
fn without_another_connection_the_peer_is_given_up_in_time() {
    let mut pair = pair(true, false);
    assert!(pair.connect());
    pair.network.link.loss = 1.0;
    pair.left
        .transport
        .connection_lost(path_to(CLIENT), pair.now);
    let failed =
        |event: &TransportEvent| matches!(event, TransportEvent::Failed(FailReason::Ice(_)));
    assert!(!pair.run_until(Duration::from_secs(20), |pair| pair.left.saw(failed)));
    assert!(pair.run_until(Duration::from_secs(20), |pair| pair.left.saw(failed)));
}

#[test]
fn the_same_client_may_come_back_from_the_same_port() {
    let mut pair = pair(true, false);
    assert!(pair.connect());
    pair.left
        .transport
        .connection_lost(path_to(CLIENT), pair.now);
    let is_back = |pair: &Pair| selected(&pair.left) == Some(path_to(CLIENT));
    assert!(pair.run_until(Duration::from_secs(20), is_back));
}

/// Makes a pair with UDP on both sides too.
fn pair_with_udp(offers: bool) -> Pair {
    let mut pair = pair(offers, false);
    let mut left = pair.left.config.clone();
    let mut right = pair.right.config.clone();
    for (config, udp) in [(&mut left, SERVER_UDP), (&mut right, CLIENT_UDP)] {
        let candidate = candidate(udp, CandidateTransport::Udp);
        config.candidates.insert(0, candidate);
    }
    pair.left = Side::with(left, DtlsRole::Server);
    pair.right = Side::with(right, DtlsRole::Client);
    assert!(pair.connect());
    pair.run(Duration::from_secs(3));
    assert!(both_by(Carrier::Udp)(&pair));
    pair
}

fn both_by(carrier: Carrier) -> impl Fn(&Pair) -> bool {
    let is_by = move |side: &Side| selected(side).is_some_and(|path| path.carrier == carrier);
    move |pair| is_by(&pair.left) && is_by(&pair.right)
}

/// Blocks all UDP datagrams from now on.
fn block_udp(pair: &mut Pair) {
    let hidden = |at: ([u8; 4], u16)| (at.into(), ([192, 0, 2, 9], 9).into());
    pair.network.nat = vec![hidden(SERVER_UDP), hidden(CLIENT_UDP)];
}

#[test]
fn tcp_takes_over_from_udp_and_gives_back() {
    for offers in [true, false] {
        let mut pair = pair_with_udp(offers);
        block_udp(&mut pair);
        let minute = Duration::from_secs(60);
        assert!(pair.run_until(minute, both_by(Carrier::Tcp)), "{offers}");
        pair.network.nat.clear();
        assert!(pair.run_until(minute, both_by(Carrier::Udp)), "{offers}");
        // The end of an unused connection has no other effect.
        pair.left.events.clear();
        let now = pair.now;
        pair.left.transport.connection_lost(path_to(CLIENT), now);
        pair.run(Duration::from_secs(60));
        assert!(both_by(Carrier::Udp)(&pair) && pair.left.transport.is_connected());
        let left =
            |event: &TransportEvent| matches!(event, TransportEvent::Ice(IceState::Disconnected));
        assert!(!pair.left.saw(left));
    }
}

#[test]
fn a_connection_that_ends_gives_way_to_udp_at_once() {
    for offers in [true, false] {
        let mut pair = pair_with_udp(offers);
        block_udp(&mut pair);
        let minute = Duration::from_secs(60);
        assert!(pair.run_until(minute, both_by(Carrier::Tcp)), "{offers}");
        pair.network.nat.clear();
        let (now, right) = (pair.now, &mut pair.right.transport);
        pair.left.transport.connection_lost(path_to(CLIENT), now);
        right.connection_lost(Path::tcp(CLIENT.into(), SERVER.into()), now);
        let soon = Duration::from_secs(10);
        assert!(pair.run_until(soon, both_by(Carrier::Udp)), "{offers}");
    }
}

#[test]
fn ice_restarts_by_a_connection_anew() {
    for offers in [true, false] {
        let mut pair = pair(offers, false);
        assert!(pair.connect());
        let again = ([10, 0, 0, 2], 2_002);
        pair.network.nat = vec![(SocketAddr::from(CLIENT), SocketAddr::from(again))];
        let now = pair.now;
        for (side, name) in [(&mut pair.left, "server"), (&mut pair.right, "client")] {
            side.config.local_ice = credentials(name, 2);
            let ice = side.config.local_ice.clone();
            side.transport
                .restart_ice(ice, (name == "server") == offers, now);
        }
        assert_eq!(selected(&pair.left), Some(path_to(CLIENT)), "until then");
        pair.negotiate();
        let is_new = |pair: &Pair| selected(&pair.left) == Some(path_to(again));
        assert!(pair.run_until(Duration::from_secs(5), is_new), "{offers}");
        pair.left
            .transport
            .connection_lost(path_to(CLIENT), pair.now);
        pair.run(Duration::from_secs(40));
        assert!(is_new(&pair) && pair.left.transport.is_connected());
    }
}
