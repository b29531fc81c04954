//! The rate that a link has carried. It counts when a client asks for more again.

use std::time::{Duration, Instant};

use crate::bandwidth::{DataRate, Estimate, Limit};

/// A rate is proven after it was sent for this time without a sign of a full link.
const SETTLED: Duration = Duration::from_secs(2);
/// Rates whose ratio is above this count as equal.
const SAME: f64 = 0.8;
/// The time for which a proven rate counts after the client has asked for more. By then, packets
/// have shown what the link carries now.
const COUNTS: Duration = Duration::from_secs(5);
/// Signs that the link is full.
const QUEUE: Duration = Duration::from_millis(125);
const LOSS: f64 = 0.1;

/// The highest rate that was sent without a sign of a full link.
///
/// An estimate cannot be much above the sent rate, so it may have become small while the client
/// wanted little. That is no reason to let the client wait for what it had before.
#[derive(Debug, Default)]
pub(super) struct Proven {
    rate: DataRate,
    /// The least sent rate, and its start.
    flows: Option<(Instant, DataRate)>,
    asked: Option<Instant>,
}

impl Proven {
    /// Records that the client asked for more than before.
    pub fn asked(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// Takes the sent rate `flows` and the allowed rate `budget`.
    pub fn update(
        &mut self,
        (flows, budget): (DataRate, DataRate),
        estimate: &Estimate,
        now: Instant,
    ) {
        let is_full = estimate.is_emptying()
            || estimate.queue > QUEUE
            || estimate.loss > LOSS
            || estimate.limit == Limit::NoFeedback;
        if is_full {
            self.rate = self.rate.min(budget);
            self.flows = None;
            return;
        }
        let same = self
            .flows
            .filter(|(_, least)| flows >= least.times(SAME) && *least >= flows.times(SAME));
        let (since, least) = same.map_or((now, flows), |(since, least)| (since, least.min(flows)));
        self.flows = Some((since, least));
        if now.saturating_duration_since(since) >= SETTLED {
            self.rate = self.rate.max(least);
            self.flows = None;
        }
    }

    /// Returns the rate to assume whatever the estimate is. It is 0 unless the client asked for
    /// more lately.
    pub fn counts(&self, now: Instant) -> DataRate {
        if self.is_asked(now) {
            self.rate
        } else {
            DataRate::ZERO
        }
    }

    /// Returns whether the client asked for more lately.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.asked
            .is_some_and(|at| now.saturating_duration_since(at) < COUNTS)
    }
}
