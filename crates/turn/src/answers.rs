//! Limits of answers to requests without valid credentials. The sender's address may be forged, so
//! that answers could flood a victim.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::places::network;

/// The most answers at once to one address.
const BURST: f64 = 200.0;
/// The most answers per second to one address after that.
const RATE: f64 = 50.0;
/// The number of allowances. Addresses with the same hash share one.
const ALLOWANCES: usize = 4_096;

/// The allowances of all addresses, in a table of fixed size.
#[derive(Debug)]
pub(crate) struct Answers {
    hasher: RandomState,
    allowances: Mutex<Vec<Allowance>>,
}

#[derive(Debug, Clone, Copy)]
struct Allowance {
    left: f64,
    since: Instant,
}

impl Answers {
    pub(crate) fn new(now: Instant) -> Self {
        let full = Allowance {
            left: BURST,
            since: now,
        };
        Answers {
            hasher: RandomState::new(),
            allowances: Mutex::new(vec![full; ALLOWANCES]),
        }
    }

    /// Returns whether one more answer may be sent to `client`.
    pub(crate) fn allow(&self, client: IpAddr, now: Instant) -> bool {
        let hash = self.hasher.hash_one(network(client));
        let mut allowances = self
            .allowances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(allowance) = allowances.get_mut(hash as usize % ALLOWANCES) else {
            return false;
        };
        let passed: Duration = now.saturating_duration_since(allowance.since);
        allowance.left = (allowance.left + passed.as_secs_f64() * RATE).min(BURST);
        allowance.since = now;
        let allowed = allowance.left >= 1.0;
        if allowed {
            allowance.left -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn an_address_is_answered_so_often_and_no_more() {
        let start = Instant::now();
        let answers = Answers::new(start);
        let client = "192.0.2.1".parse().unwrap();
        let count = |now| (0..1_000).filter(|_| answers.allow(client, now)).count();
        assert_eq!(count(start), BURST as usize);
        assert_eq!(count(start + Duration::from_secs(1)), RATE as usize);
        assert_eq!(count(start + Duration::from_secs(3_600)), BURST as usize);
    }
}
