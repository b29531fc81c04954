//! A handshake takes as long as the sealing of a thousand packets. A turn spends a bounded time on them,
//! and what is left waits for the next one, so that many who join at once do not hold up the media of
//! those who are there.

use std::collections::VecDeque;
use std::time::Duration;

use portunus_rtc::Path;

use crate::plane::PeerId;

/// What a turn spends on handshakes before it leaves them for the next one.
const PER_TURN: Duration = Duration::from_millis(2);
/// Datagrams that wait at most: more than a socket's buffer holds of them. Peers send again what is lost.
const WAITING: usize = 4_096;
/// The longest of them: more than a whole flight has that is not cut up.
const LONGEST: usize = 8 << 10;

/// Datagrams of handshakes that wait for their turn.
#[derive(Debug)]
pub(super) struct Handshakes {
    waiting: VecDeque<Waiting>,
    per_turn: Duration,
    /// This turn.
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
    /// This turn spent so much time on one.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    /// Whether some wait for the next turn.
    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes as much time as they take: what the clock says of it differs from run to run.
    #[cfg(feature = "testing")]
    pub(super) fn take_time(&mut self) {
        self.per_turn = Duration::MAX;
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.spent = Duration::ZERO;
    }

    /// The one that waited longest, if this turn has time for it.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        let has_time = self.spent < self.per_turn;
        has_time.then(|| self.waiting.pop_front())?
    }

    /// Whether one that comes now has to wait: the turn's time is spent, or others came before.
    pub(super) fn has_to_wait(&self) -> bool {
        self.are_waiting() || self.spent >= self.per_turn
    }

    /// Lets one wait; says whether there was room.
    pub(super) fn put_off(&mut self, next: Waiting) -> bool {
        let has_room = self.waiting.len() < WAITING && next.datagram.len() <= LONGEST;
        if has_room {
            self.waiting.push_back(next);
        }
        has_room
    }
}

/// Whether a datagram is part of a DTLS handshake or an alert (RFC 7983 section 7, RFC 5246 section
/// 6.2.1): not application data.
pub(super) fn is_handshake(datagram: &[u8]) -> bool {
    matches!(datagram.first(), Some(20..=22))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
