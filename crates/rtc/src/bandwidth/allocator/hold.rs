//! Hysteresis: when something may change, and when it has to.

use std::time::{Duration, Instant};

use crate::bandwidth::{DataRate, Estimate};

/// Between two changes that nothing forces.
const HOLD: Duration = Duration::from_secs(5);
/// Probes need about this time.
const FOR_PROBES: Duration = Duration::from_millis(900);
/// A raise that has to be taken back within the first time failed: the next one waits for at least the
/// second, twice as long each time, up to the third.
const FAILED: Duration = Duration::from_secs(12);
const BACKOFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// A raise is to blame for a queue for so long.
const RECENT: Duration = Duration::from_secs(3);
/// Steps of less than this share of one that failed may be tried nevertheless.
const NEAR: f64 = 0.8;
/// More than the estimate is borne for this time while there is no sign of a queue: the rates of
/// layers vary, and a decrease without a queue is often a false alarm that a probe corrects.
const BORNE: Duration = Duration::from_millis(2_500);
/// A queue cannot be borne for longer than this, the first after a raise of our own, else the second:
/// others that share the link may have to give way rather than we. A very long one cannot be borne.
const BORNE_WITH_QUEUE: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_millis(600));
const QUEUE: Duration = Duration::from_millis(125);
const VERY_LONG_QUEUE: Duration = Duration::from_millis(250);
/// Other signs that it cannot be borne.
const LOSS: f64 = 0.1;
const FAR_ABOVE: f64 = 1.5;
/// As long as the estimate does not fall, so much above it is taken for the usual variation.
const VARIATION: f64 = 1.1;

/// What is above the estimate, and since when.
#[derive(Debug, Default)]
pub(super) struct Excess {
    since: Option<Instant>,
}

impl Excess {
    /// Whether something has to give way. `flows` is what is sent, `budget` what may be; `raised` says that
    /// more is sent than a moment ago, `follows` that publishers have been asked to send less: what they send is
    /// measured late, so that only signs of congestion count.
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
            // A keyframe may be too much for a short queue, once.
            || (estimate.loss > LOSS && borne >= otherwise);
        let is_far_above =
            flows > budget.times(FAR_ABOVE) || (flows > budget.times(VARIATION) && borne >= BORNE);
        is_congested || is_far_above && !follows
    }

    /// Whether anything is.
    pub fn is_any(&self) -> bool {
        self.since.is_some()
    }
}

/// When the tracks of a viewer may change.
#[derive(Debug, Default)]
pub(super) struct Hold {
    until: Option<Instant>,
}

impl Hold {
    /// Something changed.
    pub fn begin(&mut self, now: Instant) {
        self.until = Some(now + HOLD);
    }

    /// There is more to be had than before: probes may find room for it first.
    pub fn wait_for_probes(&mut self, now: Instant) {
        self.until = self.until.max(Some(now + FOR_PROBES));
    }

    /// The client asked for something else: nothing is held.
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
    /// The last one: when, and to which rate.
    last: Option<(Instant, DataRate)>,
    backoff: Option<Duration>,
    /// Until when not to rise to which rate.
    refused: Option<(Instant, DataRate)>,
}

impl Raises {
    /// The track was raised to a step of `rate`.
    pub fn raised(&mut self, rate: DataRate, now: Instant) {
        self.last = Some((now, rate));
    }

    /// The track had to be lowered.
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

    /// Whether it was raised a moment ago.
    pub fn are_recent(&self, now: Instant) -> bool {
        let raised = self.last.map(|(at, _)| now.saturating_duration_since(at));
        raised.is_some_and(|since| since < RECENT)
    }

    /// Whether it may be raised to a step of `rate`.
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
