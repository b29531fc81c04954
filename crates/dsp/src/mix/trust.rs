//! The credibility of levels in packets (RFC 6464): no participant gets a place by exaggerating.

use crate::level::SILENCE;

/// The excess that is tolerated, in dB: packets and frames do not start together, and a room may
/// have a narrower band.
/// a narrower band.
const TOLERANCE: f32 = 10.0;

/// The weight of a frame in the average.
const SHARE: f32 = 1.0 / 32.0;

/// The factor by which the average decays per frame without decoding: half in half a minute.
const FORGET: f32 = 0.9995;

/// The exaggeration of a participant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trust {
    /// The average excess of the reported level over the measured one, in dB.
    excess: f32,
}

impl Trust {
    /// Compares the reported and the measured level of a frame, in -dBov. Returns by how many dB
    /// the correction grows.
    pub(crate) fn compare(&mut self, told: u8, measured: u8) -> f32 {
        let before = self.distrust();
        let more = f32::from(measured.min(SILENCE)) - f32::from(told.min(SILENCE));
        self.excess += (more - self.excess) * SHARE;
        (self.distrust() - before).max(0.0)
    }

    /// Notes a frame that was not decoded.
    pub(crate) fn forget(&mut self) {
        self.excess *= FORGET;
    }

    /// Returns the corrected level in -dBov.
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
        // The reported level comes a frame too early.
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
        // After exaggerating, correct levels are believed again.
        for _ in 0..200 {
            trust.compare(20, 20);
        }
        assert_eq!(trust.level(20), 20);
    }
}
