//! Feedback in, estimates and probes out.

use std::time::{Duration, Instant};

use portunus_rtp::rtcp::Twcc;

use super::estimator::Estimator;
use super::prober::Prober;
use super::{DataRate, Estimate, Limit, PacketResult, Padding, SentLog};

/// Changes of the estimate below this share are not reported.
const NEWS: f64 = 0.03;
/// A sender that uses less than this share of the estimate has long probes.
const SMALL: f64 = 0.5;
/// If the receiver's estimate falls to this share, its link is full. Smaller variation is normal.
const DECREASED: f64 = 0.9;
/// Packets are watched after the first time without a report. Feedback is missing if they are not
/// reported within the second time.
const WATCH: Duration = Duration::from_millis(500);
const MISSING: Duration = Duration::from_millis(700);

/// The bandwidth to one peer.
///
/// Polled like a connection: after feedback and timeouts, [`Bandwidth::poll_padding`] returns the
/// padding to send as a probe, and [`Bandwidth::poll_estimate`] the changed estimate.
#[derive(Debug)]
pub struct Bandwidth {
    measure: Measure,
    estimator: Estimator,
    prober: Prober,
    clock: ArrivalClock,
    receiver: Option<DataRate>,
    told: Option<Estimate>,
    heard: bool,
    watch: Watch,
    /// The packets of one feedback message.
    results: Vec<PacketResult>,
}

/// Whether feedback still arrives.
#[derive(Debug, Clone, Copy)]
enum Watch {
    Idle,
    /// Feedback arrived after this many packets had been sent.
    Since {
        packets: u64,
        at: Instant,
    },
    /// More packets were sent after the feedback.
    Awaited {
        at: Instant,
    },
}

/// The side that measures the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// This side, from transport-wide feedback.
    Transport,
    /// The receiver, which reports its estimate (REMB).
    Receiver,
}

impl Bandwidth {
    /// Makes the state without any knowledge of the link.
    pub fn new(measure: Measure) -> Self {
        Self {
            measure,
            estimator: Estimator::new(),
            prober: Prober::new(measure == Measure::Receiver),
            clock: ArrivalClock::default(),
            receiver: None,
            told: None,
            heard: false,
            watch: Watch::Idle,
            results: Vec::new(),
        }
    }

    /// Takes a transport-wide feedback message on packets of `log`.
    pub fn feedback(&mut self, log: &mut SentLog, message: &Twcc<'_>, now: Instant) {
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        for status in message.statuses() {
            let arrival = status.arrival.map(|at| self.clock.extend(at));
            if let Some(reported) = log.report(status.sequence, arrival.is_some(), now) {
                results.push(PacketResult::new(reported, arrival));
            }
        }
        if !results.is_empty() {
            self.heard = true;
            let before = self.estimator.estimate().rate;
            self.estimator.update(&mut results, log.clock(now), now);
            for packet in &results {
                self.prober.reported(packet, self.estimator.waited(packet));
            }
            self.prober.set_at_limit(self.estimator.is_at_limit(), now);
            self.prober.set_small(self.estimator.sends_less_than(SMALL));
            let estimate = self.estimator.estimate();
            if estimate.rate < before || estimate.is_emptying() {
                self.prober.decreased(now);
            }
            self.watch = Watch::Since {
                packets: log.packets(),
                at: now + WATCH,
            };
        }
        self.results = results;
        self.take_probe(now);
    }

    /// Takes the receiver's own estimate (REMB), if the receiver measures.
    ///
    /// It is ignored beside transport-wide feedback: it stays close to the sent rate, whatever the
    /// link carries, and probes do not raise it.
    pub fn receiver_estimate(&mut self, rate: DataRate, now: Instant) {
        if self.measure != Measure::Receiver {
            return;
        }
        if self
            .receiver
            .is_some_and(|last| rate < last.times(DECREASED))
        {
            self.prober.decreased(now);
        }
        self.heard = true;
        self.receiver = Some(rate);
    }

    /// Returns whether the peer has reported anything that the estimate follows.
    pub fn is_heard(&self) -> bool {
        self.heard
    }

    /// Returns which side measures.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Sets the rate that would be used if the link carried it. While it exceeds the estimate,
    /// probes look for more.
    pub fn want(&mut self, wanted: DataRate, now: Instant) {
        self.prober.want(wanted, now);
    }

    /// Sets whether the sent rate follows the estimate up and down, as an encoder does. It then
    /// shares a link evenly with other such flows.
    pub fn set_follows(&mut self, follows: bool) {
        self.estimator.set_follows(follows);
    }

    /// Returns the current estimate.
    pub fn estimate(&self) -> Estimate {
        let mut estimate = self.estimator.estimate();
        estimate.is_probing = self.prober.is_probing(estimate.rate);
        if let Some(rate) = self.receiver {
            // While a queue is emptied, the remaining share stays the same.
            let left = estimate.budget.as_bps() as f64 / estimate.rate.as_bps().max(1) as f64;
            estimate.rate = rate;
            estimate.budget = rate.times(left);
            estimate.limit = Limit::Receiver;
        }
        estimate
    }

    /// Returns the estimate if it has changed enough.
    pub fn poll_estimate(&mut self) -> Option<Estimate> {
        let estimate = self.estimate();
        let news = self.told.is_none_or(|told| {
            differs(told.rate, estimate.rate) || differs(told.budget, estimate.budget)
        });
        news.then(|| *self.told.insert(estimate))
    }

    /// Returns padding to send now, as packets that `log` records. Poll until it returns `None`.
    pub fn poll_padding(&mut self, log: &SentLog, now: Instant) -> Option<Padding> {
        let estimate = self.estimate().rate;
        self.prober.poll(estimate, log, now)
    }

    /// Returns when [`Bandwidth::poll_padding`] or [`Bandwidth::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let watch = match self.watch {
            Watch::Idle => None,
            Watch::Since { at, .. } | Watch::Awaited { at } => Some(at),
        };
        let rate = self.receiver;
        let rate = rate.unwrap_or_else(|| self.estimator.estimate().rate);
        let probe = self.prober.poll_timeout(rate);
        [watch, probe].into_iter().flatten().min()
    }

    /// Handles the timeouts that are due.
    pub fn handle_timeout(&mut self, log: &SentLog, now: Instant) {
        self.take_probe(now);
        match self.watch {
            Watch::Since { packets, at } if at <= now => {
                self.watch = if log.packets() > packets {
                    Watch::Awaited { at: now + MISSING }
                } else {
                    Watch::Idle
                };
            }
            Watch::Awaited { at } if at <= now => {
                self.estimator.feedback_missing(now);
                self.prober.decreased(now);
                self.watch = Watch::Since {
                    packets: log.packets(),
                    at: now + WATCH,
                };
            }
            Watch::Idle | Watch::Since { .. } | Watch::Awaited { .. } => {}
        }
    }

    fn take_probe(&mut self, now: Instant) {
        let estimate = self.estimator.estimate().rate;
        if let Some(result) = self.prober.take_result(estimate, now) {
            self.estimator.probed(&result, now);
        }
    }
}

/// The receiver's clock without its wrap-arounds, which come after some days.
#[derive(Debug, Default)]
struct ArrivalClock {
    last: Option<Duration>,
}

impl ArrivalClock {
    fn extend(&mut self, at: Duration) -> Duration {
        let period = Twcc::CLOCK_PERIOD;
        let Some(last) = self.last else {
            // Times before the first one stay positive.
            return *self.last.insert(at + period);
        };
        let rounds = u32::try_from(last.as_micros() / period.as_micros()).unwrap_or(1);
        let same = period.saturating_mul(rounds) + at;
        let candidates = [same.checked_sub(period), Some(same), Some(same + period)];
        let nearest = candidates
            .into_iter()
            .flatten()
            .min_by_key(|at| at.abs_diff(last));
        *self.last.insert(nearest.unwrap_or(same))
    }
}

fn differs(before: DataRate, after: DataRate) -> bool {
    let difference = before.as_bps().abs_diff(after.as_bps());
    difference as f64 > before.as_bps() as f64 * NEWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receivers_estimate_counts_only_where_the_receiver_measures() {
        let (rate, now) = (DataRate::kbps(94), Instant::now());
        for measure in [Measure::Transport, Measure::Receiver] {
            let mut bandwidth = Bandwidth::new(measure);
            let before = bandwidth.estimate().rate;
            bandwidth.receiver_estimate(rate, now);
            let is_heard = measure == Measure::Receiver;
            assert_eq!(bandwidth.is_heard(), is_heard);
            let expected = if is_heard { rate } else { before };
            assert_eq!(bandwidth.estimate().rate, expected);
        }
    }

    #[test]
    fn the_clock_goes_on_where_the_receivers_starts_again() {
        let mut clock = ArrivalClock::default();
        let end = Twcc::CLOCK_PERIOD - Duration::from_millis(10);
        let first = clock.extend(end);
        let second = clock.extend(Duration::from_millis(5));
        assert_eq!(second - first, Duration::from_millis(15));
        let back = clock.extend(end);
        assert_eq!(back, first);
    }
}
