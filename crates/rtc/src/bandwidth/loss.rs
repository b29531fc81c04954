//! The loss-based rate (draft-ietf-rmcat-gcc-02 section 6).

use std::time::{Duration, Instant};

use super::DataRate;

/// The least time and the least packets over which losses are counted.
const WINDOW: Duration = Duration::from_millis(300);
const PACKETS: u32 = 20;
/// The rate grows up to the first share of losses, and shrinks above the second.
const TOLERATED: f64 = 0.02;
const TOO_MANY: f64 = 0.1;
/// Above this share in two windows, the link carries what arrives. In one window, a keyframe may
/// have been too much for a short queue.
const MOST: f64 = 0.3;
/// Growth per window: 8 % per second.
const INCREASE: f64 = 1.08;
/// The most that the rate may exceed the acknowledged rate, as a factor. Probes find out whether
/// more passes.
const ABOVE_ACKNOWLEDGED: f64 = 1.2;

/// The rates that losses are judged with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// The rate that all limits together allow.
    pub current: DataRate,
    /// The rate that the delay allows. Losses no longer limit once they allow as much.
    pub delay_based: DataRate,
    /// The rate of arrivals.
    pub acknowledged: Option<DataRate>,
}

/// The rate that the losses allow. Only losses of the transport itself count. Gaps in the
/// publisher's stream do not, since every packet gets a new number.
#[derive(Debug, Default)]
pub(super) struct LossLimit {
    /// `None` while losses do not limit the rate.
    limit: Option<DataRate>,
    lost: u32,
    total: u32,
    since: Option<Instant>,
    decreased: Option<Instant>,
    share: f64,
    /// The share of the window before.
    before: f64,
}

impl LossLimit {
    /// Returns the rate, or `None` if losses do not limit it.
    pub fn rate(&self) -> Option<DataRate> {
        self.limit
    }

    /// Returns the share of packets lost in the last window.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Corrects for a packet that arrived after it was reported lost.
    pub fn came_late(&mut self) {
        self.lost = self.lost.saturating_sub(1);
    }

    /// Takes the result of a probe: `rate` passes.
    pub fn passed(&mut self, rate: DataRate) {
        if self.share < TOLERATED {
            self.limit = self.limit.map(|limit| limit.max(rate));
        }
    }

    /// Takes the counts of a feedback message: `lost` of `total` packets.
    pub fn update(
        &mut self,
        (lost, total): (u32, u32),
        rates: Rates,
        round_trip: Duration,
        now: Instant,
    ) {
        self.lost = self.lost.saturating_add(lost);
        self.total = self.total.saturating_add(total);
        let since = *self.since.get_or_insert(now);
        if self.total < PACKETS || now.saturating_duration_since(since) < WINDOW {
            return;
        }
        self.before = self.share;
        self.share = f64::from(self.lost) / f64::from(self.total);
        (self.lost, self.total, self.since) = (0, 0, Some(now));
        let waited = self
            .decreased
            .is_none_or(|at| now >= at + WINDOW + round_trip);
        if self.share <= TOLERATED {
            self.grow(now.saturating_duration_since(since), rates);
        } else if self.share > TOO_MANY && waited {
            let rate = rates.current.times(1.0 - self.share / 2.0);
            let carried = rates
                .acknowledged
                .filter(|_| self.share.min(self.before) > MOST);
            self.limit = Some(carried.map_or(rate, |carried| rate.min(carried)));
            self.decreased = Some(now);
        }
    }

    fn grow(&mut self, elapsed: Duration, rates: Rates) {
        let Some(limit) = self.limit else { return };
        let seconds = elapsed.min(Duration::from_secs(1)).as_secs_f64();
        let grown = limit.times(INCREASE.powf(seconds)) + DataRate::kbps(1);
        let most = rates
            .acknowledged
            .map(|rate| rate.times(ABOVE_ACKNOWLEDGED));
        let limit = most.map_or(grown, |most| grown.min(most)).max(limit);
        self.limit = (limit < rates.delay_based).then_some(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);
    const CURRENT: DataRate = DataRate::kbps(1_000);

    fn rates(current: DataRate, acknowledged: DataRate) -> Rates {
        Rates {
            current,
            delay_based: CURRENT,
            acknowledged: Some(acknowledged),
        }
    }

    fn run(limit: &mut LossLimit, now: &mut Instant, lost: u32, times: u32) {
        for _ in 0..times {
            *now += Duration::from_millis(100);
            let current = limit.rate().unwrap_or(CURRENT);
            limit.update((lost, 100), rates(current, current), RTT, *now);
        }
    }

    #[test]
    fn few_losses_limit_nothing_and_many_do() {
        let (mut limit, mut now) = (LossLimit::default(), Instant::now());
        run(&mut limit, &mut now, 1, 50);
        assert_eq!(limit.rate(), None);
        run(&mut limit, &mut now, 8, 50);
        assert_eq!(limit.rate(), None);
        run(&mut limit, &mut now, 20, 3);
        assert_eq!(limit.rate(), Some(DataRate::kbps(900)));
        run(&mut limit, &mut now, 8, 50);
        assert_eq!(
            limit.rate(),
            Some(DataRate::kbps(900)),
            "neither few nor many"
        );
    }

    #[test]
    fn a_link_that_loses_most_is_as_fast_as_what_arrives() {
        let (mut limit, now) = (LossLimit::default(), Instant::now());
        let arrives = rates(CURRENT, DataRate::kbps(300));
        limit.update((0, 10), arrives, RTT, now);
        let mut at = now;
        for expected in [600, 300] {
            at += Duration::from_millis(400);
            limit.update((80, 90), arrives, RTT, at);
            let rate = limit.rate().unwrap_or_default().as_bps() / 100_000 * 100;
            assert!(rate.abs_diff(expected) <= 100, "{rate}");
        }
    }

    #[test]
    fn without_losses_it_grows_until_it_limits_no_longer() {
        let (mut limit, mut now) = (LossLimit::default(), Instant::now());
        run(&mut limit, &mut now, 20, 4);
        run(&mut limit, &mut now, 0, 100);
        assert_eq!(limit.rate(), None);
        run(&mut limit, &mut now, 20, 4);
        let limited = limit.rate();
        for _ in 0..50 {
            now += Duration::from_millis(100);
            limit.update((0, 100), rates(CURRENT, DataRate::kbps(200)), RTT, now);
        }
        assert_eq!(
            limit.rate(),
            limited,
            "while little is sent nothing is known"
        );
        limit.passed(DataRate::kbps(2_000));
        run(&mut limit, &mut now, 0, 4);
        assert_eq!(limit.rate(), None);
    }
}
