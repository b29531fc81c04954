//! Compensates for senders whose clock is slower or faster than ours, by comparing timestamps with
//! arrivals.

use std::time::{Duration, Instant};

/// Arrivals are ignored for this time after the start of a stream, and then measured for as long.
const SETTLE: Duration = Duration::from_secs(5);
/// Arrivals that vary by more than this start the measurement again.
const UNSTEADY_MS: i64 = 60;
/// The drift that is corrected in one step.
const STEP_MS: i64 = 120;
/// The weight of one packet in the mean, as a divisor.
const WEIGHT: i64 = 64;

/// A correction at a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Adjustment {
    /// Shift timestamps by this number of ticks from this packet on.
    pub(crate) shift: i32,
    /// Skip a sequence number, so that the receiver notices that time has passed.
    pub(crate) jump: bool,
    /// Drop the packet.
    pub(crate) leave_out: bool,
}

/// Watches one stream.
#[derive(Debug)]
pub(crate) struct Skew {
    clock_rate: u32,
    /// Audio is skipped to catch up. Pictures are moved closer together instead, as each is needed.
    is_video: bool,
    phase: Phase,
    /// The timestamp of the last packet, and the same without wrap-around.
    last: Option<(u32, i64)>,
    /// Ticks by which timestamps still have to go back.
    owed: i64,
    /// Audio up to this time is dropped.
    skip_until: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Starting,
    /// Since when, and the time of the first packet in ticks.
    Settling(Instant, i64),
    /// The lowest and highest delay since `since`, in µs, and their sum and number.
    Gauging {
        since: Instant,
        at: Instant,
        time: i64,
        low: i64,
        high: i64,
        sum: i64,
        count: i64,
    },
    /// The mean delay in µs times [`WEIGHT`], and the reference for it.
    Steady {
        at: Instant,
        time: i64,
        reference: i64,
        mean: i64,
    },
}

impl Skew {
    pub(crate) fn new(clock_rate: u32, is_video: bool) -> Self {
        Self {
            clock_rate,
            is_video,
            phase: Phase::Starting,
            last: None,
            owed: 0,
            skip_until: None,
        }
    }

    /// Starts over, for another sender.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.clock_rate, self.is_video);
    }

    /// Checks the newest packet, with its sender's timestamp.
    pub(crate) fn look(&mut self, timestamp: u32, now: Instant) -> Adjustment {
        let (time, advance) = match self.last {
            Some((before, time)) => {
                let advance = i64::from(timestamp.wrapping_sub(before) as i32);
                (time + advance, advance)
            }
            None => (0, 0),
        };
        self.last = Some((timestamp, time));
        if let Some(until) = self.skip_until {
            if time < until {
                return Adjustment {
                    leave_out: true,
                    ..Adjustment::default()
                };
            }
            self.skip_until = None;
        }
        self.follow(time, now);
        if self.owed > 0 && advance > 1 {
            // Half of the distance of two pictures is taken away until the owed ticks are made up
            // for.
            let ticks = self.owed.min(advance / 2);
            self.owed -= ticks;
            return Adjustment {
                shift: -(ticks as i32),
                ..Adjustment::default()
            };
        }
        if advance <= 0 {
            // Pictures are moved as a whole.
            return Adjustment::default();
        }
        self.correct(time)
    }

    /// Returns the delay of a packet relative to the first, in µs. It grows if the sender is slow.
    fn delay(&self, time: i64, since: i64, at: Instant, now: Instant) -> i64 {
        let media = (time - since).saturating_mul(1_000_000) / i64::from(self.clock_rate);
        let passed = now.saturating_duration_since(at).as_micros() as i64;
        passed - media
    }

    fn follow(&mut self, time: i64, now: Instant) {
        self.phase = match self.phase {
            Phase::Starting => Phase::Settling(now, time),
            Phase::Settling(at, since) => {
                if now.saturating_duration_since(at) < SETTLE {
                    return;
                }
                let delay = self.delay(time, since, at, now);
                gauging(now, at, since, delay)
            }
            Phase::Gauging {
                since,
                at,
                time: first,
                low,
                high,
                sum,
                count,
            } => {
                let delay = self.delay(time, first, at, now);
                let (low, high) = (low.min(delay), high.max(delay));
                let (sum, count) = (sum + delay, count + 1);
                if high - low > UNSTEADY_MS * 1_000 {
                    gauging(now, at, first, delay)
                } else if now.saturating_duration_since(since) >= SETTLE {
                    let mean = sum / count;
                    Phase::Steady {
                        at,
                        time: first,
                        reference: mean,
                        mean: mean * WEIGHT,
                    }
                } else {
                    Phase::Gauging {
                        since,
                        at,
                        time: first,
                        low,
                        high,
                        sum,
                        count,
                    }
                }
            }
            Phase::Steady {
                at,
                time: first,
                reference,
                mean,
            } => Phase::Steady {
                at,
                time: first,
                reference,
                mean: mean + self.delay(time, first, at, now) - mean / WEIGHT,
            },
        };
    }

    fn correct(&mut self, time: i64) -> Adjustment {
        let ticks = STEP_MS * i64::from(self.clock_rate) / 1_000;
        let Phase::Steady {
            reference, mean, ..
        } = &mut self.phase
        else {
            return Adjustment::default();
        };
        let drift = *mean / WEIGHT - *reference;
        if drift >= STEP_MS * 1_000 {
            *reference += STEP_MS * 1_000;
            return Adjustment {
                shift: ticks as i32,
                jump: !self.is_video,
                leave_out: false,
            };
        }
        if drift <= -STEP_MS * 1_000 {
            *reference -= STEP_MS * 1_000;
            if self.is_video {
                self.owed += ticks;
                return Adjustment::default();
            }
            self.skip_until = Some(time + ticks);
            return Adjustment {
                shift: -(ticks as i32),
                jump: false,
                leave_out: true,
            };
        }
        Adjustment::default()
    }
}

fn gauging(since: Instant, at: Instant, time: i64, delay: i64) -> Phase {
    Phase::Gauging {
        since,
        at,
        time,
        low: delay,
        high: delay,
        sum: delay,
        count: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that takes `interval_us` for packets that are `ticks` apart; returns the
    /// adjustments that were not nothing, with the packet at which they came.
    fn run(skew: &mut Skew, packets: u32, ticks: u32, interval_us: u64) -> Vec<(u32, Adjustment)> {
        let start = Instant::now();
        let look = |n: u32| {
            let now = start + Duration::from_micros(u64::from(n) * interval_us);
            // The timestamps wrap on the way.
            (n, skew.look(0xffff_0000u32.wrapping_add(n * ticks), now))
        };
        let adjustments = (0..packets).map(look);
        adjustments
            .filter(|(_, a)| *a != Adjustment::default())
            .collect()
    }

    #[test]
    fn a_sender_with_a_good_clock_is_left_alone() {
        let mut skew = Skew::new(48_000, false);
        assert!(run(&mut skew, 10_000, 960, 20_000).is_empty());
    }

    #[test]
    fn a_slow_sender_is_pushed_on() {
        // One in a thousand: 120 ms in two minutes.
        let mut skew = Skew::new(48_000, false);
        let adjusted = run(&mut skew, 15_000, 960, 20_020);
        let expected = Adjustment {
            shift: 5_760,
            jump: true,
            leave_out: false,
        };
        assert_eq!(adjusted.len(), 2, "{adjusted:?}");
        assert!(adjusted.iter().all(|(_, a)| *a == expected));
        let (first, second) = (adjusted.first(), adjusted.get(1));
        let gap = second.map_or(0, |s| s.0) - first.map_or(0, |f| f.0);
        assert!((5_900..6_100).contains(&gap), "{gap}");
    }

    #[test]
    fn a_fast_sender_is_held_back_by_leaving_audio_out() {
        let mut skew = Skew::new(48_000, false);
        let adjusted = run(&mut skew, 8_000, 960, 19_980);
        let (shifts, rest): (Vec<_>, Vec<_>) = adjusted.iter().partition(|(_, a)| a.shift != 0);
        assert_eq!(shifts.len(), 1);
        assert!(shifts.iter().all(|(_, a)| a.shift == -5_760 && a.leave_out));
        // 120 ms are six packets, the first of which came with the shift.
        assert_eq!(rest.len(), 5);
        assert!(rest.iter().all(|(_, a)| a.leave_out));
    }

    #[test]
    fn pictures_of_a_fast_sender_are_moved_together() {
        let mut skew = Skew::new(90_000, true);
        let adjusted = run(&mut skew, 5_000, 3_000, 33_300);
        assert!(adjusted.iter().all(|(_, a)| !a.leave_out && !a.jump));
        assert!(adjusted.iter().all(|(_, a)| (-1_500..0).contains(&a.shift)));
        assert_eq!(adjusted.iter().map(|(_, a)| a.shift).sum::<i32>(), -10_800);
    }

    #[test]
    fn arrivals_that_wander_are_no_drift() {
        let mut skew = Skew::new(90_000, true);
        let start = Instant::now();
        for n in 0..3_000u64 {
            // Every burst is 200 ms late.
            let late = if n % 50 < 25 { 200 } else { 0 };
            let now = start + Duration::from_millis(n * 33 + late);
            assert_eq!(skew.look((n * 2_970) as u32, now), Adjustment::default());
        }
    }
}
