//! Handshakes that wait for their turn.
//!
//! A handshake takes as long as sealing a thousand packets. Each turn spends a limited time on
//! them, so that many joins at once do not delay the media of others.

use std::collections::VecDeque;
use std::time::Duration;

use portunus_rtc::Path;

use crate::PeerId;

/// The time that a turn spends on handshakes.
const PER_TURN: Duration = Duration::from_millis(2);
/// The maximum number of datagrams that wait, more than a socket's buffer holds. Peers retransmit
/// lost ones.
const WAITING: usize = 4_096;
/// The maximum length of a datagram: more than an unfragmented flight.
const LONGEST: usize = 8 << 10;

/// Datagrams of handshakes that wait.
#[derive(Debug)]
pub(super) struct Handshakes {
    waiting: VecDeque<Waiting>,
    per_turn: Duration,
    /// The time spent in this turn.
    spent: Duration,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            per_turn: PER_TURN,
            spent: Duration::ZERO,
        }
    }
}

/// A datagram that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) peer: PeerId,
    pub(super) path: Path,
    pub(super) datagram: Vec<u8>,
}

impl Handshakes {
    /// Adds time that was spent in this turn.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    /// Whether datagrams wait for the next turn.
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Removes the time limit, as the clock would differ from run to run.
    #[cfg(feature = "testing")]
    pub(super) fn take_time(&mut self) {
        self.per_turn = Duration::MAX;
    }

    /// Starts a turn.
    pub(super) fn begin(&mut self) {
        self.spent = Duration::ZERO;
    }

    /// Takes the datagram that has waited longest, if there is time left.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        let has_time = self.spent < self.per_turn;
        has_time.then(|| self.waiting.pop_front())?
    }

    /// Whether a new datagram has to wait: the time is spent, or others came before.
    pub(super) fn has_to_wait(&self) -> bool {
        self.are_waiting() || self.spent >= self.per_turn
    }

    /// Queues a datagram. Returns whether there was room.
    pub(super) fn put_off(&mut self, next: Waiting) -> bool {
        let has_room = self.waiting.len() < WAITING && next.datagram.len() <= LONGEST;
        if has_room {
            self.waiting.push_back(next);
        }
        has_room
    }
}

/// Whether a datagram is of DTLS but not application data (RFC 7983 section 7, RFC 5246 section
/// 6.2.1).
pub(super) fn is_handshake(datagram: &[u8]) -> bool {
    matches!(datagram.first(), Some(20..=22))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use std::net::SocketAddr;

    use super::*;

    fn datagram(n: u8) -> Waiting {
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        Waiting {
            peer: PeerId {
                worker: 0,
                serial: 1,
            },
            path: Path::udp(address, address),
            datagram: vec![n],
        }
    }

    #[test]
    fn what_a_turn_has_no_time_for_waits_in_order() {
        let mut handshakes = Handshakes::default();
        assert!(!handshakes.has_to_wait());
        handshakes.spent = PER_TURN;
        assert!(handshakes.has_to_wait());
        assert!(handshakes.put_off(datagram(1)) && handshakes.put_off(datagram(2)));
        assert!(
            handshakes.next().is_none(),
            "the time of this turn is spent"
        );
        handshakes.begin();
        assert!(handshakes.has_to_wait(), "others came before");
        assert_eq!(handshakes.next().unwrap().datagram, [1]);
        handshakes.spent = PER_TURN;
        assert!(handshakes.next().is_none() && handshakes.are_waiting());
        handshakes.begin();
        assert_eq!(handshakes.next().unwrap().datagram, [2]);
        assert!(!handshakes.has_to_wait() && !handshakes.are_waiting());
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut handshakes = Handshakes::default();
        let took = (0..WAITING + 10).filter(|_| handshakes.put_off(datagram(0)));
        assert_eq!(took.count(), WAITING);
        let mut handshakes = Handshakes::default();
        let mut long = datagram(0);
        long.datagram = vec![0; LONGEST + 1];
        assert!(!handshakes.put_off(long));
    }

    #[test]
    fn only_handshakes_and_alerts_wait() {
        let kinds: Vec<u8> = (0..=255).filter(|kind| is_handshake(&[*kind])).collect();
        assert_eq!(kinds, [20, 21, 22]);
        assert!(!is_handshake(&[]));
    }
}
