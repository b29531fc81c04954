//! Hysteresis: when tracks may change, and when they have to.

use std::time::{Duration, Instant};

use crate::bandwidth::{DataRate, Estimate};

/// The time between two unforced changes.
const HOLD: Duration = Duration::from_secs(5);
/// The time that probes need.
const FOR_PROBES: Duration = Duration::from_millis(900);
/// A raise failed if it is undone within the first time. The next raise waits for the second time,
/// doubled after each failure up to the third.
const FAILED: Duration = Duration::from_secs(12);
const BACKOFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// The time within which a raise is blamed for a queue.
const RECENT: Duration = Duration::from_secs(3);
/// Steps below this share of a failed one may be tried earlier.
const NEAR: f64 = 0.8;
/// The time for which an excess over the estimate is tolerated without a sign of a queue. Layer
/// rates vary, and a decrease without a queue is often a false alarm that a probe corrects.
const BORNE: Duration = Duration::from_millis(2_500);
/// The time for which a queue is tolerated: the first after a raise, otherwise the second, since
/// other flows on the link may be the ones to slow down. A very long queue is not tolerated.
const BORNE_WITH_QUEUE: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_millis(600));
const QUEUE: Duration = Duration::from_millis(125);
const VERY_LONG_QUEUE: Duration = Duration::from_millis(250);
/// The other signs that an excess cannot be tolerated.
const LOSS: f64 = 0.1;
const FAR_ABOVE: f64 = 1.5;
/// While the estimate does not fall, an excess up to this factor counts as normal variation.
const VARIATION: f64 = 1.1;

/// The excess over the estimate, and its start.
#[derive(Debug, Default)]
pub(super) struct Excess {
    since: Option<Instant>,
}

impl Excess {
    /// Returns whether tracks have to be lowered. `flows` is the sent rate, and `budget` the
    /// allowed one. `raised` says that a raise was recent. `follows` says that publishers were
    /// asked to send less: their rates are measured late, so only signs of congestion count.
    pub fn has_to_go(
        &mut self,
        (flows, budget): (DataRate, DataRate),
        (raised, follows): (bool, bool),
        estimate: &Estimate,
        now: Instant,
    ) -> bool {
        if flows <= budget {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let borne = now.saturating_duration_since(since);
        let (after_raise, otherwise) = BORNE_WITH_QUEUE;
        let patience = if raised { after_raise } else { otherwise };
        let is_congested = (estimate.queue > QUEUE && borne >= patience)
            || estimate.queue > VERY_LONG_QUEUE
            // A keyframe may once be too much for a short queue.
            || (estimate.loss > LOSS && borne >= otherwise);
        let is_far_above =
            flows > budget.times(FAR_ABOVE) || (flows > budget.times(VARIATION) && borne >= BORNE);
        is_congested || is_far_above && !follows
    }

    /// Returns whether there is any excess.
    pub fn is_any(&self) -> bool {
        self.since.is_some()
    }
}

/// The times at which a viewer's tracks may change.
#[derive(Debug, Default)]
pub(super) struct Hold {
    until: Option<Instant>,
}

impl Hold {
    /// Starts to hold after a change.
    pub fn begin(&mut self, now: Instant) {
        self.until = Some(now + HOLD);
    }

    /// Waits for probes, since more can be had than before.
    pub fn wait_for_probes(&mut self, now: Instant) {
        self.until = self.until.max(Some(now + FOR_PROBES));
    }

    /// Stops holding, since the client asked for something else.
    pub fn end(&mut self) {
        self.until = None;
    }

    pub fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }
}

/// The raises of a track.
#[derive(Debug, Default)]
pub(super) struct Raises {
    /// The time and rate of the last raise.
    last: Option<(Instant, DataRate)>,
    backoff: Option<Duration>,
    /// The rate that may not be reached before a time.
    refused: Option<(Instant, DataRate)>,
}

impl Raises {
    /// Records a raise to a step of `rate`.
    pub fn raised(&mut self, rate: DataRate, now: Instant) {
        self.last = Some((now, rate));
    }

    /// Records that the track had to be lowered.
    pub fn lowered(&mut self, now: Instant) {
        let Some((raised, rate)) = self.last.take() else {
            return;
        };
        if now.saturating_duration_since(raised) > FAILED {
            self.backoff = None;
            return;
        }
        let backoff = self
            .backoff
            .map_or(BACKOFF.0, |backoff| (backoff * 2).min(BACKOFF.1));
        self.backoff = Some(backoff);
        self.refused = Some((now + backoff, rate.times(NEAR)));
    }

    /// Returns whether the last raise was recent.
    pub fn are_recent(&self, now: Instant) -> bool {
        let raised = self.last.map(|(at, _)| now.saturating_duration_since(at));
        raised.is_some_and(|since| since < RECENT)
    }

    /// Returns whether a raise to a step of `rate` is allowed.
    pub fn allow(&self, rate: DataRate, now: Instant) -> bool {
        self.refused
            .is_none_or(|(until, refused)| until <= now || rate < refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raise_that_fails_again_and_again_is_tried_less_and_less() {
        let (mut raises, mut now) = (Raises::default(), Instant::now());
        let rate = DataRate::kbps(1_000);
        let mut waits = Vec::new();
        for _ in 0..5 {
            raises.raised(rate, now);
            now += Duration::from_secs(1);
            raises.lowered(now);
            let lowered = now;
            assert!(raises.allow(rate.times(0.7), now), "far below what failed");
            while !raises.allow(rate.times(0.9), now) {
                now += Duration::from_secs(1);
            }
            waits.push((now - lowered).as_secs());
        }
        assert_eq!(waits, [10, 20, 40, 60, 60]);
        raises.raised(rate, now);
        now += FAILED * 2;
        raises.lowered(now);
        assert!(raises.allow(rate, now), "it had held");
    }
}
