//! Voice detection by levels: a voice stands out from the steady noise of a microphone.
//!
//! The noise floor is the lowest level of the last two seconds (minimum statistics). Speech falls
//! to it again and again, between words and syllables, and while the lips are closed. Steady noise
//! becomes its own floor soon.

use crate::level::SILENCE;

/// This loud or louder always counts, even if it is steady like music, in -dBov.
const LOUD: u8 = 40;

/// This quiet or quieter never counts, in -dBov.
const QUIET: u8 = 70;

/// How far a voice is above the noise floor, in dB. Steady noise varies by less from frame to
/// frame.
const MARGIN: u8 = 9;

/// The assumed noise floor of a new microphone in -dBov. Soft speech is above it from the first
/// frame on.
const UNKNOWN: u8 = 60;

/// The frames of a minimum: 200 ms.
const SPAN: u8 = 10;

/// The number of minima: two seconds, including the current one.
const SPANS: usize = 10;

/// Detects the voice of a participant.
#[derive(Debug, Clone)]
pub(crate) struct VoiceDetector {
    /// The lowest levels of the spans, in -dBov: the current one first.
    minima: [u8; SPANS],
    /// The frames of the current span.
    frames: u8,
    /// The level of the last frame.
    before: u8,
}

impl Default for VoiceDetector {
    fn default() -> Self {
        VoiceDetector {
            minima: [UNKNOWN; SPANS],
            frames: 0,
            before: 0,
        }
    }
}

impl VoiceDetector {
    /// Returns whether a frame of this level, in -dBov, has a voice. Missing frames are not
    /// reported here.
    pub(crate) fn frame(&mut self, level: u8) -> bool {
        let level = level.min(SILENCE);
        if self.frames == SPAN {
            self.frames = 0;
            self.minima.rotate_right(1);
            self.minima[0] = 0;
        }
        self.frames += 1;
        // Noise may fall for a single frame by chance. The louder of two frames is a better
        // estimate.
        self.minima[0] = self.minima[0].max(level.min(self.before));
        self.before = level;
        level <= LOUD || (level < QUIET && level.saturating_add(MARGIN) <= self.floor())
    }

    /// Returns the noise floor in -dBov.
    fn floor(&self) -> u8 {
        self.minima.iter().copied().fold(0, u8::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns which of these frames have a voice.
    fn voices(detector: &mut VoiceDetector, levels: impl IntoIterator<Item = u8>) -> Vec<bool> {
        levels
            .into_iter()
            .map(|level| detector.frame(level))
            .collect()
    }

    /// Returns the number of frames until the last voice in a steady level.
    fn voiced_for(detector: &mut VoiceDetector, level: u8) -> usize {
        let voices = voices(detector, [level; 500]);
        voices
            .iter()
            .rposition(|voice| *voice)
            .map_or(0, |last| last + 1)
    }

    /// Returns noise around a level, within 4 dB.
    fn noise(level: u8) -> impl Iterator<Item = u8> {
        [0, 3, 7, 2, 5, 8, 1, 4, 6, 3, 0, 5, 2]
            .into_iter()
            .cycle()
            .map(move |up| level + 4 - up)
    }

    #[test]
    fn soft_speech_is_a_voice_from_the_first_frame_and_noise_is_none() {
        assert!(VoiceDetector::default().frame(50));
        for level in [55, 62, 75, 100, SILENCE] {
            assert_eq!(
                voiced_for(&mut VoiceDetector::default(), level),
                0,
                "-{level} dBov"
            );
        }
    }

    #[test]
    fn soft_speech_and_whispers_stand_out_at_once() {
        for (floor, voice) in [(65, 50), (65, 56), (80, 60), (75, 66), (SILENCE, 69)] {
            let mut detector = VoiceDetector::default();
            voices(&mut detector, [floor; 200]);
            assert!(
                detector.frame(voice),
                "-{voice} dBov over a floor of -{floor}"
            );
        }
    }

    #[test]
    fn noise_that_varies_is_no_voice() {
        let mut detector = VoiceDetector::default();
        let voices = voices(&mut detector, noise(58).take(1_000));
        assert!(voices.iter().all(|voice| !voice));
    }

    #[test]
    fn a_noise_that_begins_is_known_after_two_seconds() {
        for (before, noise) in [(62, 45), (80, 45), (SILENCE, 62), (SILENCE, 41), (62, 41)] {
            let mut detector = VoiceDetector::default();
            voices(&mut detector, [before; 300]);
            let voiced = voiced_for(&mut detector, noise);
            assert!(
                (80..=100).contains(&voiced),
                "-{noise} dBov after -{before}: {voiced} frames"
            );
        }
    }

    #[test]
    fn what_is_loud_stays_a_voice() {
        for level in [0, 25, 40] {
            let mut detector = VoiceDetector::default();
            assert!(
                voices(&mut detector, [level; 1_000])
                    .iter()
                    .all(|voice| *voice)
            );
        }
    }

    /// After a minute of shouts or music, the floor recovers with the first two quiet frames.
    #[test]
    fn the_floor_recovers_after_a_loud_episode() {
        let mut detector = VoiceDetector::default();
        voices(&mut detector, [15; 3_000]);
        assert_eq!(voices(&mut detector, [65, 65, 50]), [false, false, true]);
    }

    proptest! {
        /// The floor is a level of the last two seconds, or the assumed one. A voice is above it,
        /// or loud.
        #[test]
        fn a_voice_stands_out_or_is_loud(levels in proptest::collection::vec(0u8..=255, 1..400)) {
            let mut detector = VoiceDetector::default();
            for (at, level) in levels.iter().enumerate() {
                let voice = detector.frame(*level);
                let lasts = at.saturating_sub(99);
                let last = levels.iter().take(at + 1).skip(lasts);
                let least = last.copied().fold(0, u8::max).min(SILENCE);
                let floor = if at < 100 { least.max(UNKNOWN) } else { least };
                prop_assert!(detector.floor() <= floor);
                prop_assert!(*level > LOUD || voice);
                prop_assert!(!voice || *level <= LOUD || *level + MARGIN <= floor);
            }
        }
    }
}
