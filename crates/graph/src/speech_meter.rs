//! Measures how much a participant has spoken lately, from the audio levels of packets (RFC 6464),
//! to find out who speaks in a large room.
//!
//! Speech is measured over three lengths of time, as by Volfin and Cohen, "Dominant speaker
//! identification for multipoint videoconferencing" (2012): what is loud now may be a cough, what
//! was voiced for a second is a sentence, and who was voiced for several seconds has the floor.

use std::time::{Duration, Instant};

/// The duration of the audio in a packet.
const FRAME: Duration = Duration::from_millis(20);
/// The number of frames in a block. Blocks are reported as a whole.
const FRAMES: u8 = 10;
/// How many frames a packet's level lasts if no other packet comes: packets may be up to 60 ms
/// long.
const LASTS: u32 = 3;
/// The number of blocks in one second, and in three.
const SECOND: usize = 5;
const THREE_SECONDS: usize = 15;
/// The initial noise floor, as a volume: 127 - 70 dBov.
const FIRST_FLOOR: f32 = 57.0;
/// How fast the floor rises towards a constant level, in dB a frame: 3 dB a second.
const RISE: f32 = 0.06;
/// Anything fainter is silence, whatever the floor: -75 dBov.
const FAINTEST: f32 = 52.0;
/// Decibels above the floor for each step of strength.
const STEP: f32 = 3.0;
/// The minimum strength of a voiced frame: 12 dB above the floor.
const VOICED: u8 = 4;

/// How much a participant speaks, each value from 0 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpeechActivity {
    /// How far the last 200 ms were above the noise, in steps of 3 dB.
    pub immediate: u8,
    /// Tenths of the last second that were voiced.
    pub medium: u8,
    /// Tenths of the last three seconds that were voiced.
    pub long: u8,
}

impl SpeechActivity {
    /// No speech.
    pub const SILENT: SpeechActivity = SpeechActivity {
        immediate: 0,
        medium: 0,
        long: 0,
    };
}

/// Measures the speech of one source.
#[derive(Debug)]
pub struct SpeechMeter {
    /// When the current frame ends. `None` before the first packet.
    frame_end: Option<Instant>,
    /// The strongest packet of the current frame, or the last packet of earlier ones.
    strength: u8,
    /// How many more frames that strength lasts.
    lasts: u32,
    /// A packet came in the current frame.
    heard: bool,
    /// The noise floor, as a volume in dB.
    floor: f32,
    frames: u8,
    strengths: u16,
    voiced: u8,
    /// Voiced frames of each of the last blocks. The newest is at `next`.
    blocks: [u8; THREE_SECONDS],
    next: usize,
    reported: SpeechActivity,
}

impl Default for SpeechMeter {
    /// Returns a meter that has heard nothing yet.
    fn default() -> Self {
        SpeechMeter {
            frame_end: None,
            strength: 0,
            lasts: 0,
            heard: false,
            floor: FIRST_FLOOR,
            frames: 0,
            strengths: 0,
            voiced: 0,
            blocks: [0; THREE_SECONDS],
            next: 0,
            reported: SpeechActivity::SILENT,
        }
    }
}

impl SpeechMeter {
    /// Takes the level of a packet in -dBov. Returns the activity every 200 ms, unless it stays
    /// silent.
    #[inline]
    pub fn hear(&mut self, level: u8, now: Instant) -> Option<SpeechActivity> {
        let mut end = *self.frame_end.get_or_insert(now + FRAME);
        let mut report = None;
        if now >= end + FRAME * u32::from(FRAMES) * THREE_SECONDS as u32 {
            // Everything before is too old to count.
            *self = SpeechMeter {
                floor: self.floor,
                reported: self.reported,
                ..SpeechMeter::default()
            };
            end = now + FRAME;
        }
        while now >= end {
            report = self.end_frame().or(report);
            end += FRAME;
        }
        self.frame_end = Some(end);
        let strength = self.strength_of(level);
        self.strength = match self.heard {
            true => self.strength.max(strength),
            false => strength,
        };
        (self.heard, self.lasts) = (true, LASTS);
        report
    }

    /// Returns how far a level is above the noise floor, and adapts the floor.
    fn strength_of(&mut self, level: u8) -> u8 {
        let volume = f32::from(127 - level.min(127));
        if volume < FAINTEST {
            return 0;
        }
        self.floor = volume.min(self.floor + RISE);
        let above = (volume - self.floor) / STEP;
        above.clamp(0.0, f32::from(FRAMES)) as u8
    }

    fn end_frame(&mut self) -> Option<SpeechActivity> {
        let strength = self.strength;
        self.heard = false;
        self.lasts = self.lasts.saturating_sub(1);
        if self.lasts == 0 {
            self.strength = 0;
        }
        self.strengths += u16::from(strength);
        self.voiced += u8::from(strength >= VOICED);
        self.frames += 1;
        if self.frames < FRAMES {
            return None;
        }
        self.end_block()
    }

    fn end_block(&mut self) -> Option<SpeechActivity> {
        self.next = (self.next + 1) % THREE_SECONDS;
        if let Some(block) = self.blocks.get_mut(self.next) {
            *block = self.voiced;
        }
        let activity = SpeechActivity {
            immediate: tenths(u32::from(self.strengths), u32::from(FRAMES)),
            medium: self.voiced_of(SECOND),
            long: self.voiced_of(THREE_SECONDS),
        };
        (self.frames, self.strengths, self.voiced) = (0, 0, 0);
        let silent = activity == SpeechActivity::SILENT;
        let before = std::mem::replace(&mut self.reported, activity);
        // Silence is reported once.
        (!silent || before != SpeechActivity::SILENT).then_some(activity)
    }

    /// Returns the voiced tenths of the last `blocks` blocks.
    fn voiced_of(&self, blocks: usize) -> u8 {
        let newest_first = (0..blocks).map(|ago| (self.next + THREE_SECONDS - ago) % THREE_SECONDS);
        let voiced = newest_first.filter_map(|place| self.blocks.get(place));
        let sum = voiced.map(|frames| u32::from(*frames)).sum();
        tenths(sum, blocks as u32)
    }
}

/// Returns `sum / count`, rounded.
fn tenths(sum: u32, count: u32) -> u8 {
    let rounded = (sum + count / 2).checked_div(count).unwrap_or_default();
    u8::try_from(rounded).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    /// A meter with its own time.
    struct Ear {
        meter: SpeechMeter,
        now: Instant,
        reports: Vec<SpeechActivity>,
    }

    impl Ear {
        fn new() -> Self {
            Ear {
                meter: SpeechMeter::default(),
                now: Instant::now(),
                reports: Vec::new(),
            }
        }

        /// Packets of 20 ms with these levels in turn.
        fn hears(&mut self, levels: &[u8], time: Duration) {
            self.hears_each(levels, FRAME, time);
        }

        fn hears_each(&mut self, levels: &[u8], each: Duration, time: Duration) {
            let end = self.now + time;
            let mut levels = levels.iter().cycle();
            while self.now < end {
                let report = self.meter.hear(*levels.next().unwrap(), self.now);
                self.reports.extend(report);
                self.now += each;
            }
        }

        fn last(&self) -> SpeechActivity {
            self.reports.last().copied().unwrap_or_default()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_and_faint_noise_are_not_told() {
        let mut ear = Ear::new();
        ear.hears(&[127, 90, 80, 78], 60 * SECOND);
        assert_eq!(ear.reports, []);
    }

    #[test]
    fn speech_fills_the_lengths_one_after_the_other() {
        let mut ear = Ear::new();
        ear.hears(&[30, 35], Duration::from_millis(401));
        let first = ear.last();
        assert!(first.immediate >= 8, "{first:?}");
        assert_eq!((first.medium, first.long), (4, 1));
        ear.hears(&[30, 35], SECOND);
        assert_eq!(ear.last().medium, 10);
        assert!(ear.last().long < 6);
        ear.hears(&[30, 35], 3 * SECOND);
        assert_eq!(ear.last().long, 10);
    }

    #[test]
    fn a_cough_is_short() {
        let mut ear = Ear::new();
        ear.hears(&[127], SECOND);
        ear.hears(&[10], Duration::from_millis(200));
        ear.hears(&[127], SECOND);
        assert!(
            ear.reports.iter().all(|report| report.medium <= 3),
            "{:?}",
            ear.reports
        );
        ear.hears(&[127], 4 * SECOND);
        assert_eq!(ear.last(), SpeechActivity::SILENT);
        let told = ear.reports.len();
        ear.hears(&[127], 4 * SECOND);
        assert_eq!(ear.reports.len(), told);
    }

    #[test]
    fn a_fan_becomes_the_floor_and_speech_stands_out_of_it() {
        let mut ear = Ear::new();
        ear.hears(&[50, 51, 49], 20 * SECOND);
        assert_eq!(ear.last(), SpeechActivity::SILENT);
        // Words, with the fan between them.
        ear.hears(&[25, 25, 25, 25, 25, 25, 50, 50], 2 * SECOND);
        assert!(ear.last().medium >= 7, "{:?}", ear.last());
    }

    #[test]
    fn long_packets_are_no_gaps_but_lost_ones_are() {
        let mut ear = Ear::new();
        ear.hears_each(&[30], Duration::from_millis(60), 4 * SECOND);
        assert_eq!(ear.last().long, 10);
        // Nothing comes, then silence: what was said before is old.
        ear.now += 2 * SECOND;
        ear.hears(&[127], Duration::from_millis(300));
        assert_eq!((ear.last().immediate, ear.last().medium), (0, 0));
        assert!(ear.last().long < 6);
        ear.now += 3600 * SECOND;
        ear.hears(&[127], Duration::from_millis(300));
        assert_eq!(ear.last(), SpeechActivity::SILENT);
    }
}
