//! The replay window (RFC 3711 section 3.3.2).

/// How far behind the highest index a packet may be, in packets. It covers retransmissions, which
/// publishers without a repair stream send with their old numbers.
const WINDOW: u64 = 64 * WORDS as u64;
const WORDS: usize = 8;

/// The received ones of the last 512 packet indices. DTLS numbers its records in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayWindow {
    highest: u64,
    /// A bit for each index, by its remainder. Bits ahead of the highest index are not set.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Makes a window in which `first` has been received.
    pub fn starting_with(first: u64) -> Self {
        let mut window = Self {
            highest: first,
            seen: [0; WORDS],
        };
        window.set(first, true);
        window
    }

    /// Returns the highest index received.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns whether `index` is neither received nor too old to check.
    pub fn is_fresh(&self, index: u64) -> bool {
        match self.highest.checked_sub(index) {
            None => true,
            Some(age) => age < WINDOW && !self.is_set(index),
        }
    }

    /// Records that `index`, which was fresh, has been received.
    pub fn accept(&mut self, index: u64) {
        match self.highest.checked_sub(index) {
            Some(age) if age < WINDOW => self.set(index, true),
            Some(_) => {}
            None if index - self.highest < WINDOW => {
                for between in self.highest + 1..index {
                    self.set(between, false);
                }
                self.highest = index;
                self.set(index, true);
            }
            None => *self = Self::starting_with(index),
        }
    }

    fn is_set(&self, index: u64) -> bool {
        let (word, bit) = place(index);
        self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, index: u64, seen: bool) {
        let (place, bit) = place(index);
        if let Some(word) = self.seen.get_mut(place) {
            *word = if seen { *word | bit } else { *word & !bit };
        }
    }
}

/// Returns the word and the bit of an index.
fn place(index: u64) -> (usize, u64) {
    (index as usize / 64 % WORDS, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn edges_of_the_window() {
        let mut window = ReplayWindow::starting_with(1_000);
        assert!(!window.is_fresh(1_000));
        assert!(window.is_fresh(1_000 - (WINDOW - 1)));
        assert!(!window.is_fresh(1_000 - WINDOW));
        window.accept(1_001);
        assert!(!window.is_fresh(1_000) && !window.is_fresh(1_001) && window.is_fresh(1_002));
        window.accept(5_000);
        assert!(!window.is_fresh(1_002) && window.is_fresh(4_999) && !window.is_fresh(5_000));
        window.accept(u64::MAX);
        assert!(!window.is_fresh(0) && window.is_fresh(u64::MAX - 1));
    }

    #[test]
    fn what_was_asked_for_again_during_a_keyframe_is_taken() {
        let mut window = ReplayWindow::starting_with(0);
        (2..400).for_each(|index| window.accept(index));
        assert!(window.is_fresh(1));
        window.accept(1);
        assert!(!window.is_fresh(1));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(indices in proptest::collection::vec(0u64..3_000, 1..600)) {
            let mut seen = HashSet::from([0]);
            let mut highest = 0;
            let mut window = ReplayWindow::starting_with(0);
            for index in indices {
                let fresh = !seen.contains(&index) && index + WINDOW > highest;
                prop_assert_eq!(window.is_fresh(index), fresh);
                if fresh {
                    window.accept(index);
                    seen.insert(index);
                    highest = highest.max(index);
                }
            }
        }
    }
}
