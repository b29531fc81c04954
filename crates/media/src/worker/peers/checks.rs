//! Connectivity checks under way: of which peer, and to where.
//!
//! An answer to a check names no user (RFC 8445 section 7.2.2), and a lite peer sends nothing else
//! before it is known. The transaction id, which only who saw the check can know, leads to the
//! peer.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use portunus_rtc::{ANSWERABLE, Transaction};

use crate::PeerId;

/// The maximum number of checks: those of a thousand peers that start within a second.
const MOST: usize = 1 << 16;

#[derive(Debug)]
struct Check {
    peer: PeerId,
    to: (IpAddr, u16),
}

/// Checks to addresses at which their peers are not known, as long as they can be answered.
#[derive(Debug, Default)]
pub(super) struct Checks {
    by_transaction: HashMap<Transaction, Check>,
    in_order: VecDeque<(Instant, Transaction)>,
}

impl Checks {
    /// Notes a check of a peer.
    pub(super) fn note(
        &mut self,
        now: Instant,
        transaction: Transaction,
        peer: PeerId,
        to: SocketAddr,
    ) {
        if self.in_order.len() >= MOST {
            self.forget_first();
        }
        let to = (to.ip(), to.port());
        let check = Check { peer, to };
        if self.by_transaction.insert(transaction, check).is_none() {
            self.in_order.push_back((now, transaction));
        }
    }

    /// Returns the peer whose check an answer from `from` belongs to.
    pub(super) fn peer(&self, answered: Transaction, from: SocketAddr) -> Option<PeerId> {
        let check = self.by_transaction.get(&answered)?;
        (check.to == (from.ip(), from.port())).then_some(check.peer)
    }

    /// Forgets checks that can no longer be answered.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_over = |(at, _): &(Instant, _)| now.saturating_duration_since(*at) >= ANSWERABLE;
        while self.in_order.front().is_some_and(is_over) {
            self.forget_first();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_transaction.len()
    }

    fn forget_first(&mut self) {
        if let Some((_, transaction)) = self.in_order.pop_front() {
            self.by_transaction.remove(&transaction);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use std::time::Duration;

    use portunus_rtc::stun_check;

    use super::*;

    fn transaction(n: u32) -> Transaction {
        let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42];
        check.extend([0; 8]);
        check.extend(n.to_be_bytes());
        stun_check(&check).unwrap()
    }

    #[test]
    fn an_answer_is_for_who_checked_until_that_is_long_ago() {
        let now = Instant::now();
        let peer = |serial| PeerId { worker: 0, serial };
        let to = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let mut checks = Checks::default();
        // Two peers on one address: a server.
        checks.note(now, transaction(1), peer(1), to(1));
        checks.note(now, transaction(2), peer(2), to(1));
        assert_eq!(checks.peer(transaction(1), to(1)), Some(peer(1)));
        assert_eq!(checks.peer(transaction(2), to(1)), Some(peer(2)));
        assert_eq!(checks.peer(transaction(3), to(1)), None);
        assert_eq!(checks.peer(transaction(1), to(2)), None);
        checks.expire(now + ANSWERABLE - Duration::from_millis(1));
        assert_eq!(checks.len(), 2);
        checks.expire(now + ANSWERABLE);
        assert_eq!((checks.len(), checks.in_order.len()), (0, 0));
        assert_eq!(checks.peer(transaction(1), to(1)), None);
    }

    #[test]
    fn of_too_many_the_first_are_forgotten() {
        let now = Instant::now();
        let peer = PeerId {
            worker: 0,
            serial: 1,
        };
        let to = SocketAddr::from(([192, 0, 2, 1], 1));
        let mut checks = Checks::default();
        let last = MOST as u32 + 9;
        for n in 0..=last {
            checks.note(now, transaction(n), peer, to);
        }
        assert_eq!((checks.len(), checks.in_order.len()), (MOST, MOST));
        assert_eq!(checks.peer(transaction(0), to), None);
        assert_eq!(checks.peer(transaction(last), to), Some(peer));
    }
}
