//! The encodings of mixes: as listeners ask for them, but not one for each listener.

use crate::{AudioCodec, Encoding, Format};

/// The limit of Opus encodings of the room's mix.
pub(super) const MOST: usize = 8;

/// The bitrates of the room's mix, in bit/s.
const BITRATES: [u32; 16] = [
    6_000, 8_000, 12_000, 16_000, 20_000, 24_000, 32_000, 40_000, 48_000, 64_000, 80_000, 96_000,
    128_000, 192_000, 256_000, 510_000,
];

/// The expected losses of the room's mix, in percent.
const LOSSES: [u8; 4] = [0, 5, 10, 20];

/// Removes parameters that the codec does not use, so that more participants share an encoder.
pub(super) fn normal(encoding: Encoding) -> Encoding {
    match encoding.codec {
        AudioCodec::Opus => encoding,
        codec @ (AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722) => Encoding {
            codec,
            bitrate: None,
            complexity: 1,
            fec: false,
            expected_loss: 0,
        },
    }
}

/// Returns the encoding of the room's mix: the next lower bitrate, and the next higher loss.
pub(super) fn shared(encoding: Encoding) -> Encoding {
    let step = |asked| {
        let below = BITRATES.iter().rev().find(|step| **step <= asked);
        below.or(BITRATES.first()).copied().unwrap_or(asked)
    };
    let loss = encoding.expected_loss;
    let above = LOSSES.iter().find(|step| **step >= loss);
    normal(Encoding {
        bitrate: encoding.bitrate.map(step),
        expected_loss: above.or(LOSSES.last()).copied().unwrap_or(loss),
        ..encoding
    })
}

/// Returns the difference of two Opus encodings: 10 for half of the bitrate.
pub(super) fn difference(one: Encoding, other: Encoding, format: Format) -> u32 {
    // The bitrate that libopus chooses for a channel.
    let usual = (3_000 + format.rate.hertz()) * format.channels.count() as u32;
    let [a, b] = [one, other].map(|it| it.bitrate.unwrap_or(usual).max(1) as f32);
    let bitrate = ((a / b).log2().abs() * 10.0) as u32;
    let loss = |it: Encoding| if it.fec { it.expected_loss } else { 0 };
    bitrate
        + u32::from(loss(one).abs_diff(loss(other)))
        + u32::from(one.complexity.abs_diff(other.complexity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channels, SampleRate};

    const ASKED: Encoding = Encoding {
        codec: AudioCodec::Opus,
        bitrate: Some(30_001),
        complexity: 4,
        fec: true,
        expected_loss: 7,
    };

    #[test]
    fn nobody_gets_more_bits_or_less_protection_than_it_asked_for() {
        let given = shared(ASKED);
        assert_eq!((given.bitrate, given.expected_loss), (Some(24_000), 10));
        let least = Encoding {
            bitrate: Some(500),
            expected_loss: 100,
            ..ASKED
        };
        assert_eq!(shared(least).bitrate, Some(6_000));
        assert_eq!(shared(least).expected_loss, 20);
        let free = Encoding {
            bitrate: None,
            ..ASKED
        };
        assert_eq!(shared(free).bitrate, None);
    }

    #[test]
    fn no_bitrate_is_alike_to_that_which_libopus_chooses() {
        let format = Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        };
        let of = |bitrate| Encoding { bitrate, ..ASKED };
        let to = |bitrate| difference(of(None), of(Some(bitrate)), format);
        assert!(to(20_000) < to(12_000) && to(20_000) < to(32_000));
        assert_eq!(difference(ASKED, ASKED, format), 0);
    }
}
