//! Pending connectivity checks, with their paths.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::Path;
use crate::demux::Transaction;

/// The time within which a check can be answered. Later responses count as lost.
pub const ANSWERABLE: Duration = Duration::from_secs(10);

/// The most checks kept: more than all pairs have pending at their interval.
const MOST: usize = 512;
/// The capacity that is kept.
const FEW: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Check {
    sent: Instant,
    transaction: Transaction,
    path: Path,
}

/// The checks that can still be answered.
#[derive(Debug, Default)]
pub(super) struct Checks {
    in_order: VecDeque<Check>,
    now: Option<Instant>,
}

impl Checks {
    /// Sets the time and drops expired checks.
    pub(super) fn set_time(&mut self, now: Instant) {
        self.now = Some(now);
        let is_over = |check: &Check| now.saturating_duration_since(check.sent) >= ANSWERABLE;
        while self.in_order.front().is_some_and(is_over) {
            self.in_order.pop_front();
        }
        if self.in_order.capacity() > FEW && self.in_order.len() <= FEW / 4 {
            self.in_order.shrink_to(FEW / 4);
        }
    }

    /// Records a check sent on `path`.
    pub(super) fn note(&mut self, transaction: Transaction, path: Path) {
        let Some(sent) = self.now else { return };
        if self.in_order.len() >= MOST {
            self.in_order.pop_front();
        }
        self.in_order.push_back(Check {
            sent,
            transaction,
            path,
        });
    }

    /// Returns whether a response on `path` took the check's path backwards (RFC 8445 section
    /// 7.2.5.2.1).
    pub(super) fn is_symmetric(&self, transaction: Transaction, path: Path) -> bool {
        self.in_order.iter().rev().any(|check| {
            check.transaction == transaction
                && check.path.carrier == path.carrier
                && is_same(check.path.local, path.local)
                && is_same(check.path.remote, path.remote)
        })
    }

    /// Returns when a pending check was sent.
    pub(super) fn sent(&self, transaction: Transaction) -> Option<Instant> {
        let mut checks = self.in_order.iter().rev();
        let check = checks.find(|check| check.transaction == transaction)?;
        Some(check.sent)
    }

    pub(super) fn clear(&mut self) {
        self.in_order.clear();
    }
}

/// Returns whether two addresses are equal. IPv6 addresses from the kernel have more fields than
/// those of candidates.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip() == other.ip()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::demux::stun_check;

    fn transaction(n: u16) -> Transaction {
        let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42];
        check.extend([0; 10]);
        check.extend(n.to_be_bytes());
        stun_check(&check).unwrap()
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_answer_comes_from_where_its_check_went_to_where_it_left() {
        let (here, there) = (address("10.0.0.1:1"), address("10.0.0.2:2"));
        let mut checks = Checks::default();
        checks.set_time(Instant::now());
        checks.note(transaction(1), Path::udp(here, there));
        assert!(checks.is_symmetric(transaction(1), Path::udp(here, there)));
        assert!(!checks.is_symmetric(transaction(2), Path::udp(here, there)));
        assert!(!checks.is_symmetric(transaction(1), Path::tcp(here, there)));
        for elsewhere in ["10.0.0.2:3", "10.0.0.3:2"] {
            assert!(!checks.is_symmetric(transaction(1), Path::udp(here, address(elsewhere))));
            assert!(!checks.is_symmetric(transaction(1), Path::udp(address(elsewhere), there)));
        }
        let (named, told) = (address("[fe80::2]:2"), address("[fe80::2%7]:2"));
        checks.note(transaction(3), Path::udp(here, named));
        assert!(checks.is_symmetric(transaction(3), Path::udp(here, told)));
    }

    #[test]
    fn checks_are_few_and_short_lived() {
        let (here, there) = (address("10.0.0.1:1"), address("10.0.0.2:2"));
        let mut now = Instant::now();
        let mut checks = Checks::default();
        checks.set_time(now);
        for n in 0..2_000 {
            checks.note(transaction(n), Path::udp(here, there));
        }
        assert_eq!(checks.in_order.len(), MOST);
        assert!(checks.is_symmetric(transaction(1_999), Path::udp(here, there)));
        now += ANSWERABLE;
        checks.set_time(now);
        assert!(!checks.is_symmetric(transaction(1_999), Path::udp(here, there)));
        assert!(checks.in_order.capacity() <= FEW);
    }
}
