//! Clocks that several sources share.

use std::num::NonZeroU64;

/// A clock that several sources share: their timestamps stand for the same times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedClock(NonZeroU64);

impl SharedClock {
    /// Returns the clock with this number.
    pub fn new(number: NonZeroU64) -> Self {
        Self(number)
    }
}
