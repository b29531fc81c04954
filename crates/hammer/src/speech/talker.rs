//! Synthetic voices: harmonics with formants, in syllables and phrases, with the noise of a room.
//!
//! They speak no language, but codecs, voice detectors and mixers treat them as speech.

use std::f64::consts::PI;

use super::{SAID_RATE, chirp, pilot};

/// The length of a talker's speech, before it repeats.
pub(super) const SECONDS: usize = 12;

/// A phrase, and the pause at its end, in seconds.
const PHRASE: f64 = 3.0;
const PAUSE: f64 = 0.6;

/// The samples between two changes of the voice.
const BLOCK: usize = SAID_RATE / 200;

/// Above this frequency in hertz, the voice consists of noise only.
const HIGHEST: f64 = 4_000.0;

/// The root mean square of the voice while it speaks, of its pilot, of a room's noise, of a quieter
/// one's. Full scale is 1.
const VOICE: f64 = 0.1;
const PILOT: f64 = 0.025;
const NOISE: f64 = 0.000_3;
const OPEN_MICROPHONE: f64 = 0.000_8;

/// The amplitude of chirps, and the silence around each, in seconds.
const CHIRP: f64 = 0.5;
const HUSH: f64 = 0.06;

/// The formants of some vowels in hertz.
const VOWELS: [[f64; 3]; 5] = [
    [730.0, 1_090.0, 2_440.0],
    [530.0, 1_840.0, 2_480.0],
    [270.0, 2_290.0, 3_010.0],
    [570.0, 840.0, 2_410.0],
    [300.0, 870.0, 2_240.0],
];

/// The strength and width in hertz of formants.
const FORMANTS: [(f64, f64); 3] = [(1.0, 90.0), (0.6, 120.0), (0.3, 180.0)];

/// A participant as a source of sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Talker {
    /// The `n`-th talker of a room. The first one has chirps, and some have a pilot.
    Voice(usize),
    /// An open microphone in a silent room.
    Open,
    /// A microphone that is off.
    Off,
}

/// A part of a voice.
struct Syllable {
    from: f64,
    to: f64,
    pitch: f64,
    vowel: [f64; 3],
    /// It starts with a consonant.
    hiss: bool,
}

impl Talker {
    /// Returns its speech at [`SAID_RATE`], which repeats.
    pub(crate) fn samples(self) -> Vec<f32> {
        let mut random = Random::new(self);
        let count = SECONDS * SAID_RATE;
        match self {
            Talker::Off => vec![0.0; count],
            Talker::Open => noise(count, OPEN_MICROPHONE, &mut random),
            Talker::Voice(n) => {
                let mut sound = voice(n, &mut random);
                let noise = noise(count, NOISE, &mut random);
                sound
                    .iter_mut()
                    .zip(noise)
                    .for_each(|(s, noise)| *s += noise);
                if n == 0 {
                    add_chirps(&mut sound);
                }
                sound
            }
        }
    }

    /// Returns the times of its chirps, in seconds.
    pub(crate) fn chirps(self) -> impl Iterator<Item = f64> {
        let count = if self == Talker::Voice(0) { SECONDS } else { 0 };
        (0..count).map(|n| n as f64 + 0.5)
    }
}

fn noise(count: usize, strength: f64, random: &mut Random) -> Vec<f32> {
    // The factor for evenly distributed numbers.
    let amplitude = strength * 12f64.sqrt();
    let mut one = || ((random.next() - 0.5) * amplitude) as f32;
    (0..count).map(|_| one()).collect()
}

/// Returns the syllables of all phrases.
fn syllables(n: usize, random: &mut Random) -> Vec<Syllable> {
    // From a deep voice to a high one.
    let pitch = 95.0 + 11.0 * (n % 16) as f64;
    let mut syllables = Vec::new();
    let phrases = (SECONDS as f64 / PHRASE) as usize;
    for phrase in 0..phrases {
        let start = phrase as f64 * PHRASE;
        let mut at = start + 0.05;
        while at < start + PHRASE - PAUSE - 0.25 {
            let length = 0.13 + 0.12 * random.next();
            let sinking = 1.12 - 0.24 * (at - start) / PHRASE;
            let vowel = (random.next() * VOWELS.len() as f64) as usize;
            syllables.push(Syllable {
                from: at,
                to: at + length,
                pitch: pitch * sinking * (0.95 + 0.1 * random.next()),
                vowel: VOWELS.get(vowel).copied().unwrap_or_default(),
                hiss: random.next() < 0.6,
            });
            at += length + 0.02 + 0.05 * random.next();
        }
    }
    syllables
}

fn voice(n: usize, random: &mut Random) -> Vec<f32> {
    let mut sound = vec![0.0f64; SECONDS * SAID_RATE];
    let mut tone = vec![0.0f64; SECONDS * SAID_RATE];
    let (mut speaking, mut power) = (0usize, 0.0);
    for syllable in syllables(n, random) {
        let (from, to) = (place(syllable.from), place(syllable.to));
        let Some(piece) = sound.get_mut(from..to) else {
            continue;
        };
        sing(&syllable, piece);
        if syllable.hiss {
            let length = piece.len() / 4;
            let mut last = 0.0;
            for (at, sample) in piece.iter_mut().take(length).enumerate() {
                let noise = random.next() - 0.5;
                // The difference of neighbours has more high frequencies.
                *sample += 0.4 * (noise - last) * (PI * at as f64 / length as f64).sin();
                last = noise;
            }
        }
        speaking += piece.len();
        power += piece.iter().map(|sample| sample * sample).sum::<f64>();
        if let (Some(tone), Some(hertz)) = (tone.get_mut(from..to), pilot::frequency(n)) {
            let length = tone.len() as f64;
            for (at, sample) in tone.iter_mut().enumerate() {
                let turn = 2.0 * PI * hertz * (from + at) as f64 / SAID_RATE as f64;
                let swell = (6.0 * (PI * at as f64 / length).sin()).min(1.0);
                *sample = turn.sin() * swell * PILOT * 2f64.sqrt();
            }
        }
    }
    let scale = VOICE / (power / speaking.max(1) as f64).sqrt().max(1e-9);
    let both = sound.iter().zip(&tone);
    both.map(|(voice, tone)| (voice * scale + tone) as f32)
        .collect()
}

/// Adds a syllable's harmonics.
fn sing(syllable: &Syllable, piece: &mut [f64]) {
    let harmonics = (HIGHEST / syllable.pitch) as usize;
    let length = piece.len() as f64;
    // Each harmonic is a phasor that turns by its frequency with each sample.
    let mut pointers: Vec<(f64, f64)> =
        (0..harmonics).map(|k| (1.7 * k as f64).sin_cos()).collect();
    for (number, block) in piece.chunks_mut(BLOCK).enumerate() {
        let done = (number * BLOCK) as f64 / length;
        // A voice trembles and falls a little.
        let pitch = syllable.pitch * (1.03 - 0.06 * done + 0.008 * (40.0 * done).sin());
        let swell = |at: usize| {
            let done = (number * BLOCK + at) as f64 / length;
            (3.0 * (PI * done).sin()).min(1.0)
        };
        for (k, pointer) in pointers.iter_mut().enumerate() {
            let hertz = pitch * (k + 1) as f64;
            let resonance = FORMANTS.iter().zip(syllable.vowel);
            let resonance: f64 = resonance
                .map(|((strength, width), formant)| {
                    strength / (1.0 + ((hertz - formant) / width).powi(2))
                })
                .sum();
            let strength = (0.03 + resonance) * pilot::room_for_voice(hertz) / (k + 1) as f64;
            let (sin, cos) = (2.0 * PI * hertz / SAID_RATE as f64).sin_cos();
            for (at, sample) in block.iter_mut().enumerate() {
                let (x, y) = *pointer;
                *pointer = (x * cos - y * sin, x * sin + y * cos);
                *sample += strength * x * swell(at);
            }
        }
    }
}

fn add_chirps(sound: &mut [f32]) {
    for begin in Talker::Voice(0).chirps() {
        let hush = place(begin - HUSH)..place(begin + chirp::SECONDS + HUSH);
        if let Some(piece) = sound.get_mut(hush) {
            let length = piece.len() as f64;
            for (at, sample) in piece.iter_mut().enumerate() {
                let edge = (at as f64).min(length - at as f64) / (0.015 * SAID_RATE as f64);
                *sample *= (1.0 - edge).max(0.0) as f32;
            }
        }
        let places = sound.iter_mut().skip(place(begin));
        for (sample, chirp) in places.zip(chirp::samples(SAID_RATE)) {
            *sample += (CHIRP * chirp) as f32;
        }
    }
}

fn place(seconds: f64) -> usize {
    (seconds * SAID_RATE as f64) as usize
}

/// Pseudo-random numbers that are the same for the same talker (splitmix64).
struct Random(u64);

impl Random {
    fn new(talker: Talker) -> Self {
        Self(match talker {
            Talker::Voice(n) => n as u64,
            Talker::Open => u64::MAX,
            Talker::Off => u64::MAX - 1,
        })
    }

    /// Returns a number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strength(sound: &[f32]) -> f64 {
        let power: f64 = sound.iter().map(|s| f64::from(*s).powi(2)).sum();
        (power / sound.len().max(1) as f64).sqrt()
    }

    #[test]
    fn a_voice_speaks_and_pauses_without_clipping() {
        for n in [1, 15, 40] {
            let sound = Talker::Voice(n).samples();
            assert_eq!(sound.len(), SECONDS * SAID_RATE);
            let highest = sound.iter().fold(0f32, |most, s| most.max(s.abs()));
            assert!((0.15..1.0).contains(&highest), "{n}: {highest}");
            let speaking = sound.get(place(0.1)..place(2.0)).unwrap_or_default();
            assert!((0.05..0.2).contains(&strength(speaking)), "{n}");
            let pausing = sound.get(place(2.55)..place(2.95)).unwrap_or_default();
            assert!(strength(pausing) < 0.001, "{n}");
        }
        assert!(strength(&Talker::Open.samples()) < 0.001);
        assert_eq!(strength(&Talker::Off.samples()), 0.0);
    }

    #[test]
    fn each_voice_has_its_own_pilot_and_none_of_the_others() {
        for n in [0, 3, 9, 15] {
            let sound = Talker::Voice(n).samples();
            let heard: Vec<usize> = (0..pilot::PILOTS)
                .filter(|talker| pilot::is_heard(*talker, &sound, SAID_RATE))
                .collect();
            assert_eq!(heard, [n]);
        }
    }
}
