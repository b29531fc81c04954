//! The estimate from delay, loss and probes together.

use std::time::{Duration, Instant};

use super::acknowledged_rate::Acknowledged;
use super::aimd::Aimd;
use super::groups::Groups;
use super::loss::{LossLimit, Rates};
use super::probe::ProbeResult;
use super::queue::Queue;
use super::trend::{Trend, Usage};
use super::{DataRate, Estimate, Limit, PacketResult};

/// The first estimate, and the lowest one.
const START: DataRate = DataRate::kbps(300);
const LEAST: DataRate = DataRate::kbps(30);
/// After such a pause of the feedback, past delays say nothing.
const PAUSE: Duration = Duration::from_secs(2);
/// Overuse is doubted while less than this share of the estimate arrives, unless the queue is long:
/// a flow that does not fill a link does not lengthen its queue.
const UNFILLED: f64 = 0.7;
/// A queue above the first length is overuse without waiting for a trend. It is emptied before
/// anything else, until it is shorter than the second length.
const LONG_QUEUE: Duration = Duration::from_millis(125);
const EMPTIED_QUEUE: Duration = Duration::from_millis(50);
/// A sender that uses less than this share of the estimate is not the first to slow down, unless
/// the queue is longer than the second value: a probe has shown that more is its part of the link,
/// so that others take more than theirs.
const SMALL: f64 = 0.6;
const VERY_LONG_QUEUE: Duration = Duration::from_millis(250);
/// A probe that finds less than the estimate moves it this share towards its result, but not below
/// this factor of the acknowledged rate. Otherwise, the luckiest of many probes beside other flows
/// would decide. Neither does a probe that found the end of the link above the estimate raise it
/// further, if another did within this time.
const TOWARDS_PROBE: f64 = 0.5;
const ABOVE_ACKNOWLEDGED: f64 = 1.2;
const END_IS_KNOWN: Duration = Duration::from_secs(10);
/// A queue that stays this long is overuse for flows that follow the estimate; so is one of two
/// packets if that is longer. So of several flows on a link, those that send the most slow down
/// first.
const STANDING_QUEUE: Duration = Duration::from_millis(15);
const STANDING_PACKETS: u64 = 2 * 1_200;
/// The queue should be empty after this time, for which at least a share of the estimate is left,
/// ...
const EMPTY_WITHIN: f64 = 0.5;
const LEFT_WHILE_EMPTYING: f64 = 0.25;
/// ... and if it is not empty after this time, it is not ours: the route is longer, or others fill
/// it.
const NOT_OURS: Duration = Duration::from_secs(4);
/// The assumed round trip before the first measurement.
const USUAL_ROUND_TRIP: Duration = Duration::from_millis(100);
/// The factor of the estimate while feedback is missing.
const WITHOUT_FEEDBACK: f64 = 0.5;

/// The state of the way to a peer that sends transport-wide feedback.
#[derive(Debug)]
pub(super) struct Estimator {
    groups: Groups,
    trend: Trend,
    acknowledged: Acknowledged,
    queue: Queue,
    aimd: Aimd,
    loss: LossLimit,
    round_trip: Duration,
    last_feedback: Option<Instant>,
    /// Start of emptying a long queue.
    emptying: Option<Instant>,
    /// Start of a standing queue although the rate has decreased.
    standing: Option<Instant>,
    /// Whether the sent rate follows the estimate.
    follows: bool,
    /// When a probe found the end of the link.
    end_found: Option<Instant>,
    limit: Limit,
}

impl Estimator {
    pub fn new() -> Self {
        Self {
            groups: Groups::default(),
            trend: Trend::default(),
            acknowledged: Acknowledged::default(),
            queue: Queue::default(),
            aimd: Aimd::new(START),
            loss: LossLimit::default(),
            round_trip: USUAL_ROUND_TRIP,
            last_feedback: None,
            emptying: None,
            standing: None,
            follows: false,
            end_found: None,
            limit: Limit::Start,
        }
    }

    /// Sets whether the sent rate follows the estimate, up and down.
    pub fn set_follows(&mut self, follows: bool) {
        self.follows = follows;
    }

    /// Returns whether the sent rate varies with the estimate just below what the link carries.
    pub fn is_at_limit(&self) -> bool {
        let delay = self.aimd.rate();
        let is_lossy = self.loss.rate().is_some_and(|rate| rate < delay);
        self.follows && self.aimd.is_near_limit() && !is_lossy
    }

    /// Returns the current estimate.
    pub fn estimate(&self) -> Estimate {
        let rate = self.rate();
        Estimate {
            rate,
            budget: rate.times(self.left()),
            queue: self.queue.delay(),
            loss: self.loss.share(),
            round_trip: self.round_trip,
            limit: self.limit,
            is_probing: false,
        }
    }

    /// Takes the packets of a feedback message. `clock` is the current time on the clock of
    /// sending.
    pub fn update(&mut self, packets: &mut [PacketResult], clock: Duration, now: Instant) {
        let last = self.last_feedback.replace(now);
        if last.is_some_and(|last| now.saturating_duration_since(last) > PAUSE) {
            self.groups = Groups::default();
            self.trend = Trend::default();
            self.acknowledged.reset();
        }
        self.queue.push(packets);
        packets.sort_unstable_by_key(|packet| (packet.arrival.is_none(), packet.arrival));
        for packet in packets.iter() {
            let Some(arrival) = packet.arrival else {
                continue;
            };
            let waited = self.queue.waited(packet.sent, arrival);
            self.acknowledged.push(packet, waited);
            if let Some(delta) = self.groups.push(packet) {
                self.trend.push(&delta);
            }
        }
        let newest = packets
            .iter()
            .filter(|p| p.arrival.is_some())
            .map(|p| p.sent)
            .max();
        if let Some(newest) = newest {
            self.round_trip = clock.saturating_sub(newest);
        }
        let before = self.rate();
        self.update_delay(now);
        self.update_losses(packets, now);
        self.update_queue(now);
        if self.rate() != before {
            self.limit = match self.loss.rate() {
                Some(loss) if loss < self.aimd.rate() => Limit::Loss,
                _ => Limit::Delay,
            };
        }
    }

    /// Returns how long a packet waited on the way, or `None` if it was lost.
    pub fn waited(&self, packet: &PacketResult) -> Option<Duration> {
        Some(self.queue.waited(packet.sent, packet.arrival?))
    }

    /// Takes the result of a probe. A cluster is too short to show that a link has become slower
    /// than the current traffic. It only lowers an excess that no other probe had found.
    pub fn probed(&mut self, result: &ProbeResult, now: Instant) {
        let Some(passed) = result.passed else { return };
        if self.emptying.is_some() {
            return;
        }
        self.loss.passed(passed);
        let is_end = result.is_full && !self.acknowledged.rushes();
        let last = self.end_found;
        if is_end {
            self.end_found = Some(now);
        }
        let before = self.aimd.rate();
        if passed > before {
            let is_recent = |last: Instant| now.saturating_duration_since(last) < END_IS_KNOWN;
            let is_lucky = is_end && last.is_some_and(is_recent);
            let share = if is_lucky { TOWARDS_PROBE } else { 1.0 };
            self.aimd.set(before + (passed - before).times(share), now);
            self.limit = Limit::Probe;
        } else if is_end {
            self.found_less(passed, now);
        }
    }

    fn found_less(&mut self, passed: DataRate, now: Instant) {
        let Some(arrives) = self.acknowledged.rate() else {
            return;
        };
        let before = self.aimd.rate();
        let rate = before - (before - passed).times(TOWARDS_PROBE);
        let rate = rate.max(arrives.times(ABOVE_ACKNOWLEDGED));
        if rate < before {
            self.aimd.set(rate, now);
        }
    }

    /// Handles missing feedback although packets were sent.
    pub fn feedback_missing(&mut self, now: Instant) {
        self.aimd
            .set(self.rate().times(WITHOUT_FEEDBACK).max(LEAST), now);
        self.limit = Limit::NoFeedback;
    }

    fn update_delay(&mut self, now: Instant) {
        let usage = self.usage(now);
        if usage == Usage::Over
            && self.sends_less_than(SMALL)
            && self.queue.delay() <= VERY_LONG_QUEUE
        {
            if self.acknowledged.rate_of_full_link().is_some() {
                self.aimd.ease(self.round_trip, now);
            }
            return;
        }
        let acknowledged = match usage {
            // All flows on a link should decrease by the same share, even if more of one arrived by
            // chance.
            Usage::Over if self.is_at_limit() && self.aimd.has_settled(now) => {
                let full = self.acknowledged.rate_of_full_link();
                full.map(|rate| rate.min(self.aimd.rate()))
            }
            Usage::Over => self.acknowledged.rate_of_full_link(),
            Usage::Normal | Usage::Under => self.acknowledged.rate(),
        };
        self.aimd.update(usage, acknowledged, self.round_trip, now);
    }

    /// Returns whether less than this share of the estimate is sent. The arrivals do not show it,
    /// since less arrives when a link collapses.
    pub fn sends_less_than(&self, share: f64) -> bool {
        let sent = self.acknowledged.sent_rate();
        !self.follows && sent.is_some_and(|sent| sent < self.rate().times(share))
    }

    /// Returns the usage that the trend indicates, unless the queue itself says otherwise.
    fn usage(&self, now: Instant) -> Usage {
        let (delay, grows) = (self.queue.delay(), self.queue.grows());
        let arrives = self.acknowledged.rate();
        let unfilled = arrives.is_some_and(|rate| rate < self.rate().times(UNFILLED));
        let is_long = delay > LONG_QUEUE;
        match self.trend.usage() {
            // The packets did not wait for the link.
            usage if (usage == Usage::Over || is_long && grows) && self.acknowledged.rushes() => {
                Usage::Under
            }
            _ if is_long && grows => Usage::Over,
            // The queue shrinks already.
            _ if is_long => Usage::Under,
            usage if self.is_at_limit() && !unfilled => self.usage_at_limit(usage, now),
            Usage::Over if !grows || unfilled => Usage::Under,
            usage => usage,
        }
    }

    /// Returns the usage of a flow at the limit of its link. The trend mostly shows the flow's own
    /// bursts, and reports overuse to one flow after another, so that one that decreases twice by
    /// chance loses its share. The standing queue is seen by all at about the same time.
    fn usage_at_limit(&self, trend: Usage, now: Instant) -> Usage {
        if !self.queue_stands() {
            return match trend {
                Usage::Over => Usage::Normal,
                usage => usage,
            };
        }
        if self.aimd.has_settled(now) {
            Usage::Over
        } else {
            Usage::Under
        }
    }

    /// Returns whether all recent packets waited in a queue.
    fn queue_stands(&self) -> bool {
        let long = self.rate().time_for(STANDING_PACKETS).max(STANDING_QUEUE);
        self.queue.standing() >= long
    }

    fn update_losses(&mut self, packets: &[PacketResult], now: Instant) {
        let count = |lost: bool| {
            let counted = packets
                .iter()
                .filter(|p| !p.late && p.arrival.is_none() == lost);
            u32::try_from(counted.count()).unwrap_or(u32::MAX)
        };
        for _ in packets.iter().filter(|packet| packet.late) {
            self.loss.came_late();
        }
        let lost = count(true);
        let rates = Rates {
            current: self.rate(),
            delay_based: self.aimd.rate(),
            acknowledged: self.acknowledged.rate(),
        };
        let total = lost.saturating_add(count(false));
        self.loss.update((lost, total), rates, self.round_trip, now);
    }

    fn update_queue(&mut self, now: Instant) {
        let delay = self.queue.delay();
        match self.emptying {
            None if delay > LONG_QUEUE && !self.acknowledged.rushes() => self.emptying = Some(now),
            Some(_) if delay < EMPTIED_QUEUE => self.emptying = None,
            Some(since) if now.saturating_duration_since(since) > NOT_OURS => {
                self.emptying = None;
                self.queue.rebase();
            }
            _ => {}
        }
        // The route is longer, or others keep the queue long: further decreases would not shorten
        // it.
        if !(self.is_at_limit() && self.queue_stands()) {
            self.standing = None;
            return;
        }
        let since = *self.standing.get_or_insert(now);
        if now.saturating_duration_since(since) > NOT_OURS {
            self.standing = None;
            self.queue.rebase();
        }
    }

    fn rate(&self) -> DataRate {
        let delay = self.aimd.rate();
        self.loss
            .rate()
            .map_or(delay, |loss| loss.min(delay))
            .max(LEAST)
    }

    /// Returns the share of the estimate that is left while a queue is emptied.
    fn left(&self) -> f64 {
        if self.emptying.is_none() {
            return 1.0;
        }
        let share = 1.0 - self.queue.delay().as_secs_f64() / EMPTY_WITHIN;
        share.clamp(LEFT_WHILE_EMPTYING, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_probe_finds_above_a_known_end_of_the_link_counts_by_half() {
        let start = Instant::now();
        let mut estimator = Estimator::new();
        for (after, kbps, is_full, expected) in [
            (0, 1_000, false, 1_000),
            (3, 1_400, true, 1_400),
            (6, 1_800, true, 1_600),
            (9, 1_800, true, 1_700),
            // This is not the end of the link.
            (12, 2_000, false, 2_000),
            // The end that was found before is out of date.
            (20, 2_400, true, 2_400),
        ] {
            let result = ProbeResult {
                target: DataRate::kbps(kbps),
                passed: Some(DataRate::kbps(kbps)),
                is_unclear: false,
                is_full,
            };
            estimator.probed(&result, start + Duration::from_secs(after));
            let estimate = estimator.estimate();
            assert_eq!(estimate.rate, DataRate::kbps(expected), "after {after} s");
        }
    }
}
