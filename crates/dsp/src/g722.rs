//! G.722 (ITU-T G.722 at 64 kbit/s): wideband audio, with a byte for two samples at 16 kHz.
//!
//! Mirror filters split the band at 4 kHz. The lower half is coded by adaptive differences of 6
//! bits, and the upper half of 2 bits, which are the highest of the byte. The integer arithmetic
//! follows the recommendation exactly, because both sides must reach the same predictions. The
//! names in comments are its blocks.
//!
//! The RTP clock is 8,000 Hz (RFC 3551 section 4.5.2), so a timestamp counts bytes.

/// The taps of each half of the mirror filters.
const HALF: usize = 12;
const FILTER: [i32; HALF] = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11];

/// The decision levels of the lower band (QUANTL), from the second step on.
const LEVELS: [i32; 29] = [
    35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023,
    1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
];
/// The codes for the steps of the lower band, from the innermost one out: below zero, and above.
const LOWER_NEGATIVE: [u8; 30] = [
    63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10,
    9, 8, 7, 6, 5, 4,
];
const LOWER_POSITIVE: [u8; 30] = [
    61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38,
    37, 36, 35, 34, 33, 32,
];
/// The differences for the codes of the lower band: of 4 bits (for the adaptation), and of all 6
/// (for the output).
const LOWER_4: [i32; 16] = [
    0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584,
    1200, 0,
];
const LOWER_6: [i32; 64] = [
    -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232,
    -9360, -8576, -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776,
    -2400, -2032, -1688, -1360, -1040, -728, 24808, 21904, 19008, 16704, 14984, 13512, 12280,
    11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456, 4944, 4464, 4008, 3576, 3168, 2776,
    2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
];
/// The change of the step width after a code of 4 bits.
const LOWER_WIDTH: [i32; 16] = [
    -60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60,
];
/// The same tables for the upper band.
const UPPER_2: [i32; 4] = [-7408, -1616, 7408, 1616];
const UPPER_WIDTH: [i32; 4] = [798, -214, 798, -214];
const UPPER_LEVEL: i32 = 564;
/// The powers of two between 2048 and 4096.
const POWERS: [i32; 32] = [
    2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
    2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
];

fn saturate(value: i32) -> i32 {
    value.clamp(i32::from(i16::MIN), i32::from(i16::MAX))
}

/// Returns an entry of a table. Tables are as long as the range of their codes.
fn at(table: &[i32], code: u8) -> i32 {
    table.get(usize::from(code)).copied().unwrap_or(0)
}

/// The parameters in which the two bands differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Lower,
    Upper,
}

impl Half {
    /// Returns the largest logarithm of a scale (LOGSCL, LOGSCH).
    const fn most(self) -> i32 {
        match self {
            Half::Lower => 18_432,
            Half::Upper => 22_528,
        }
    }

    /// Returns the largest power of two of a scale (SCALEL, SCALEH).
    const fn exponent(self) -> i32 {
        match self {
            Half::Lower => 8,
            Half::Upper => 10,
        }
    }
}

/// A band: its predictor, and the scale of its steps.
#[derive(Debug, Clone)]
struct Band {
    half: Half,
    /// The prediction, and the part of it from the zeros.
    predicted: i32,
    by_zeros: i32,
    /// The last two reconstructed signals, and the part of them that the poles adapt to.
    signals: [i32; 2],
    partial: [i32; 2],
    poles: [i32; 2],
    /// The last six differences.
    differences: [i32; 6],
    zeros: [i32; 6],
    /// The logarithm of the scale, and the scale.
    log_scale: i32,
    scale: i32,
}

impl Band {
    fn new(half: Half) -> Self {
        Self {
            half,
            predicted: 0,
            by_zeros: 0,
            signals: [0; 2],
            partial: [0; 2],
            poles: [0; 2],
            differences: [0; 6],
            zeros: [0; 6],
            log_scale: 0,
            scale: match half {
                Half::Lower => 32,
                Half::Upper => 8,
            },
        }
    }

    /// Returns the difference for a code.
    fn difference(&self, of: i32) -> i32 {
        (self.scale * of) >> 15
    }

    /// Adapts to the next code: by its change of the step width, and its difference.
    fn adapt(&mut self, widens: i32, difference: i32) {
        let log = ((self.log_scale * 127) >> 7) + widens;
        self.log_scale = log.clamp(0, self.half.most());
        let power = at(&POWERS, ((self.log_scale >> 6) & 31) as u8);
        let shift = self.half.exponent() - (self.log_scale >> 11);
        self.scale = match shift {
            0.. => power >> shift,
            _ => power << -shift,
        } << 2;
        self.predict(difference);
    }

    /// The blocks RECONS to PREDIC.
    fn predict(&mut self, difference: i32) {
        let signal = saturate(self.predicted + difference);
        let partial = saturate(self.by_zeros + difference);
        let is_alike = |earlier: i32| (earlier < 0) == (partial < 0);
        let [last, before] = self.partial;
        let [first, second] = self.poles;

        let turned = saturate(first << 2);
        let turned = if is_alike(last) { -turned } else { turned };
        let pull = if is_alike(before) { 128 } else { -128 };
        let second =
            (pull + (turned.min(32_767) >> 7) + ((second * 32_512) >> 15)).clamp(-12_288, 12_288);
        let pull = if is_alike(last) { 192 } else { -192 };
        let most = saturate(15_360 - second);
        let first = saturate(pull + ((first * 32_640) >> 15)).clamp(-most, most);
        self.poles = [first, second];

        let pull = if difference == 0 { 0 } else { 128 };
        for (zero, earlier) in self.zeros.iter_mut().zip(self.differences) {
            let is_alike = (earlier < 0) == (difference < 0);
            let pull = if is_alike { pull } else { -pull };
            *zero = saturate(pull + ((*zero * 32_640) >> 15));
        }

        self.differences.rotate_right(1);
        if let Some(newest) = self.differences.first_mut() {
            *newest = difference;
        }
        self.signals = [signal, self.signals[0]];
        self.partial = [partial, last];

        let twice = |value: i32| saturate(value + value);
        let by_poles: i32 = self
            .poles
            .iter()
            .zip(self.signals)
            .map(|(pole, signal)| (pole * twice(signal)) >> 15)
            .sum();
        let by_zeros: i32 = self
            .zeros
            .iter()
            .zip(self.differences)
            .map(|(zero, difference)| (zero * twice(difference)) >> 15)
            .sum();
        self.by_zeros = saturate(by_zeros);
        self.predicted = saturate(saturate(by_poles) + self.by_zeros);
    }
}

/// The sums of the mirror filters over the last 24 values.
#[derive(Debug, Clone, Default)]
struct Mirror {
    values: [i32; 2 * HALF],
}

impl Mirror {
    /// Takes two values, and returns the sums of the values at even and at odd places.
    fn push(&mut self, first: i32, second: i32) -> (i32, i32) {
        self.values.copy_within(2.., 0);
        if let Some(newest) = self.values.last_chunk_mut::<2>() {
            *newest = [first, second];
        }
        let (pairs, _) = self.values.as_chunks::<2>();
        let even = pairs
            .iter()
            .zip(FILTER)
            .map(|([value, _], tap)| value * tap);
        let taps = FILTER.iter().rev();
        let odd = pairs.iter().zip(taps).map(|([_, value], tap)| value * tap);
        (even.sum(), odd.sum())
    }
}

/// An encoder from samples at 16 kHz to bytes.
#[derive(Debug, Clone)]
pub struct Encoder {
    mirror: Mirror,
    lower: Band,
    upper: Band,
    /// A sample that waits for its pair.
    waiting: Option<i32>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            mirror: Mirror::default(),
            lower: Band::new(Half::Lower),
            upper: Band::new(Half::Upper),
            waiting: None,
        }
    }
}

impl Encoder {
    /// Appends the bytes of `samples` to `into`: one for two samples. Samples beyond full scale are
    /// clipped.
    pub fn encode(&mut self, samples: &[f32], into: &mut Vec<u8>) {
        for sample in samples {
            // `as` saturates, and turns NaN into 0.
            let sample = i32::from((sample * 32_768.0).round() as i16);
            match self.waiting.take() {
                Some(first) => {
                    let byte = self.code(first, sample);
                    into.push(byte);
                }
                None => self.waiting = Some(sample),
            }
        }
    }

    fn code(&mut self, first: i32, second: i32) -> u8 {
        let (even, odd) = self.mirror.push(first, second);
        let lower = self.code_lower((odd + even) >> 14);
        let upper = self.code_upper((odd - even) >> 14);
        (upper << 6) | lower
    }

    fn code_lower(&mut self, signal: i32) -> u8 {
        let error = saturate(signal - self.lower.predicted);
        let magnitude = if error >= 0 { error } else { -(error + 1) };
        let scale = self.lower.scale;
        let step = LEVELS.partition_point(|level| magnitude >= (level * scale) >> 12);
        let codes = match error {
            0.. => &LOWER_POSITIVE,
            _ => &LOWER_NEGATIVE,
        };
        let code = codes.get(step).copied().unwrap_or(0);
        let difference = self.lower.difference(at(&LOWER_4, code >> 2));
        self.lower.adapt(at(&LOWER_WIDTH, code >> 2), difference);
        code
    }

    fn code_upper(&mut self, signal: i32) -> u8 {
        let error = saturate(signal - self.upper.predicted);
        let magnitude = if error >= 0 { error } else { -(error + 1) };
        let is_far = magnitude >= (UPPER_LEVEL * self.upper.scale) >> 12;
        let code = match (error >= 0, is_far) {
            (false, false) => 1,
            (false, true) => 0,
            (true, false) => 3,
            (true, true) => 2,
        };
        let difference = self.upper.difference(at(&UPPER_2, code));
        self.upper.adapt(at(&UPPER_WIDTH, code), difference);
        code
    }
}

/// A decoder from bytes to samples at 16 kHz.
#[derive(Debug, Clone)]
pub struct Decoder {
    mirror: Mirror,
    lower: Band,
    upper: Band,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            mirror: Mirror::default(),
            lower: Band::new(Half::Lower),
            upper: Band::new(Half::Upper),
        }
    }
}

impl Decoder {
    /// Appends the samples of `bytes` to `into`: two for each byte.
    pub fn decode(&mut self, bytes: &[u8], into: &mut Vec<f32>) {
        for byte in bytes {
            let samples = self.sound(*byte);
            into.extend(samples.map(|sample| sample as f32 / 32_768.0));
        }
    }

    fn sound(&mut self, byte: u8) -> [i32; 2] {
        let (code, half) = (byte & 0x3f, byte >> 6);
        let heard = self.lower.difference(at(&LOWER_6, code));
        let lower = (self.lower.predicted + heard).clamp(-16_384, 16_383);
        let difference = self.lower.difference(at(&LOWER_4, code >> 2));
        self.lower.adapt(at(&LOWER_WIDTH, code >> 2), difference);

        let difference = self.upper.difference(at(&UPPER_2, half));
        let upper = (self.upper.predicted + difference).clamp(-16_384, 16_383);
        self.upper.adapt(at(&UPPER_WIDTH, half), difference);

        let (even, odd) = self.mirror.push(lower + upper, lower - upper);
        [saturate(odd >> 11), saturate(even >> 11)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of low, high and full amplitude in turn, then a square wave of full scale.
    fn signal() -> Vec<i16> {
        let mut state = 12_345_u32;
        let noise = |index: usize| {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
            let noise = ((state >> 15) as i32 - 32_768) as i16;
            match (index / 2_000) % 4 {
                0 => noise >> 6,
                1 => noise >> 2,
                2 => noise,
                _ if (index / 37) % 2 == 1 => i16::MAX,
                _ => i16::MIN,
            }
        };
        (0..16_000).map(noise).collect()
    }

    fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
        bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The checksums are those of ffmpeg's output for the same input.
    #[test]
    fn bytes_and_samples_are_those_of_another_implementation() {
        let samples: Vec<f32> = signal()
            .iter()
            .map(|it| f32::from(*it) / 32_768.0)
            .collect();
        let mut bytes = Vec::new();
        let mut encoder = Encoder::default();
        // In parts of an odd length.
        for part in samples.chunks(111) {
            encoder.encode(part, &mut bytes);
        }
        assert_eq!(bytes.len(), 8_000);
        assert_eq!(fnv(bytes.iter().copied()), 0xc734_d16c_ed3b_a7eb);
        let mut heard = Vec::new();
        let mut decoder = Decoder::default();
        for part in bytes.chunks(77) {
            decoder.decode(part, &mut heard);
        }
        let heard = heard.iter().map(|it| (it * 32_768.0) as i16);
        let heard: Vec<u8> = heard.flat_map(i16::to_le_bytes).collect();
        assert_eq!(heard.len(), 32_000);
        assert_eq!(fnv(heard), 0x47f9_e31c_efed_41e4);
    }

    #[test]
    fn whatever_comes_is_sound() {
        let mut decoder = Decoder::default();
        let mut heard = Vec::new();
        for seed in 0..=255_u8 {
            let bytes: Vec<u8> = (0..300_u32)
                .map(|n| (n * n * u32::from(seed)) as u8)
                .collect();
            decoder.decode(&bytes, &mut heard);
        }
        assert!(heard.iter().all(|sample| (-1.0..=1.0).contains(sample)));
        let mut bytes = Vec::new();
        let hostile = [f32::NAN, f32::INFINITY, -9.0, f32::NEG_INFINITY, 1e30, 0.0];
        Encoder::default().encode(&hostile, &mut bytes);
        assert_eq!(bytes.len(), 3);
    }
}
