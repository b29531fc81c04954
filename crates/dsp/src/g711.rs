//! G.711: A-law and µ-law (ITU-T G.711), with a byte for each sample at 8 kHz.

use crate::AudioCodec;

/// The two laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// A-law: PCMA, payload type 8.
    A,
    /// µ-law: PCMU, payload type 0.
    Mu,
}

impl Law {
    /// Returns the law of this codec, if it is G.711.
    pub const fn of(codec: AudioCodec) -> Option<Self> {
        match codec {
            AudioCodec::Pcma => Some(Law::A),
            AudioCodec::Pcmu => Some(Law::Mu),
            AudioCodec::Opus | AudioCodec::G722 => None,
        }
    }

    /// Returns the byte of silence.
    pub const fn silence(self) -> u8 {
        match self {
            Law::A => 0xd5,
            Law::Mu => 0xff,
        }
    }
}

/// Appends the samples of `bytes` to `into`.
pub fn decode(law: Law, bytes: &[u8], into: &mut Vec<f32>) {
    let table = match law {
        Law::A => &A_SAMPLES,
        Law::Mu => &MU_SAMPLES,
    };
    into.extend(
        bytes
            .iter()
            .map(|&byte| table.get(usize::from(byte)).copied().unwrap_or(0.0)),
    );
}

/// Appends the bytes of `samples` to `into`. Samples beyond full scale are clipped.
pub fn encode(law: Law, samples: &[f32], into: &mut Vec<u8>) {
    into.extend(samples.iter().map(|&sample| {
        // `as` saturates, and turns NaN into 0.
        let sample = (sample * 32_768.0).round() as i16;
        match law {
            Law::A => encode_a(sample),
            Law::Mu => encode_mu(sample),
        }
    }));
}

static A_SAMPLES: [f32; 256] = samples(Law::A);
static MU_SAMPLES: [f32; 256] = samples(Law::Mu);

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, with an index below 256"
)]
const fn samples(law: Law) -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        let sample = match law {
            Law::A => decode_a(byte as u8),
            Law::Mu => decode_mu(byte as u8),
        };
        table[byte] = sample as f32 / 32_768.0;
        byte += 1;
    }
    table
}

/// Decodes a byte of A-law: sign, three bits of exponent, four of mantissa, every second bit
/// inverted. The 13 bits are the upper ones of the 16.
const fn decode_a(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let mantissa = ((byte & 0x0f) as i16) << 4;
    let exponent = (byte >> 4) & 0x07;
    let magnitude = match exponent {
        0 => mantissa + 8,
        _ => (mantissa + 0x108) << (exponent - 1),
    };
    if byte & 0x80 != 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Decodes a byte of µ-law: sign, three bits of exponent, four of mantissa, all bits inverted. The
/// 14 bits are the upper ones of the 16, without the bias of 33 (132 of 16 bits).
const fn decode_mu(byte: u8) -> i16 {
    let byte = !byte;
    let mantissa = ((byte & 0x0f) as i16) << 3;
    let exponent = (byte >> 4) & 0x07;
    let magnitude = ((mantissa + 0x84) << exponent) - 0x84;
    if byte & 0x80 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

const fn encode_a(sample: i16) -> u8 {
    let sign = if sample >= 0 { 0x80 } else { 0 };
    // Negative numbers are inverted, not negated: steps have the same width on both sides of zero.
    let magnitude = if sample >= 0 { sample } else { !sample };
    let exponent = match magnitude >> 8 {
        0 => 0,
        upper => 16 - upper.leading_zeros() as u8,
    };
    let mantissa = match exponent {
        0 => magnitude >> 4,
        _ => magnitude >> (exponent + 3),
    } as u8
        & 0x0f;
    (sign | (exponent << 4) | mantissa) ^ 0x55
}

const fn encode_mu(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    // 14 bits, with the bias that makes each segment start at a power of two.
    let magnitude = sample.unsigned_abs() >> 2;
    let biased = if magnitude > 8_158 {
        8_191
    } else {
        magnitude + 33
    };
    let exponent = 10 - biased.leading_zeros() as u8;
    let mantissa = (biased >> (exponent + 1)) as u8 & 0x0f;
    !(sign | (exponent << 4) | mantissa)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(law: Law, byte: u8) -> i32 {
        let mut samples = Vec::new();
        decode(law, &[byte], &mut samples);
        (samples.first().copied().unwrap_or(f32::NAN) * 32_768.0) as i32
    }

    fn encoded(law: Law, sample: i32) -> u8 {
        let mut bytes = Vec::new();
        encode(law, &[sample as f32 / 32_768.0], &mut bytes);
        bytes.first().copied().unwrap_or(0)
    }

    /// Values of tables 1a and 2a of ITU-T G.711, scaled to 16 bits: the end and the middle of the
    /// scale, and the ends of segments.
    #[test]
    fn the_values_of_the_recommendation() {
        for (byte, sample) in [
            (0xff, 0),
            (0xfe, 8),
            (0xf0, 120),
            (0xef, 132),
            (0xdf, 396),
            (0xcf, 924),
            (0x80, 32_124),
            (0x00, -32_124),
            (0x7f, 0),
        ] {
            assert_eq!(decoded(Law::Mu, byte), sample, "µ-law {byte:#x}");
        }
        for (byte, sample) in [
            (0xd5, 8),
            (0x55, -8),
            (0xd4, 24),
            (0xc5, 264),
            (0xf5, 528),
            (0xaa, 32_256),
            (0x2a, -32_256),
        ] {
            assert_eq!(decoded(Law::A, byte), sample, "A-law {byte:#x}");
        }
    }

    #[test]
    fn what_is_decoded_is_encoded_to_the_same_byte() {
        for byte in 0..=255 {
            assert_eq!(encoded(Law::A, decoded(Law::A, byte)), byte, "A-law");
            // µ-law has two zeros.
            if byte != 0x7f {
                assert_eq!(encoded(Law::Mu, decoded(Law::Mu, byte)), byte, "µ-law");
            }
        }
    }

    /// Each sample is encoded to one of the two nearest values: at most half a step off.
    #[test]
    fn samples_are_encoded_to_what_is_near() {
        for law in [Law::A, Law::Mu] {
            for sample in -32_768..=32_767 {
                let error = (decoded(law, encoded(law, sample)) - sample).abs();
                let step = ((sample.abs() + 132) / 16).max(16);
                assert!(
                    error <= step / 2 + 4 || sample.abs() > 32_000,
                    "{law:?} {sample}: {error} off"
                );
            }
        }
    }

    #[test]
    fn full_scale_and_worse_is_cut() {
        for (law, most, least) in [(Law::A, 0xaa, 0x2a), (Law::Mu, 0x80, 0x00)] {
            let mut bytes = Vec::new();
            encode(
                law,
                &[
                    1.0,
                    7.0,
                    f32::INFINITY,
                    -1.0,
                    -7.0,
                    f32::NEG_INFINITY,
                    f32::NAN,
                    0.0,
                ],
                &mut bytes,
            );
            let silence = law.silence();
            assert_eq!(
                bytes,
                [most, most, most, least, least, least, silence, silence],
                "{law:?}"
            );
        }
    }
}
