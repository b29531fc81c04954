//! The delay between a sender's clock and the recorder's.

use crate::demux::Nanos;

/// The time in which the least delay is searched.
const WINDOW: Nanos = 10_000_000_000;

/// The greatest drift of clocks in a window. More means that the sender was delayed or paused.
const MOST: Nanos = 20_000_000;

/// The speed of the correction: a 2,000th of the elapsed time.
const SHARE: Nanos = 2_000;

/// The delay between a sender's clock and the arrival of its packets, which follows the drift of
/// the clocks.
#[derive(Debug)]
pub(super) struct Drift {
    /// The present delay, and its target.
    delay: Nanos,
    target: Nanos,
    /// The start of the window, and the least delays in it and in the one before.
    window: Option<(Nanos, Nanos)>,
    before: Option<Nanos>,
    last: Option<Nanos>,
}

impl Drift {
    /// Returns the drift with the least delay of the first packets.
    pub(super) fn new(delay: Nanos) -> Self {
        Self {
            delay,
            target: delay,
            window: None,
            before: None,
            last: None,
        }
    }

    /// Returns the delay of a packet of time `time` that came at `arrival`.
    pub(super) fn delay(&mut self, time: Nanos, arrival: Nanos) -> Nanos {
        let late = arrival.saturating_sub(time);
        let (start, least) = self.window.unwrap_or((time, late));
        if time.saturating_sub(start) >= WINDOW {
            let parted = self.before.map(|before| least.saturating_sub(before));
            if let Some(parted) = parted.filter(|parted| parted.saturating_abs() <= MOST) {
                self.target = self.target.saturating_add(parted);
            }
            self.before = Some(least);
            self.window = Some((time, late));
        } else {
            self.window = Some((start, least.min(late)));
        }
        let passed = time.saturating_sub(self.last.unwrap_or(time)).max(0);
        self.last = Some(time.max(self.last.unwrap_or(time)));
        let step = passed / SHARE;
        let rest = self.target.saturating_sub(self.delay);
        self.delay = self.delay.saturating_add(rest.clamp(-step, step));
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn clocks_that_part_are_followed() {
        // A drift of 200 ppm, and up to 30 ms of jitter.
        let mut drift = Drift::new(0);
        let minutes = 10;
        for packet in 0..minutes * 60 * 50 {
            let time = packet * 20 * MS;
            let arrival = time + time / 5_000 + packet % 4 * 10 * MS;
            let delay = drift.delay(time, arrival);
            let off = (delay - time / 5_000).abs();
            assert!(off < 6 * MS, "{off} ns off after {packet} packets");
        }
    }

    #[test]
    fn a_pause_is_no_drift() {
        let mut drift = Drift::new(0);
        for packet in 0..6_000 {
            let time = packet * 20 * MS;
            let paused = if packet > 3_000 { 30_000 * MS } else { 0 };
            assert_eq!(drift.delay(time, time + paused), 0);
        }
    }
}
