//! How far packets may be trusted that tell how loud they are (RFC 6464): nobody takes a place by telling more than is true.

use crate::level::SILENCE;

/// What frames are told to be louder than they are counts above this, in dB: packets and frames do not begin together, and a room may have
/// a narrower band.
const TOLERANCE: f32 = 10.0;

/// What one frame makes of the average.
const SHARE: f32 = 1.0 / 32.0;

/// How it is forgotten while nothing is decoded, each frame: half of it in half a minute.
const FORGET: f32 = 0.9995;

/// By how much a participant tells too much.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trust {
    /// The average of what frames were quieter by than they were told to be, in dB.
    excess: f32,
}

impl Trust {
    /// A frame was told to be this loud, and is that loud, in -dBov. Gives by how much more is to be taken off from now on, in dB.
    pub(crate) fn compare(&mut self, told: u8, measured: u8) -> f32 {
        let before = self.distrust();
        let more = f32::from(measured.min(SILENCE)) - f32::from(told.min(SILENCE));
        self.excess += (more - self.excess) * SHARE;
        (self.distrust() - before).max(0.0)
    }

    /// A frame was not decoded.
    pub(crate) fn forget(&mut self) {
        self.excess *= FORGET;
    }

    /// What to make of a level that was told, in -dBov.
    pub(crate) fn level(&self, told: u8) -> u8 {
        told.saturating_add(self.distrust() as u8).min(SILENCE)
    }

    fn distrust(&self) -> f32 {
        (self.excess - TOLERANCE).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tells_the_truth_is_believed() {
        let mut trust = Trust::default();
        // Told a frame too early.
        let levels = [20, 22, 60, 65, 30, 25, 21, 80, 25];
        let told = levels.iter().cycle();
        for (told, measured) in told.zip(levels.iter().cycle().skip(1)).take(5_000) {
            trust.compare(*told, *measured);
            assert_eq!(trust.level(*told), *told);
        }
    }

    #[test]
    fn silence_told_to_be_loud_is_known_in_a_second_and_for_a_while() {
        let mut trust = Trust::default();
        let mut taken_off = 0.0;
        for _ in 0..50 {
            taken_off += trust.compare(0, SILENCE);
        }
        assert!(trust.level(0) > 80, "{trust:?}");
        assert!((taken_off - trust.distrust()).abs() < 0.1);
        (0..500).for_each(|_| trust.forget());
        assert!(trust.level(0) > 60, "{trust:?}");
        // Who tells the truth again is believed again.
        for _ in 0..200 {
            trust.compare(20, 20);
        }
        assert_eq!(trust.level(20), 20);
    }
}
