//! Whether the queue on the way grows: the trend of the delay, and a threshold that adapts to its
//! noise (draft-ietf-rmcat-gcc-02 section 5.4, with a line instead of the Kalman filter, like
//! libwebrtc).

use std::collections::VecDeque;
use std::time::Duration;

use super::groups::GroupDelta;

/// The groups that the line is fitted to.
const WINDOW: usize = 20;
/// The weight of the past in the smoothed delay.
const SMOOTHING: f64 = 0.9;
/// The slope is multiplied by this, and by the number of groups up to the next constant, for
/// comparison with a threshold in ms.
const GAIN: f64 = 4.0;
const MAX_GROUPS: u32 = 60;
/// The least duration of overuse, in ms.
const OVERUSE_TIME: f64 = 10.0;
/// The start and the bounds of the threshold, in ms.
const FIRST_THRESHOLD: f64 = 12.5;
const THRESHOLD: (f64, f64) = (6.0, 600.0);
/// The speed at which the threshold follows upwards and downwards, per ms.
const FOLLOW: (f64, f64) = (0.008_7, 0.039);
/// Values further above the threshold are bursts, which it does not follow.
const BURST_ABOVE: f64 = 15.0;
/// The most time that one step of the threshold covers, in ms.
const MAX_STEP: f64 = 100.0;

/// The usage of the link that the delay indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Usage {
    /// The queue keeps its length.
    #[default]
    Normal,
    /// The queue shrinks.
    Under,
    /// The queue grows.
    Over,
}

/// The trend of the delay, and its meaning.
#[derive(Debug, Default)]
pub(super) struct Trend {
    groups: u32,
    first_at: Option<Duration>,
    delay: f64,
    smoothed: f64,
    /// Arrival times and smoothed delays, in ms.
    points: VecDeque<(f64, f64)>,
    slope: f64,
    threshold: Threshold,
    /// The time above the threshold, in ms, and the number of groups.
    over: Option<(f64, u32)>,
    usage: Usage,
}

#[derive(Debug)]
struct Threshold {
    value: f64,
    at: Option<Duration>,
}

impl Default for Threshold {
    fn default() -> Self {
        Self {
            value: FIRST_THRESHOLD,
            at: None,
        }
    }
}

impl Trend {
    /// Takes the difference between two groups.
    pub fn push(&mut self, delta: &GroupDelta) {
        self.groups = self.groups.saturating_add(1);
        self.delay += millis(delta.arrived) - millis(delta.sent);
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.delay;
        let first = *self.first_at.get_or_insert(delta.at);
        let at = millis(delta.at.saturating_sub(first));
        if self.points.len() == WINDOW {
            self.points.pop_front();
        }
        self.points.push_back((at, self.smoothed));
        let before = self.slope;
        if self.points.len() == WINDOW {
            self.slope = slope(&self.points).unwrap_or(self.slope);
        }
        self.detect(before, delta);
    }

    /// Returns the usage that the last groups indicate.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    fn detect(&mut self, before: f64, delta: &GroupDelta) {
        if self.groups < 2 {
            return;
        }
        let scaled = f64::from(self.groups.min(MAX_GROUPS)) * self.slope * GAIN;
        let threshold = self.threshold.value;
        if scaled > threshold {
            let (time, groups) = self.over.unwrap_or((-millis(delta.sent) / 2.0, 0));
            let (time, groups) = (time + millis(delta.sent), groups + 1);
            self.over = Some((time, groups));
            // A single group is noise. A falling slope is a queue that stops growing.
            if time > OVERUSE_TIME && groups > 1 && self.slope >= before {
                self.over = None;
                self.usage = Usage::Over;
            }
        } else {
            self.over = None;
            self.usage = if scaled < -threshold {
                Usage::Under
            } else {
                Usage::Normal
            };
        }
        self.threshold.follow(scaled, delta.at);
    }
}

impl Threshold {
    fn follow(&mut self, scaled: f64, at: Duration) {
        let since = self
            .at
            .map_or(0.0, |before| millis(at.saturating_sub(before)));
        self.at = Some(at);
        let distance = scaled.abs() - self.value;
        if distance > BURST_ABOVE {
            return;
        }
        let follow = if distance < 0.0 { FOLLOW.1 } else { FOLLOW.0 };
        // A longer step would overshoot.
        let share = (follow * since.min(MAX_STEP)).min(1.0);
        self.value = (self.value + share * distance).clamp(THRESHOLD.0, THRESHOLD.1);
    }
}

/// Returns the slope of the least-squares line, or `None` if all points have the same time.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
    let (x, y) = (x / count, y / count);
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
        let (dx, dy) = (point.0 - x, point.1 - y);
        (above + dx * dy, below + dx * dx)
    });
    (below > 0.0).then(|| above / below)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes groups that leave every `sent` ms and arrive every `arrived(n)` ms.
    fn usage_after(trend: &mut Trend, groups: u32, sent: u64, arrived: impl Fn(u32) -> u64) {
        let mut at = Duration::from_secs(1);
        if let (Some(first), Some(last)) = (trend.first_at, trend.points.back()) {
            at = first + Duration::from_secs_f64(last.0 / 1_000.0);
        }
        for n in 0..groups {
            let arrived = Duration::from_millis(arrived(n));
            at += arrived;
            let sent = Duration::from_millis(sent);
            trend.push(&GroupDelta { sent, arrived, at });
        }
    }

    #[test]
    fn a_constant_delay_is_normal() {
        let mut trend = Trend::default();
        usage_after(&mut trend, 200, 10, |_| 10);
        assert_eq!(trend.usage(), Usage::Normal);
        assert!(trend.threshold.value < FIRST_THRESHOLD);
    }

    #[test]
    fn a_queue_that_grows_is_overuse_and_one_that_shrinks_underuse() {
        let mut trend = Trend::default();
        usage_after(&mut trend, 60, 10, |_| 10);
        usage_after(&mut trend, 25, 10, |_| 13);
        assert_eq!(trend.usage(), Usage::Over);
        usage_after(&mut trend, 30, 10, |_| 7);
        assert_eq!(trend.usage(), Usage::Under);
        usage_after(&mut trend, 60, 10, |_| 10);
        assert_eq!(trend.usage(), Usage::Normal);
    }

    #[test]
    fn jitter_around_a_constant_delay_is_normal() {
        let mut trend = Trend::default();
        for _ in 0..20 {
            usage_after(&mut trend, 20, 20, |n| if n % 2 == 0 { 14 } else { 26 });
            assert_eq!(trend.usage(), Usage::Normal);
        }
    }
}
