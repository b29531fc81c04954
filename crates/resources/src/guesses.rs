//! Wrong secrets of strangers: limits that stop a search for a pin or a secret.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::ClientAddress;
use tokio::time::Instant;

use crate::Id;

/// The wait for each wrong secret after the first ones. A pin of four digits takes a day.
const WAIT: Duration = Duration::from_secs(10);
/// Clients with what they try at most.
const MOST_KNOWN: usize = 10_000;

/// A client has shown too many wrong secrets, and has to wait for this number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "too many wrong secrets, pins or tokens from this address: try again in {0} s, see max_wrong"
)]
pub struct Guessing(pub u64);

/// The target of a guess: a resource, or `None` for the admin key.
type Tried = (ClientAddress, Option<Id>);

/// Wrong secrets, by clients and targets. The state of each is the time when it has waited for all
/// of them.
#[derive(Debug)]
pub(crate) struct Guesses {
    /// The limit of wrong secrets at once. 0 means no limit.
    most: u32,
    hasher: RandomState,
    known: Mutex<HashMap<Tried, Known>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    made_up: Instant,
    /// A hash of the last one. Repeating it is not a guess.
    last: u64,
}

impl Guesses {
    pub(crate) fn new(most: u32) -> Self {
        Guesses {
            most,
            hasher: RandomState::new(),
            known: Mutex::default(),
        }
    }

    /// Checks that a client may show secrets for `tried` now.
    pub(crate) fn check(&self, client: ClientAddress, tried: Option<&Id>) -> Result<(), Guessing> {
        let known = self.known();
        let Some(known) = known.get(&(client, tried.cloned())) else {
            return Ok(());
        };
        let ahead = known.made_up.saturating_duration_since(Instant::now());
        let free = WAIT.saturating_mul(self.most.saturating_sub(1));
        match ahead.saturating_sub(free) {
            Duration::ZERO => Ok(()),
            wait => Err(Guessing(wait.as_secs().saturating_add(1))),
        }
    }

    /// Counts wrong secrets of a client.
    pub(crate) fn note(&self, client: ClientAddress, tried: Option<Id>, shown: &[&str]) {
        if self.most == 0 {
            return;
        }
        let now = Instant::now();
        let last = self.hasher.hash_one(shown);
        let tried = (client, tried);
        let mut known = self.known();
        if known.len() >= MOST_KNOWN && !known.contains_key(&tried) {
            known.retain(|_, known| known.made_up > now);
            // The entry with the shortest wait is dropped.
            let first = known.iter().min_by_key(|(_, known)| known.made_up);
            let first = first.map(|(tried, _)| tried.clone());
            if let Some(first) = first.filter(|_| known.len() >= MOST_KNOWN) {
                known.remove(&first);
            }
        }
        let known = known.entry(tried);
        let known = known.and_modify(|known| {
            if known.last != last {
                known.made_up = known.made_up.max(now) + WAIT;
                known.last = last;
            }
        });
        known.or_insert(Known {
            made_up: now + WAIT,
            last,
        });
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Tried, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ONE: ClientAddress = ClientAddress::Ipv4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: ClientAddress = ClientAddress::Ipv4(Ipv4Addr::new(192, 0, 2, 2));

    fn room(number: u64) -> Option<Id> {
        Some(Id::Number(number))
    }

    /// Shows wrong secrets until it has to wait. Returns their number.
    fn shown(guesses: &Guesses, client: ClientAddress, tried: Option<Id>, from: u32) -> u32 {
        let tries = (from..).take_while(|n| {
            let may = guesses.check(client, tried.as_ref()).is_ok();
            if may {
                guesses.note(client, tried.clone(), &[&n.to_string()]);
            }
            may && n - from < 1_000
        });
        u32::try_from(tries.count()).unwrap_or(u32::MAX)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_try_some_and_then_one_now_and_then() {
        let guesses = Guesses::new(5);
        assert_eq!(shown(&guesses, ONE, room(1), 0), 5);
        assert_eq!(guesses.check(ONE, room(1).as_ref()), Err(Guessing(11)));
        // Other clients and other rooms are not affected.
        assert_eq!(shown(&guesses, OTHER, room(1), 0), 5);
        assert_eq!(shown(&guesses, ONE, room(2), 0), 5);
        assert_eq!(shown(&guesses, ONE, None, 0), 5);
        tokio::time::advance(WAIT).await;
        assert_eq!(shown(&guesses, ONE, room(1), 100), 1);
        tokio::time::advance(WAIT * 1_000).await;
        assert_eq!(shown(&guesses, ONE, room(1), 200), 5);
    }

    #[test]
    fn the_same_again_is_no_guess() {
        let guesses = Guesses::new(2);
        for _ in 0..100 {
            guesses.note(ONE, room(1), &["of yesterday"]);
        }
        assert_eq!(guesses.check(ONE, room(1).as_ref()), Ok(()));
        guesses.note(ONE, room(1), &["another"]);
        assert!(guesses.check(ONE, room(1).as_ref()).is_err());
    }

    #[test]
    fn memory_is_bounded_and_0_is_no_limit() {
        let guesses = Guesses::new(1);
        for number in 0..MOST_KNOWN as u64 + 10 {
            guesses.note(ONE, room(number), &["x"]);
        }
        assert_eq!(guesses.known().len(), MOST_KNOWN);
        let unlimited = Guesses::new(0);
        assert!(shown(&unlimited, ONE, room(1), 0) >= 1_000);
        assert!(unlimited.known().is_empty());
    }
}
