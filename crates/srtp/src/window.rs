//! The replay window (RFC 3711 section 3.3.2).

/// How far behind the highest index a packet may come, in packets.
const WINDOW: u64 = 128;

/// Which of the last 128 packet indices have been received. DTLS numbers its records alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayWindow {
    highest: u64,
    /// Bit `i` stands for the index `highest - i`.
    seen: u128,
}

impl ReplayWindow {
    /// A window in which `first` has been received.
    pub const fn starting_with(first: u64) -> Self {
        Self {
            highest: first,
            seen: 1,
        }
    }

    /// The highest index received.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether `index` is neither received nor too old to tell.
    pub fn is_fresh(&self, index: u64) -> bool {
        match self.highest.checked_sub(index) {
            None => true,
            Some(age) => age < WINDOW && self.seen & (1 << age) == 0,
        }
    }

    /// Takes note that `index`, which was fresh, has been received.
    pub fn accept(&mut self, index: u64) {
        match self.highest.checked_sub(index) {
            Some(age) if age < WINDOW => self.seen |= 1 << age,
            Some(_) => {}
            None => {
                let ahead = index - self.highest;
                self.seen = if ahead < WINDOW {
                    self.seen << ahead
                } else {
                    0
                } | 1;
                self.highest = index;
            }
        }
    }
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

    proptest! {
        #[test]
        fn agrees_with_a_set(indices in proptest::collection::vec(0u64..600, 1..400)) {
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
