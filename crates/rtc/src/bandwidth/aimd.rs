//! The delay-based rate: multiplicative and additive increase, multiplicative decrease
//! (draft-ietf-rmcat-gcc-02 section 5.5).

use std::time::{Duration, Instant};

use super::DataRate;
use super::trend::Usage;

/// The share of the acknowledged rate that is kept on overuse.
const BETA: f64 = 0.85;
/// Multiplicative increase per second.
const INCREASE: f64 = 1.08;
/// The most that the rate may exceed the acknowledged rate. Probes find out whether more passes.
const ABOVE_ACKNOWLEDGED: (f64, DataRate) = (1.2, DataRate::kbps(10));
/// The least additive increase per second.
const LEAST_INCREASE: DataRate = DataRate::kbps(4);
/// The frame rate and packet size from which the additive increase is computed.
const FRAMES: u64 = 30;
const PACKET: u64 = 1_200;
/// The bounds of the time from an overuse to the next decrease, which is a round trip.
const DECREASE_INTERVAL: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_millis(300));
/// A rate above this share of the full link's rate is near it.
const NEAR: f64 = 0.5;
/// The time after which the sender has slowed down, and a queue has become shorter.
const FOLLOWED: Duration = Duration::from_secs(1);

/// The rate that the delay allows.
#[derive(Debug)]
pub(super) struct Aimd {
    rate: DataRate,
    state: State,
    changed: Option<Instant>,
    decreased: Option<Instant>,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
}

impl Aimd {
    /// Starts with `rate`.
    pub fn new(rate: DataRate) -> Self {
        Self {
            rate,
            state: State::Hold,
            changed: None,
            decreased: None,
            capacity: Capacity::default(),
        }
    }

    pub fn rate(&self) -> DataRate {
        self.rate
    }

    /// Returns whether the rate at which the link was full is known, and the current rate is not
    /// far below it.
    pub fn is_near_limit(&self) -> bool {
        let near = |mean: DataRate| self.rate >= mean.times(NEAR);
        self.capacity.mean.is_some_and(near)
    }

    /// Returns whether a decrease has taken effect.
    pub fn has_settled(&self, now: Instant) -> bool {
        self.decreased.is_none_or(|at| now >= at + FOLLOWED)
    }

    /// Sets a rate that was found by other means, such as a probe.
    pub fn set(&mut self, rate: DataRate, now: Instant) {
        if self.capacity.range().is_some_and(|(_, most)| rate > most) {
            self.capacity = Capacity::default();
        }
        self.rate = rate;
        self.changed = Some(now);
    }

    /// Takes the link usage that the delay indicates.
    pub fn update(
        &mut self,
        usage: Usage,
        acknowledged: Option<DataRate>,
        round_trip: Duration,
        now: Instant,
    ) {
        match (usage, self.state) {
            (Usage::Over, _) => {
                if let Some(acknowledged) = acknowledged
                    && self.may_decrease(acknowledged, round_trip, now)
                {
                    self.decrease(acknowledged, now);
                }
                self.state = State::Hold;
            }
            (Usage::Under, _) => self.state = State::Hold,
            (Usage::Normal, State::Hold) => {
                self.state = State::Increase;
                self.changed = Some(now);
            }
            (Usage::Normal, State::Increase) => {
                if let Some(acknowledged) = acknowledged {
                    self.increase(acknowledged, round_trip, now);
                }
            }
        }
    }

    /// Returns whether the rate may decrease again. The effect of a decrease shows only after a
    /// round trip.
    fn may_decrease(&self, acknowledged: DataRate, round_trip: Duration, now: Instant) -> bool {
        let interval = round_trip.clamp(DECREASE_INTERVAL.0, DECREASE_INTERVAL.1);
        let waited = self.decreased.is_none_or(|at| now >= at + interval);
        waited || acknowledged < self.rate.times(0.5)
    }

    /// Lowers the rate by a share of itself, not of the acknowledged rate: the link is full, but
    /// hardly by this flow.
    pub fn ease(&mut self, round_trip: Duration, now: Instant) {
        if self.may_decrease(self.rate, round_trip, now) {
            self.rate = self.rate.times(BETA);
            self.changed = Some(now);
            self.decreased = Some(now);
        }
        self.state = State::Hold;
    }

    fn decrease(&mut self, acknowledged: DataRate, now: Instant) {
        if self
            .capacity
            .range()
            .is_some_and(|(least, _)| acknowledged < least)
        {
            self.capacity = Capacity::default();
        }
        self.capacity.learn(acknowledged);
        let mut rate = acknowledged.times(BETA);
        if rate > self.rate {
            // The rate was too low before, so the mean of past overuses says more.
            rate = self
                .capacity
                .mean
                .map_or(self.rate, |mean| mean.times(BETA));
        }
        self.rate = rate.min(self.rate);
        self.changed = Some(now);
        self.decreased = Some(now);
    }

    fn increase(&mut self, acknowledged: DataRate, round_trip: Duration, now: Instant) {
        let since = self
            .changed
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let seconds = since.min(Duration::from_secs(1)).as_secs_f64();
        self.changed = Some(now);
        if self
            .capacity
            .range()
            .is_some_and(|(_, most)| acknowledged > most)
        {
            self.capacity = Capacity::default();
        }
        let more = if self.capacity.mean.is_some() {
            // Near the rate at which the link was full, the rate grows slowly.
            self.additive(round_trip).times(seconds)
        } else {
            self.rate.times(INCREASE.powf(seconds) - 1.0)
        };
        let (factor, constant) = ABOVE_ACKNOWLEDGED;
        let most = acknowledged.times(factor) + constant;
        if self.rate < most {
            self.rate = (self.rate + more).min(most);
        }
    }

    /// Returns the additive increase: one packet per response time.
    fn additive(&self, round_trip: Duration) -> DataRate {
        let frame = self.rate.as_bps() / 8 / FRAMES;
        let packets = frame.div_ceil(PACKET).max(1);
        let response = round_trip + Duration::from_millis(100);
        let more = DataRate::of(frame / packets, response).unwrap_or_default();
        more.max(LEAST_INCREASE)
    }
}

/// The capacity of the link: the acknowledged rate at past overuses, with its deviation.
#[derive(Debug, Default)]
struct Capacity {
    mean: Option<DataRate>,
    /// The variance divided by the mean, in kbit/s.
    deviation: f64,
}

impl Capacity {
    const WEIGHT: f64 = 0.05;
    const DEVIATION: (f64, f64) = (0.4, 2.5);

    fn learn(&mut self, sample: DataRate) {
        let Some(mean) = self.mean else {
            self.mean = Some(sample);
            self.deviation = Self::DEVIATION.0;
            return;
        };
        let (mean, sample) = (kbps(mean), kbps(sample));
        let error = mean - sample;
        let mean = mean - Self::WEIGHT * error;
        let deviation =
            (1.0 - Self::WEIGHT) * self.deviation + Self::WEIGHT * error * error / mean.max(1.0);
        self.deviation = deviation.clamp(Self::DEVIATION.0, Self::DEVIATION.1);
        self.mean = Some(DataRate::bps((mean * 1_000.0) as u64));
    }

    /// Returns the range of three deviations around the mean.
    fn range(&self) -> Option<(DataRate, DataRate)> {
        let mean = kbps(self.mean?);
        let around = 3.0 * (self.deviation * mean).sqrt();
        let rate = |kbps: f64| DataRate::bps((kbps.max(0.0) * 1_000.0) as u64);
        Some((rate(mean - around), rate(mean + around)))
    }
}

fn kbps(rate: DataRate) -> f64 {
    rate.as_bps() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);
    const STEP: Duration = Duration::from_millis(100);

    #[test]
    fn it_grows_by_eight_percent_a_second_up_to_a_fifth_more_than_arrives() {
        let mut now = Instant::now();
        let mut aimd = Aimd::new(DataRate::kbps(1_000));
        let acknowledged = Some(DataRate::kbps(1_000));
        aimd.update(Usage::Normal, acknowledged, RTT, now);
        for _ in 0..10 {
            now += STEP;
            aimd.update(Usage::Normal, acknowledged, RTT, now);
        }
        let rate = aimd.rate();
        assert!((1_078_000..1_082_000).contains(&rate.as_bps()), "{rate:?}");
        for _ in 0..200 {
            now += STEP;
            aimd.update(Usage::Normal, acknowledged, RTT, now);
        }
        assert_eq!(aimd.rate(), DataRate::kbps(1_210));
    }

    #[test]
    fn overuse_leaves_a_part_of_what_arrives_and_growth_is_slow_after_it() {
        let mut now = Instant::now();
        let mut aimd = Aimd::new(DataRate::kbps(2_000));
        let acknowledged = Some(DataRate::kbps(1_000));
        aimd.update(Usage::Over, acknowledged, RTT, now);
        assert_eq!(aimd.rate(), DataRate::kbps(850));
        aimd.update(Usage::Over, Some(DataRate::kbps(900)), RTT, now + STEP / 2);
        assert_eq!(
            aimd.rate(),
            DataRate::kbps(850),
            "the round trip is not over"
        );
        aimd.update(Usage::Under, acknowledged, RTT, now);
        assert_eq!(aimd.rate(), DataRate::kbps(850));
        aimd.update(Usage::Normal, acknowledged, RTT, now);
        for _ in 0..10 {
            now += STEP;
            aimd.update(Usage::Normal, acknowledged, RTT, now);
        }
        let rate = aimd.rate().as_bps();
        assert!((870_000..930_000).contains(&rate), "{rate}");
    }

    #[test]
    fn who_hardly_fills_the_link_gives_way_step_by_step() {
        let now = Instant::now();
        let mut aimd = Aimd::new(DataRate::kbps(2_000));
        for (after, expected) in [(0, 1_700), (50, 1_700), (300, 1_445)] {
            aimd.ease(RTT, now + Duration::from_millis(after));
            assert_eq!(aimd.rate(), DataRate::kbps(expected));
        }
    }

    #[test]
    fn nothing_that_arrives_raises_it_on_overuse() {
        let now = Instant::now();
        let mut aimd = Aimd::new(DataRate::kbps(300));
        aimd.update(Usage::Over, Some(DataRate::kbps(5_000)), RTT, now);
        assert_eq!(aimd.rate(), DataRate::kbps(300));
    }
}
