//! Limits for publishers of a single layer: when they start and when they end.

use std::time::{Duration, Instant};

use crate::bandwidth::{DataRate, Estimate, Limit};

/// The time for which an excess over the estimate is tolerated before a publisher is limited, ...
const BORNE: Duration = Duration::from_millis(2_500);
/// ... unless the delay or the loss exceeds these values.
const QUEUE: Duration = Duration::from_millis(125);
const LOSS: f64 = 0.1;
/// A publisher is no longer limited after it has sent this factor less than its share for this
/// time, unless it grows by the third factor meanwhile: encoders take many seconds to reach their
/// limit, and without one they go far beyond what the link carries.
const SPARE: f64 = 1.3;
const SPARE_FOR: Duration = Duration::from_secs(8);
const GROWS: f64 = 1.15;

/// Whether more is sent than the link carries.
#[derive(Debug, Default)]
pub(super) struct Overload {
    since: Option<Instant>,
    is_certain: bool,
}

impl Overload {
    /// Takes the sent rate `flows` and the allowed rate `budget`.
    ///
    /// While little is known of a link, or a probe is active, no publisher is limited, since all
    /// its viewers would suffer. Neither is one because the viewer's feedback is missing.
    pub fn update(
        &mut self,
        (flows, budget): (DataRate, DataRate),
        estimate: &Estimate,
        now: Instant,
    ) {
        let unknown = match estimate.limit {
            Limit::Start | Limit::NoFeedback => true,
            Limit::Delay | Limit::Loss | Limit::Probe | Limit::Receiver => estimate.is_probing,
        };
        if unknown || flows <= budget {
            *self = Self::default();
            return;
        }
        let since = *self.since.get_or_insert(now);
        self.is_certain = estimate.queue > QUEUE
            || estimate.loss > LOSS
            || now.saturating_duration_since(since) >= BORNE;
    }

    /// Returns whether a publisher has to send less.
    pub fn is_certain(&self) -> bool {
        self.is_certain
    }
}

/// Whether the publisher of a track is limited.
#[derive(Debug, Default)]
pub(super) struct Asked {
    is_asked: bool,
    /// The start of a time with less than the share, and the lowest rate since.
    spare_since: Option<(Instant, DataRate)>,
}

impl Asked {
    /// Takes the rate `sends` of the publisher and its `share`. Returns whether it has to be
    /// limited.
    pub fn update(
        &mut self,
        overload: &Overload,
        (sends, share): (DataRate, DataRate),
        now: Instant,
    ) -> bool {
        if overload.is_certain() {
            (self.is_asked, self.spare_since) = (true, None);
        }
        if !self.is_asked {
            return false;
        }
        if share < sends.times(SPARE) {
            self.spare_since = None;
            return true;
        }
        // The rate is measured late: it seems to fall for some time after it has begun to grow.
        let (since, least) = self.spare_since.unwrap_or((now, sends));
        if sends > least.times(GROWS) {
            self.spare_since = Some((now, sends));
            return true;
        }
        self.spare_since = Some((since, least.min(sends)));
        self.is_asked = now.saturating_duration_since(since) < SPARE_FOR;
        self.is_asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(kbps: u64) -> Estimate {
        let rate = DataRate::kbps(kbps);
        Estimate {
            rate,
            budget: rate,
            queue: Duration::ZERO,
            loss: 0.0,
            round_trip: Duration::from_millis(50),
            limit: Limit::Delay,
            is_probing: false,
        }
    }

    #[test]
    fn nobody_is_asked_for_less_while_the_link_is_not_known() {
        let (mut overload, mut now) = (Overload::default(), Instant::now());
        let rates = (DataRate::kbps(2_000), DataRate::kbps(285));
        let ignorant = [
            Estimate {
                limit: Limit::Start,
                ..estimate(300)
            },
            Estimate {
                is_probing: true,
                ..estimate(300)
            },
            Estimate {
                limit: Limit::NoFeedback,
                queue: Duration::from_secs(1),
                ..estimate(300)
            },
        ];
        for estimate in ignorant {
            for _ in 0..20 {
                now += Duration::from_millis(250);
                overload.update(rates, &estimate, now);
                assert!(!overload.is_certain());
            }
        }
        overload.update(rates, &estimate(300), now);
        assert!(!overload.is_certain());
        overload.update(rates, &estimate(300), now + BORNE);
        assert!(overload.is_certain());
    }

    #[test]
    fn who_does_not_use_what_it_may_is_asked_no_longer() {
        let (mut overload, mut asked, now) =
            (Overload::default(), Asked::default(), Instant::now());
        let (sends, share) = (DataRate::kbps(800), DataRate::kbps(400));
        assert!(!asked.update(&overload, (sends, share), now));
        let congested = Estimate {
            queue: QUEUE * 2,
            ..estimate(400)
        };
        overload.update((sends, share), &congested, now);
        assert!(asked.update(&overload, (sends, share), now));
        overload.update((share, share), &estimate(400), now);
        assert!(asked.update(&overload, (share, share), now));
        assert!(asked.update(&overload, (share, sends), now));
        // The rate grows, so the publisher's need is unknown.
        let grown = share.times(1.3);
        assert!(asked.update(&overload, (grown, sends), now + SPARE_FOR / 2));
        assert!(asked.update(&overload, (grown, sends), now + SPARE_FOR));
        let later = now + SPARE_FOR / 2 + SPARE_FOR;
        assert!(!asked.update(&overload, (grown, sends), later));
    }

    #[test]
    fn who_seems_to_fall_before_it_grows_is_asked_for_as_long_as_it_grows() {
        let (mut overload, mut asked, mut now) =
            (Overload::default(), Asked::default(), Instant::now());
        let share = DataRate::kbps(1_000);
        let congested = Estimate {
            queue: QUEUE * 2,
            ..estimate(400)
        };
        overload.update((share, share.times(0.5)), &congested, now);
        assert!(asked.update(&overload, (share, share.times(0.5)), now));
        overload.update((share.times(0.5), share), &estimate(1_000), now);
        // Packets sent before count in the measured rate for a while.
        for kbps in [600, 500, 400, 300, 250, 260, 290, 330, 390, 450, 510, 580] {
            let sends = DataRate::kbps(kbps);
            assert!(asked.update(&overload, (sends, share), now), "{kbps}");
            now += Duration::from_secs(1);
        }
    }
}
