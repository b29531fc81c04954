//! What a link carried: it counts when a client asks for more again.

use std::time::{Duration, Instant};

use crate::bandwidth::{DataRate, Estimate, Limit};

/// A rate that flowed for this time without a sign of a full link is proven.
const SETTLED: Duration = Duration::from_secs(2);
/// Rates that differ by less are the same one.
const SAME: f64 = 0.8;
/// It counts for so long after the client asked: by then packets have shown what the link carries now.
const COUNTS: Duration = Duration::from_secs(5);
/// Signs that the link is full.
const QUEUE: Duration = Duration::from_millis(125);
const LOSS: f64 = 0.1;

/// The most that flowed without a sign that the link was full.
///
/// An estimate cannot be much above what is sent, so it may have become small while a client wanted little;
/// that is no reason to keep the client waiting when it wants again what it had.
#[derive(Debug, Default)]
pub(super) struct Proven {
    rate: DataRate,
    /// What flows at least, and since when.
    flows: Option<(Instant, DataRate)>,
    asked: Option<Instant>,
}

impl Proven {
    /// The client asked for more than before.
    pub fn asked(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// `flows` is what is sent, `budget` what may be.
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

    /// What may be reckoned with whatever the estimate says; nothing unless the client asked for more lately.
    pub fn counts(&self, now: Instant) -> DataRate {
        if self.is_asked(now) {
            self.rate
        } else {
            DataRate::ZERO
        }
    }

    /// Whether the client asked for more lately.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.asked
            .is_some_and(|at| now.saturating_duration_since(at) < COUNTS)
    }
}
