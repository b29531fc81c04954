//! An observer of a connection sees its decrypted packets and statistics without disturbing it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_rtc::testing::{Link, MediaPair, audio, data, video};
use portunus_rtc::{
    Direction, PacketObserver, PairProgress, Path, Protocol, StreamConfig, TransportError,
};
use portunus_rtp::SeqNo;
use portunus_sdp::negotiated::DtlsRole;

const AUDIO: usize = MediaPair::AUDIO;
const TICK: Duration = Duration::from_millis(20);

/// The packets passed to an observer.
type Packets = Vec<(Direction, Path, Vec<u8>)>;

#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Packets>>);

impl PacketObserver for Seen {
    fn packet(&self, direction: Direction, path: Path, packet: [&[u8]; 2]) {
        self.0
            .lock()
            .unwrap()
            .push((direction, path, packet.concat()));
    }
}

impl Seen {
    /// Counts the packets of a direction and a protocol that end with this payload.
    fn count(&self, way: Direction, protocol: Protocol, end: &[u8]) -> usize {
        let seen = self.0.lock().unwrap();
        let seen = seen.iter().filter(|(direction, _, packet)| {
            *direction == way && Protocol::of(packet) == Some(protocol) && packet.ends_with(end)
        });
        seen.count()
    }
}

fn talk(pair: &mut MediaPair, first: u64, packets: u64) {
    for seq in first..first + packets {
        pair.send(AUDIO, SeqNo(seq), (seq * 960) as u32, b"in the clear");
        pair.run(TICK);
    }
    // The last packet is on its way.
    pair.run(10 * TICK);
}

#[test]
fn an_observer_sees_what_comes_and_leaves_in_the_clear_for_as_long_as_it_is_there() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    talk(&mut pair, 1, 10);
    let seen = Seen::default();
    let before = pair
        .right
        .connection
        .transport
        .observe(Some(Box::new(seen.clone())));
    assert!(before.is_none());
    talk(&mut pair, 11, 100);
    let (came, left) = (Direction::Incoming, Direction::Outgoing);
    for way in [came, left] {
        assert_eq!(seen.count(way, Protocol::Rtp, b"in the clear"), 100);
        assert!(seen.count(way, Protocol::Rtcp, b"") >= 1, "{way:?}");
    }
    let path = seen.0.lock().unwrap()[0].1;
    assert_eq!(path.local, ([10, 0, 0, 2], 1_002).into());
    assert_eq!(path.remote, ([10, 0, 0, 1], 1_001).into());
    let gone = pair.right.connection.transport.observe(None);
    assert!(gone.is_some());
    talk(&mut pair, 111, 10);
    assert_eq!(seen.count(came, Protocol::Rtp, b""), 100);
    // No packet is missing or refused.
    assert_eq!(pair.left.arrived(AUDIO).count(), 120);
    assert!(pair.right.refusals.is_empty(), "{:?}", pair.right.refusals);
}

#[test]
fn who_is_observed_from_the_start_connects_as_usual() {
    let lines = vec![audio("a", 1_000), video("v", 2_000), data("d")];
    let mut pair = MediaPair::of(1, lines, StreamConfig::default());
    pair.right.echo = true;
    let seen = Seen::default();
    let transport = &mut pair.right.connection.transport;
    transport.observe(Some(Box::new(seen.clone())));
    let refused = transport.seal_rtcp(8, &mut [0; 100]);
    assert_eq!(refused, Err(TransportError::NoKeys));
    pair.connect();
    assert!(pair.right.connection.transport.profile().is_some());
    talk(&mut pair, 1, 10);
    assert_eq!(
        seen.count(Direction::Incoming, Protocol::Rtp, b"in the clear"),
        10
    );
    assert_eq!(pair.left.arrived(AUDIO).count(), 10);
    pair.right.connection.transport.close();
    assert!(pair.right.connection.transport.profile().is_none());
}

#[test]
fn what_is_known_of_a_connection_is_told() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    pair.send_text("chat", "hello");
    talk(&mut pair, 1, 100);
    let start = pair.now;
    let (left, right) = (&pair.left.connection, &pair.right.connection);
    for (side, is_client) in [(left, true), (right, false)] {
        let transport = &side.transport;
        let dtls = transport.dtls_figures();
        let (started, connected) = (dtls.started.unwrap(), dtls.connected.unwrap());
        assert!(started < connected && connected < start);
        assert!(dtls.received.count > 0 && dtls.sent.bytes > 500, "{dtls:?}");
        let role = transport.dtls_role().unwrap();
        assert_eq!(role == DtlsRole::Client, is_client);
        assert_eq!(transport.is_controlling(), is_client);
        assert_eq!(transport.remote_fingerprints().len(), 1);
        let pairs = transport.pairs();
        assert_eq!(pairs.len(), 1, "{pairs:?}");
        let used = pairs[0];
        assert!(used.is_selected && used.progress == PairProgress::Succeeded);
        assert!(
            used.round_trip
                .is_some_and(|rtt| rtt < Duration::from_secs(1))
        );
        assert!(used.checks_answered > 0 && used.checks_received > 0);
        assert!(used.checks_sent >= used.checks_answered);
        let remote = transport.remote_candidates();
        assert!(remote[0].ends_with("typ host"), "{remote:?}");
        let data = transport.data_figures().unwrap();
        assert!(data.established && data.channels == 1, "{data:?}");
        assert_eq!((data.received.count, data.sent.count), (1, 1));
        assert_eq!((data.received.bytes, data.sent.bytes), (5, 5));
    }
    let sent = left.media()[AUDIO].sent().unwrap();
    assert!(sent.answered().is_some_and(|(last_sr, _)| last_sr != 0));
    assert!(sent.last_sent().is_some());
}

#[test]
fn a_flight_that_is_sent_again_is_counted() {
    let lines = vec![audio("a", 1_000)];
    let mut lossy = 0;
    for seed in 0..20 {
        let mut pair = MediaPair::of(seed, lines.clone(), StreamConfig::default());
        pair.network.link = Link::lossy(0.3);
        pair.connect();
        lossy += pair
            .left
            .connection
            .transport
            .counters()
            .dtls_retransmissions;
    }
    assert!(lossy > 0);
    let mut pair = MediaPair::of(1, lines, StreamConfig::default());
    pair.connect();
    let counters = pair.left.connection.transport.counters();
    assert_eq!(counters.dtls_retransmissions, 0);
}

#[test]
fn a_second_passes_only_while_something_comes_or_leaves() {
    let mut pair = MediaPair::connected(1, Link::GOOD);
    let mut seconds = 0;
    for n in 0..5 {
        talk(&mut pair, 1 + 50 * n, 50);
        seconds += usize::from(pair.right.connection.poll_second());
        assert!(!pair.right.connection.poll_second());
    }
    assert!((4..=5).contains(&seconds), "{seconds}");
    pair.run(Duration::from_secs(20));
    pair.right.connection.poll_second();
    pair.run(Duration::from_secs(20));
    assert!(!pair.right.connection.poll_second());
}
