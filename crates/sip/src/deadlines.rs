//! Deadlines by key.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// One deadline for each key. The earliest is found at once.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    order: BTreeSet<(Instant, K)>,
    of: HashMap<K, Instant>,
}

impl<K: Copy + Ord + Hash> Deadlines<K> {
    pub(crate) fn new() -> Self {
        Self {
            order: BTreeSet::new(),
            of: HashMap::new(),
        }
    }

    /// Replaces the deadline of `key`; `None` removes it.
    pub(crate) fn set(&mut self, key: K, at: Option<Instant>) {
        let old = match at {
            Some(at) => self.of.insert(key, at),
            None => self.of.remove(&key),
        };
        if old == at {
            return;
        }
        if let Some(old) = old {
            self.order.remove(&(old, key));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
    }

    /// Brings the deadline of `key` forward, or sets it.
    pub(crate) fn hasten(&mut self, key: K, at: Instant) {
        if self.of.get(&key).is_none_or(|old| *old > at) {
            self.set(key, Some(at));
        }
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Takes a key whose deadline has come.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        let &(at, key) = self.order.first()?;
        if at > now {
            return None;
        }
        self.order.pop_first();
        self.of.remove(&key);
        Some(key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_has_one_deadline() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut deadlines = Deadlines::new();
        deadlines.set(1, Some(now));
        deadlines.set(2, Some(now));
        deadlines.set(1, Some(later));
        assert_eq!(deadlines.pop(now), Some(2));
        assert_eq!(deadlines.pop(now), None);
        assert_eq!(deadlines.next(), Some(later));
        deadlines.set(1, None);
        assert_eq!((deadlines.next(), deadlines.len()), (None, 0));
    }
}
