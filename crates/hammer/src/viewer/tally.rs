//! Sums over participants between two windows.

use std::time::Duration;

use super::check::Findings;
use super::ear::Heard;

/// Sums over participants.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets that participants sent and should receive.
    pub(super) sent: u64,
    pub(super) findings: Findings,
    pub(super) heard: Heard,
    pub(super) longest_gap: Duration,
    /// Gaps count only for participants from before the storm.
    pub(super) of_veterans: bool,
}

impl Tally {
    /// Returns the sums, and starts new ones.
    pub(super) fn take(&mut self) -> Self {
        let next = Self {
            of_veterans: self.of_veterans,
            ..Self::default()
        };
        std::mem::replace(self, next)
    }
}
