//! The way by which a source of another node comes here: which carriers there are, and what is
//! tried at present.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::far_node_id::FarNodeId;

/// How long a node has to answer.
pub(crate) const ANSWERS: Duration = Duration::from_secs(1);
/// The time to the next try, if no way was found.
pub(crate) const RETRY: Duration = Duration::from_secs(2);
/// How long the link with a source's node has to work before the source is taken from it again.
pub(crate) const STEADY: Duration = Duration::from_secs(5);
/// How long a carrier that has failed is not asked again.
const SHUNNED: Duration = Duration::from_secs(10);
/// The maximum number of carriers that are remembered as failed. After that many the source's node
/// sends the source itself.
pub(crate) const MAX_FAILED: usize = 4;
/// The maximum number of carriers that are known in advance.
pub(crate) const MAX_CARRIERS: usize = 2;

/// The present step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Step {
    /// The way is chosen, or nothing is wanted.
    #[default]
    Settled,
    /// The source's node was asked for carriers.
    Seeking { until: Instant },
    /// A node was asked to carry the source.
    Asking { node: FarNodeId, until: Instant },
    /// There is no way.
    Waiting { until: Instant },
}

/// The choice of the way of one source.
#[derive(Debug, Default)]
pub(crate) struct Course {
    pub(crate) step: Step,
    /// The link with the source's node did not work when the way was chosen.
    pub(crate) is_blocked: bool,
    /// Carriers were of no use, so the source's node has to send the source itself.
    pub(crate) insists: bool,
    /// Carriers that were not tried yet.
    reserve: VecDeque<FarNodeId>,
    failed: VecDeque<(FarNodeId, Instant)>,
}

impl Course {
    /// Sets the carriers that the source's node has named.
    pub(crate) fn set_reserve(&mut self, carriers: impl Iterator<Item = FarNodeId>) {
        self.reserve = carriers.take(MAX_CARRIERS).collect();
    }

    /// Takes the next carrier to be tried.
    pub(crate) fn next_carrier(&mut self) -> Option<FarNodeId> {
        self.reserve.pop_front()
    }

    /// Notes that a carrier has failed.
    pub(crate) fn fail(&mut self, carrier: FarNodeId, now: Instant) {
        self.failed.retain(|(known, _)| *known != carrier);
        self.reserve.retain(|known| *known != carrier);
        self.failed.push_back((carrier, now));
        if self.failed.len() > MAX_FAILED {
            self.failed.pop_front();
            self.insists = true;
        }
    }

    /// The carriers that have failed lately.
    pub(crate) fn failed(&self) -> impl Iterator<Item = FarNodeId> {
        self.failed.iter().map(|(carrier, _)| *carrier)
    }

    /// Forgets failures that are long ago, and those of carriers whose links work again.
    pub(crate) fn forgive(&mut self, back: &[FarNodeId], now: Instant) {
        let is_recent = |at: Instant| now.saturating_duration_since(at) < SHUNNED;
        self.failed
            .retain(|(carrier, at)| is_recent(*at) && !back.contains(carrier));
        self.insists &= !self.failed.is_empty();
    }

    /// Forgets a carrier that is gone.
    pub(crate) fn lose(&mut self, carrier: FarNodeId) {
        self.failed.retain(|(known, _)| *known != carrier);
        self.reserve.retain(|known| *known != carrier);
    }

    /// Whether there are carriers that were not tried yet.
    pub(crate) fn has_reserve(&self) -> bool {
        !self.reserve.is_empty()
    }

    /// Forgets all, as nothing is wanted any more.
    pub(crate) fn reset(&mut self) {
        self.step = Step::Settled;
        self.is_blocked = false;
        self.insists = false;
        self.reserve.clear();
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.step {
            Step::Settled => None,
            Step::Seeking { until } | Step::Asking { until, .. } | Step::Waiting { until } => {
                Some(until)
            }
        }
    }
}
