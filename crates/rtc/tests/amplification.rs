//! Datagrams to an address that ICE has not verified: its owner may not have sent anything.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::Transport;
use portunus_rtc::testing::{Link, Pair};

/// How often an unanswered check is sent.
const CHECKS: usize = 8;

/// A negotiated transport, and a valid check of its peer.
struct Attacked {
    pair: Pair,
    here: SocketAddr,
    stranger: SocketAddr,
    check: Vec<u8>,
}

impl Attacked {
    fn new() -> Self {
        let mut pair = Pair::new(1, Link::GOOD);
        pair.negotiate();
        let mut buf = [0; 1_500];
        let check = pair.right.transport.poll_transmit(&mut buf).unwrap();
        Self {
            check: buf[..check.len].to_vec(),
            pair,
            here: ([10, 0, 0, 1], 1_001).into(),
            stranger: ([10, 9, 9, 9], 9).into(),
        }
    }

    fn transport(&mut self) -> &mut Transport {
        &mut self.pair.left.transport
    }

    /// Takes a datagram from the stranger. Returns the datagrams sent back at once.
    fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let (now, here, stranger) = (self.pair.now, self.here, self.stranger);
        let mut datagram = datagram.to_vec();
        self.transport().receive(now, here, stranger, &mut datagram);
        self.sent()
    }

    /// Lets time pass. Returns the datagrams to the stranger.
    fn wait(&mut self, time: Duration) -> Vec<Vec<u8>> {
        let end: Instant = self.pair.now + time;
        let mut sent = self.sent();
        while let Some(deadline) = self.transport().poll_timeout().filter(|at| *at < end) {
            self.pair.now = self.pair.now.max(deadline);
            let now = self.pair.now;
            self.transport().handle_timeout(now);
            sent.extend(self.sent());
        }
        sent
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let stranger = self.stranger;
        let mut buf = [0; 1_500];
        let mut sent = Vec::new();
        while let Some(transmit) = self.transport().poll_transmit(&mut buf) {
            if transmit.destination == stranger {
                sent.push(buf[..transmit.len].to_vec());
            }
        }
        sent
    }
}

fn is_dtls(datagram: &[u8]) -> bool {
    (20..=63).contains(&datagram[0])
}

/// Returns whether a datagram is a STUN request, as checks are.
fn is_check(datagram: &[u8]) -> bool {
    datagram[..2] == [0, 1]
}

fn hello() -> Vec<u8> {
    let mut hello = vec![22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100];
    hello.extend([1; 100]);
    hello
}

#[test]
fn nothing_is_sent_to_who_does_not_know_the_password() {
    let mut attacked = Attacked::new();
    // Either the integrity attribute or the protected part is damaged.
    for at in [8, 25, attacked.check.len() - 20] {
        let mut check = attacked.check.clone();
        check[at] ^= 1;
        assert_eq!(attacked.receive(&check), Vec::<Vec<u8>>::new(), "{at}");
    }
    for cut in 1..attacked.check.len() {
        let check = attacked.check[..cut].to_vec();
        assert_eq!(attacked.receive(&check), Vec::<Vec<u8>>::new(), "{cut}");
    }
    let hello = hello();
    assert_eq!(attacked.receive(&hello), Vec::<Vec<u8>>::new());
    assert_eq!(
        attacked.wait(Duration::from_secs(60)),
        Vec::<Vec<u8>>::new()
    );
}

#[test]
fn who_is_not_verified_gets_an_answer_and_checks_and_no_handshake() {
    let mut attacked = Attacked::new();
    let check = attacked.check.clone();
    let mut sent = attacked.receive(&check);
    for _ in 0..20 {
        sent.extend(attacked.receive(&hello()));
    }
    sent.extend(attacked.wait(Duration::from_secs(60)));
    let answers = sent.iter().filter(|it| !is_check(it) && !is_dtls(it));
    let answers: usize = answers.map(Vec::len).sum();
    assert!(
        (1..=check.len()).contains(&answers),
        "{answers} bytes for {}",
        check.len()
    );
    assert!(sent.iter().filter(|it| is_check(it)).count() <= CHECKS);
    assert!(!sent.iter().any(|datagram| is_dtls(datagram)));
}
