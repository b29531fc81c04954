//! A peer that moves between addresses, and nominates like some real ones.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::super::{Ice, IceEvent, StunOutcome};
use super::{answer, here, ice, message};
use crate::Path;

const SECOND: Duration = Duration::from_secs(1);
/// A step of virtual time.
const STEP: Duration = Duration::from_millis(50);

const A: u16 = 1;
const B: u16 = 2;

fn at(port: u16) -> SocketAddr {
    ([10, 0, 0, 2], port).into()
}

/// A controlling peer, with its behaviour at each of its addresses.
struct Peer {
    ice: Ice,
    now: Instant,
    answers: Vec<u16>,
    /// The ports that it checks from every 2.5 s, and whether it nominates.
    checks: Vec<(u16, bool)>,
    next: Instant,
    checked: u32,
    failed: bool,
}

impl Peer {
    /// Makes a peer that has nominated [`A`].
    fn new() -> Self {
        let now = Instant::now();
        let mut ice = ice(false, false, now);
        for (port, priority) in [(A, 2_113_937_151), (B, 2_113_937_000)] {
            let line = format!("candidate:{port} 1 udp {priority} 10.0.0.2 {port} typ host");
            ice.add_remote_candidate(&line).unwrap();
        }
        let mut peer = Peer {
            ice,
            now,
            answers: vec![A, B],
            checks: vec![(A, true)],
            next: now,
            checked: 0,
            failed: false,
        };
        peer.run(SECOND);
        assert_eq!(peer.selected(), A);
        peer
    }

    fn selected(&self) -> u16 {
        self.ice.selected().unwrap().remote.port()
    }

    fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Returns how long it took.
    fn run_until(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> Duration {
        let start = self.now;
        while self.now < start + time && !done(self) {
            self.now += STEP;
            if self.now >= self.next {
                self.next = self.now + 5 * SECOND / 2;
                for (port, nominates) in self.checks.clone() {
                    self.check(port, nominates);
                }
            }
            if self.ice.poll_timeout().is_some_and(|at| at <= self.now) {
                self.ice.handle_timeout(self.now);
            }
            while let Some(sent) = self.ice.poll_transmit() {
                let port = sent.path.remote.port();
                if sent.bytes.starts_with(&[0, 1]) && self.answers.contains(&port) {
                    assert!(!has(&sent.bytes, [0x80, 0x2A]), "it is controlled");
                    self.ice.receive(self.now, sent.path, &answer(&sent.bytes));
                }
            }
            while let Some(event) = self.ice.poll_event() {
                self.failed |= matches!(event, IceEvent::Failed(_));
            }
        }
        self.now - start
    }

    fn check(&mut self, port: u16, nominates: bool) {
        self.checked += 1;
        let mut transaction = [0; 12];
        transaction[..4].copy_from_slice(&self.checked.to_be_bytes());
        let mut attributes = vec![
            (0x0006, b"mine:your".to_vec()),
            (0x0024, 1_853_824_000_u32.to_be_bytes().to_vec()),
            (0x802A, 9_u64.to_be_bytes().to_vec()),
        ];
        if nominates {
            attributes.push((0x0025, Vec::new()));
        }
        let check = message(1, transaction, &attributes);
        let path = Path::udp(here(), at(port));
        self.ice.receive(self.now, path, &check);
    }
}

/// Returns whether a STUN message has an attribute.
fn has(message: &[u8], kind: [u8; 2]) -> bool {
    let mut offset = 20;
    while let Some(&[k0, k1, l0, l1]) = message.get(offset..).and_then(|rest| rest.first_chunk()) {
        if [k0, k1] == kind {
            return true;
        }
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        offset += 4 + len.next_multiple_of(4);
    }
    false
}

#[test]
fn a_peer_that_nominates_once_is_followed_when_its_address_changes() {
    let mut peer = Peer::new();
    peer.checks = vec![(A, false)];
    peer.run(60 * SECOND);
    for port in [1_000, 1_001, A, 1_002, A, 1_003] {
        (peer.answers, peer.checks) = (vec![port], vec![(port, false)]);
        let took = peer.run_until(25 * SECOND, |peer| peer.selected() == port);
        assert!(took <= 15 * SECOND, "{port}: {took:?}");
        peer.run(120 * SECOND);
        assert!(!peer.failed && peer.selected() == port);
    }
    // Three addresses were signalled or left, and each is known once.
    assert!(peer.ice.agent.remote_candidates().count() <= 7);
}

#[test]
fn of_addresses_that_die_together_none_holds_up_what_is_alive() {
    let mut peer = Peer::new();
    // Its priority is lower than the others'.
    peer.answers = vec![A, B, 1_000];
    peer.checks = vec![(A, true), (1_000, false)];
    peer.run(63 * SECOND);
    assert_eq!(peer.selected(), A);
    (peer.answers, peer.checks) = (vec![1_000], vec![(1_000, false)]);
    let took = peer.run_until(25 * SECOND, |peer| peer.selected() == 1_000);
    assert!(took <= 15 * SECOND, "{took:?}");
    peer.run(120 * SECOND);
    assert!(!peer.failed && peer.selected() == 1_000);
}

#[test]
fn the_peer_chooses_among_pairs_that_work() {
    let mut peer = Peer::new();
    peer.checks = vec![(A, true), (B, false)];
    peer.run(60 * SECOND);
    assert_eq!(peer.selected(), A);
    for (port, other) in [(B, A), (A, B), (B, A)] {
        peer.checks = vec![(port, true), (other, false)];
        let took = peer.run_until(25 * SECOND, |peer| peer.selected() == port);
        assert!(took <= 6 * SECOND, "{port}: {took:?}");
        peer.run(60 * SECOND);
        assert!(!peer.failed && peer.selected() == port);
    }
}

#[test]
fn of_pairs_that_are_all_nominated_the_best_is_used() {
    let mut peer = Peer::new();
    peer.checks = vec![(A, true), (B, true)];
    for _ in 0..100 {
        peer.run(SECOND);
        assert_eq!(peer.selected(), A);
    }
}

#[test]
fn a_nomination_is_followed_only_to_where_checks_are_answered() {
    let mut peer = Peer::new();
    peer.answers = vec![A];
    // A forged check: anyone who saw a check can repeat it from anywhere.
    peer.checks = vec![(1_000, true)];
    peer.run(60 * SECOND);
    assert!(!peer.failed);
    assert_eq!(peer.selected(), A);
}

#[test]
fn a_doubt_that_media_has_ended_still_knows_the_answer_to_its_check() {
    let mut peer = Peer::new();
    peer.checks = vec![(A, false)];
    peer.run(10 * SECOND);
    // A check of a spare pair puts the selected one in doubt.
    peer.check(B, false);
    let path = Path::udp(here(), at(A));
    let now = peer.now;
    peer.ice.handle_timeout(now);
    let mut probes = Vec::new();
    while let Some(sent) = peer.ice.poll_transmit() {
        probes.extend((sent.bytes.starts_with(&[0, 1]) && sent.path == path).then_some(sent.bytes));
    }
    assert!(!probes.is_empty());
    peer.ice.hear_media(now, path);
    assert!(!peer.ice.probe.is_on());
    for probe in probes {
        let taken = peer.ice.receive(now, path, &answer(&probe));
        assert_eq!(taken, StunOutcome::Accepted);
    }
}
