//! A cache of verified tokens.

use std::collections::HashMap;

/// The SHA-256 of a token.
pub(crate) type Digest = [u8; 32];

/// Keeps recently used entries: at least `capacity`, at most twice as many. After `capacity` new
/// entries, those not used since the last time are dropped.
#[derive(Debug)]
pub(super) struct Recent<V> {
    capacity: usize,
    new: HashMap<Digest, V>,
    old: HashMap<Digest, V>,
}

impl<V: Clone> Recent<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Recent {
            capacity,
            new: HashMap::new(),
            old: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, key: &Digest) -> Option<V> {
        if let Some(value) = self.new.get(key) {
            return Some(value.clone());
        }
        let value = self.old.remove(key)?;
        self.insert(*key, value.clone());
        Some(value)
    }

    pub(super) fn insert(&mut self, key: Digest, value: V) {
        if self.new.len() >= self.capacity {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, value);
    }

    pub(super) fn clear(&mut self) {
        self.new.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Digest {
        [number; 32]
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut recent = Recent::new(4);
        recent.insert(key(0), 0);
        for number in 1..100 {
            recent.insert(key(number), number);
            assert_eq!(recent.get(&key(0)), Some(0));
            assert_eq!(recent.get(&key(number)), Some(number));
            assert!(recent.new.len() + recent.old.len() <= 8);
        }
        assert_eq!(recent.get(&key(50)), None);
        recent.clear();
        assert_eq!(recent.get(&key(0)), None);
    }
}
