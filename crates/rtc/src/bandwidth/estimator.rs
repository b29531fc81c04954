//! The estimate: what delay, losses and probes say together.

use std::time::{Duration, Instant};

use super::acknowledged::Acknowledged;
use super::aimd::Aimd;
use super::groups::Groups;
use super::loss::{LossLimit, Rates};
use super::probe::ProbeResult;
use super::queue::Queue;
use super::trend::{Trend, Usage};
use super::{DataRate, Estimate, Limit, PacketResult};

/// The estimate before anything is known, and the least there is.
const START: DataRate = DataRate::kbps(300);
const LEAST: DataRate = DataRate::kbps(30);
/// After a pause of the feedback the past says nothing of the delay.
const PAUSE: Duration = Duration::from_secs(2);
/// Overuse is doubted, unless the queue is long, while less than this share of the estimate arrives: what
/// does not fill a link does not lengthen its queue.
const UNFILLED: f64 = 0.7;
/// A queue that is longer is overuse without waiting for a trend. It is emptied before anything else,
/// until it is shorter than the second.
const LONG_QUEUE: Duration = Duration::from_millis(125);
const EMPTIED_QUEUE: Duration = Duration::from_millis(50);
/// Who sends less than this share of the estimate is not the one to give way first, unless the queue is longer than the
/// second: a probe has shown that more is this flow's part of the link, so that others take more than theirs.
const SMALL: f64 = 0.6;
const VERY_LONG_QUEUE: Duration = Duration::from_millis(250);
/// A probe that finds less than the estimate takes it so far towards what it found, but not below so many times what
/// arrives: of many probes beside others it would become what the luckiest found. One that finds the end of the link
/// above it takes it no further either, if another had found an end within this time.
const TOWARDS_PROBE: f64 = 0.5;
const ABOVE_ACKNOWLEDGED: f64 = 1.2;
const END_IS_KNOWN: Duration = Duration::from_secs(10);
/// A queue that stays so long is overuse to flows that follow the estimate, or two packets of what they send if that
/// is longer: so of several that share a link those give way first that send the most.
const STANDING_QUEUE: Duration = Duration::from_millis(15);
const STANDING_PACKETS: u64 = 2 * 1_200;
/// It is to be empty after this time, for which at least a share of the estimate is left, ...
const EMPTY_WITHIN: f64 = 0.5;
const LEFT_WHILE_EMPTYING: f64 = 0.25;
/// ... and if it is not after this time, it is not ours: the route is longer, or others fill it.
const NOT_OURS: Duration = Duration::from_secs(4);
/// Before anything was measured.
const USUAL_ROUND_TRIP: Duration = Duration::from_millis(100);
/// While feedback is missing.
const WITHOUT_FEEDBACK: f64 = 0.5;

/// What is known of the way to a peer that sends transport-wide feedback.
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
    /// Since when a long queue is emptied.
    emptying: Option<Instant>,
    /// Since when a queue stands although the rate gives way to it.
    standing: Option<Instant>,
    /// What is sent follows the estimate.
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

    /// Whether what is sent follows the estimate, up and down.
    pub fn set_follows(&mut self, follows: bool) {
        self.follows = follows;
    }

    /// Whether what is sent goes to and fro with the estimate, just below what the link carries.
    pub fn is_at_limit(&self) -> bool {
        let delay = self.aimd.rate();
        let is_lossy = self.loss.rate().is_some_and(|rate| rate < delay);
        self.follows && self.aimd.is_near_limit() && !is_lossy
    }

    /// The present estimate.
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

    /// Takes the packets of a feedback message; `clock` is the present on the clock of their sending.
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

    /// How long a packet waited on the way; none if it was lost.
    pub fn waited(&self, packet: &PacketResult) -> Option<Duration> {
        Some(self.queue.waited(packet.sent, packet.arrival?))
    }

    /// Takes the outcome of a probe. A cluster is too short to say that a link has become slower than what flows
    /// needs: it only lowers what is above that, which no more than another probe had found.
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

    /// No feedback came although packets were sent.
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
            // All who share a link are to give way by the same share, also if more came of one by chance.
            Usage::Over if self.is_at_limit() && self.aimd.has_settled(now) => {
                let full = self.acknowledged.rate_of_full_link();
                full.map(|rate| rate.min(self.aimd.rate()))
            }
            Usage::Over => self.acknowledged.rate_of_full_link(),
            Usage::Normal | Usage::Under => self.acknowledged.rate(),
        };
        self.aimd.update(usage, acknowledged, self.round_trip, now);
    }

    /// Whether less than this share of the estimate is sent. What arrives does not say it: of a link that collapses
    /// little does.
    pub fn sends_less_than(&self, share: f64) -> bool {
        let sent = self.acknowledged.sent_rate();
        !self.follows && sent.is_some_and(|sent| sent < self.rate().times(share))
    }

    /// What the trend says, unless the queue itself says otherwise.
    fn usage(&self, now: Instant) -> Usage {
        let (delay, grows) = (self.queue.delay(), self.queue.grows());
        let arrives = self.acknowledged.rate();
        let unfilled = arrives.is_some_and(|rate| rate < self.rate().times(UNFILLED));
        let is_long = delay > LONG_QUEUE;
        match self.trend.usage() {
            // What packets waited for was not the link.
            usage if (usage == Usage::Over || is_long && grows) && self.acknowledged.rushes() => {
                Usage::Under
            }
            _ if is_long && grows => Usage::Over,
            // It gets shorter already.
            _ if is_long => Usage::Under,
            usage if self.is_at_limit() && !unfilled => self.usage_at_limit(usage, now),
            Usage::Over if !grows || unfilled => Usage::Under,
            usage => usage,
        }
    }

    /// What the trend says is mostly of a flow's own bursts, and of several flows on a full link it says overuse now to
    /// one and then to another: who happens to give way twice loses what the others take. So the standing queue
    /// says it, at about the same time to all.
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

    /// Whether no packet was spared a queue lately.
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
        // A longer route, or others that keep the queue long: to give way further would not make it shorter.
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

    /// The share of the estimate that is left while a queue is emptied.
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
            // Not the end.
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
