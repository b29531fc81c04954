//! What is summed up over participants between two windows.

use std::time::Duration;

use super::check::Findings;
use super::ear::Heard;

/// What is summed up over participants.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets that participants sent and should get back.
    pub(super) sent: u64,
    pub(super) findings: Findings,
    pub(super) heard: Heard,
    pub(super) longest_gap: Duration,
    /// Gaps count of those only who were there when a storm began.
    pub(super) of_veterans: bool,
}

impl Tally {
    /// What was summed up; the next one begins.
    pub(super) fn take(&mut self) -> Self {
        let next = Self {
            of_veterans: self.of_veterans,
            ..Self::default()
        };
        std::mem::replace(self, next)
    }
}
