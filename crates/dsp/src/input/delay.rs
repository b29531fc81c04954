//! The delay with which hardly any packet is late.

use super::timeline::{MS, SECOND};

/// The shortest delay: one frame, so that the next packet is usually there when one is missing.
const LEAST: i64 = 20 * MS;
/// The share of packets that should be in time.
const IN_TIME: f32 = 0.97;
/// The factor by which observations decay per packet: half in 40 packets.
const FORGET: f32 = 0.983;
/// The weight of the first packet that comes together with the one before, because one event held
/// up both. The second one has half of that, the third a third.
const WEIGHT_IN_BURST: f32 = 0.5;
/// The width of a class of the histogram.
const BUCKET: i64 = 5 * MS;
const BUCKETS: usize = 100;
/// The least transit is that of the last one or two windows.
const WINDOW: i64 = 4 * SECOND;
/// The time in which the first packets may lower the least transit without further effect.
const SETTLING: i64 = SECOND / 2;

/// Learns from arrivals how long packets must wait.
///
/// The transit of a packet is the difference between our clock and the sender's when it arrives.
/// The recent least transit is that of a packet without any delay. The lateness of packets against
/// it goes into a decaying histogram, and the wait is chosen so that nearly all come in time.
#[derive(Debug)]
pub(super) struct Delay {
    histogram: [f32; BUCKETS],
    /// The number of packets, up to where the decay has its full pace.
    seen: f32,
    least_before: i64,
    least_now: i64,
    window_ends: i64,
    last_arrival: i64,
    /// The packets that came together with the one before them.
    in_burst: u8,
    /// When the least transit becomes reliable.
    settled: i64,
    /// The rest of a change of the least transit that is smaller than a class.
    unmoved: i64,
    in_time: i64,
}

impl Default for Delay {
    fn default() -> Self {
        let mut histogram = [0.0; BUCKETS];
        // The initial assumption: all packets are somewhat less late than the shortest delay.
        if let Some(bucket) = histogram.get_mut(3) {
            *bucket = 1.0;
        }
        Self {
            histogram,
            seen: 4.0,
            least_before: i64::MAX,
            least_now: i64::MAX,
            window_ends: i64::MIN,
            last_arrival: i64::MIN,
            in_burst: 0,
            settled: i64::MIN,
            unmoved: 0,
            in_time: LEAST,
        }
    }
}

impl Delay {
    /// Returns the recent least transit.
    pub(super) fn least_transit(&self) -> i64 {
        match self.least_before.min(self.least_now) {
            i64::MAX => 0,
            least => least,
        }
    }

    /// Returns the wait of a packet without delay, so that one sent `after` it comes in time, too.
    pub(super) fn wait(&self, after: i64) -> i64 {
        LEAST.max(self.in_time + after)
    }

    /// Takes the arrival of a packet of length `len`.
    pub(super) fn observe(&mut self, arrival: i64, media: i64, len: i64) {
        let transit = arrival - media;
        let before = self.least_transit();
        if arrival >= self.window_ends {
            // After a long silence the path is unknown.
            if arrival.saturating_sub(self.window_ends) < WINDOW {
                self.least_before = self.least_now;
            } else {
                self.least_before = i64::MAX;
                self.settled = arrival + SETTLING;
            }
            self.least_now = i64::MAX;
            self.window_ends = arrival + WINDOW;
        }
        self.least_now = self.least_now.min(transit);
        let least = self.least_transit();
        if arrival >= self.settled {
            self.move_by(before - least);
        }
        let late = usize::try_from((transit - least) / BUCKET)
            .unwrap_or(0)
            .min(BUCKETS - 1);
        let held_up = arrival.saturating_sub(self.last_arrival) < len / 2;
        self.in_burst = if held_up {
            self.in_burst.saturating_add(1)
        } else {
            0
        };
        self.last_arrival = arrival;
        let weight = if held_up {
            WEIGHT_IN_BURST / f32::from(self.in_burst)
        } else {
            1.0
        };
        // At first all observations have the same weight, later the last ones have most.
        let keep = (1.0 - weight / self.seen).max(1.0 - weight * (1.0 - FORGET));
        self.seen = (self.seen + weight).min(1.0 / (1.0 - FORGET));
        for share in &mut self.histogram {
            *share *= keep;
        }
        if let Some(share) = self.histogram.get_mut(late) {
            *share += 1.0 - keep;
        }
        self.in_time = self.lateness();
    }

    /// Returns the lateness that nearly all packets stay below.
    fn lateness(&self) -> i64 {
        let mut rest = 1.0 - IN_TIME;
        for (index, share) in self.histogram.iter().enumerate().rev() {
            rest -= share;
            if rest < 0.0 {
                return (index as i64 + 1) * BUCKET;
            }
        }
        BUCKET
    }

    /// Increases all lateness by `by`, because the least transit has become less.
    fn move_by(&mut self, by: i64) {
        let by = by + self.unmoved;
        let buckets = by / BUCKET;
        self.unmoved = by - buckets * BUCKET;
        let distance = usize::try_from(buckets.unsigned_abs())
            .unwrap_or(BUCKETS)
            .min(BUCKETS - 1);
        if distance == 0 {
            return;
        }
        if buckets > 0 {
            let beyond: f32 = self.histogram.iter().rev().take(distance).sum();
            self.histogram.copy_within(..BUCKETS - distance, distance);
            self.histogram
                .iter_mut()
                .take(distance)
                .for_each(|share| *share = 0.0);
            if let Some(last) = self.histogram.last_mut() {
                *last += beyond;
            }
        } else {
            let before: f32 = self.histogram.iter().take(distance).sum();
            self.histogram.copy_within(distance.., 0);
            self.histogram
                .iter_mut()
                .rev()
                .take(distance)
                .for_each(|share| *share = 0.0);
            if let Some(first) = self.histogram.first_mut() {
                *first += before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: i64 = 20 * MS;

    /// Observes packets of 20 ms with the lateness `late` of their number, and returns the wait
    /// after each.
    fn waits(
        delay: &mut Delay,
        packets: std::ops::Range<i64>,
        late: impl Fn(i64) -> i64,
    ) -> Vec<i64> {
        let mut held = i64::MIN;
        packets
            .map(|packet| {
                // No packet overtakes another.
                held = held.max(packet * FRAME + late(packet));
                delay.observe(held, packet * FRAME, FRAME);
                delay.wait(0) / MS
            })
            .collect()
    }

    #[test]
    fn on_a_clean_path_packets_wait_a_frame() {
        let waits = waits(&mut Delay::default(), 0..500, |packet| packet % 3 * MS);
        assert!(waits.iter().all(|wait| *wait == 20), "{waits:?}");
    }

    #[test]
    fn with_jitter_packets_wait_as_long_as_the_latest() {
        let waits = waits(&mut Delay::default(), 0..500, |packet| {
            packet * 7919 % 60 * MS
        });
        assert!(
            waits.iter().skip(100).all(|wait| (50..=65).contains(wait)),
            "{waits:?}"
        );
    }

    #[test]
    fn one_stall_is_forgotten_in_a_second_or_two() {
        let mut delay = Delay::default();
        let waits = waits(&mut delay, 0..300, |packet| {
            if (100..115).contains(&packet) {
                (115 - packet) * FRAME
            } else {
                0
            }
        });
        assert_eq!(waits.get(99), Some(&20));
        assert!(waits.iter().skip(180).all(|wait| *wait <= 20), "{waits:?}");
    }

    #[test]
    fn drift_of_the_clocks_is_no_jitter() {
        let waits = waits(&mut Delay::default(), 0..30_000, |packet| {
            packet * FRAME / 5_000
        });
        assert!(waits.iter().all(|wait| *wait == 20));
    }

    /// A path that becomes longer by 100 ms once does not increase the wait for good.
    #[test]
    fn a_longer_path_is_learnt() {
        let waits = waits(&mut Delay::default(), 0..1_500, |packet| {
            if packet < 500 { 0 } else { 100 * MS }
        });
        assert!(
            waits
                .get(600..790)
                .is_some_and(|waits| waits.iter().all(|wait| *wait >= 100)),
            "while the shorter one counts"
        );
        assert!(
            waits.iter().skip(920).all(|wait| *wait == 20),
            "{:?}",
            waits.get(900..930)
        );
    }

    #[test]
    fn silence_of_minutes_is_no_jitter() {
        let waits = waits(&mut Delay::default(), 0..500, |_| 0);
        assert_eq!(waits.last(), Some(&20));
        let mut delay = Delay::default();
        for packet in (0..100).chain(30_000..30_100) {
            // Meanwhile the clocks have drifted apart by 120 ms.
            delay.observe(
                packet * FRAME + packet * FRAME / 5_000,
                packet * FRAME,
                FRAME,
            );
            assert_eq!(delay.wait(0), 20 * MS);
        }
    }
}
