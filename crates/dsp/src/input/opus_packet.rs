//! The properties of an Opus packet that can be read without decoding (RFC 6716 section 3).

/// The longest packet: 120 ms of 48 kHz.
const LONGEST: u32 = 5_760;

/// The properties of an Opus packet. Lengths are in samples of 48 kHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpusPacket {
    /// The length.
    pub len: u32,
    /// Whether it contains no audio, because the sender is silent (DTX).
    pub dtx: bool,
    /// The length of the audio before it that it contains (in-band FEC), or 0.
    pub fec: u32,
    /// The sampling rate for its bandwidth.
    pub rate: u32,
    pub stereo: bool,
    /// Whether it has a SILK layer, as speech usually has.
    pub silk: bool,
}

impl OpusPacket {
    /// Reads the first bytes of a packet. Returns `None` if it is not Opus.
    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let (&toc, rest) = payload.split_first()?;
        let config = toc >> 3;
        let frame = match config {
            0..12 => [480, 960, 1_920, 2_880]
                .get(usize::from(config & 3))
                .copied()?,
            12..16 => 480 << (config & 1),
            _ => 120 << (config & 3),
        };
        let frames = match toc & 3 {
            0 => 1,
            1 | 2 => 2,
            _ => u32::from(rest.first()? & 0x3f),
        };
        let len = frame * frames;
        if len == 0 || len > LONGEST {
            return None;
        }
        let silk = config < 16;
        let fec = if silk && first_frame(toc, rest).is_some_and(|first| has_lbrr(toc, frame, first))
        {
            frame
        } else {
            0
        };
        Some(Self {
            len,
            dtx: payload.len() <= 2,
            fec,
            rate: rate(config),
            stereo: toc & 4 != 0,
            silk,
        })
    }
}

/// Returns the sampling rate for the bandwidth of a configuration (RFC 6716 section 3.1).
fn rate(config: u8) -> u32 {
    match config {
        0..4 | 16..20 => 8_000,
        4..8 => 12_000,
        8..12 | 20..24 => 16_000,
        12..14 | 24..28 => 24_000,
        _ => 48_000,
    }
}

/// Returns the first byte of the first frame, if that is not empty (RFC 6716 section 3.2).
fn first_frame(toc: u8, rest: &[u8]) -> Option<u8> {
    let sized = |rest: &[u8], sizes: usize, at: usize| {
        // Each size is one byte, or two if the first is 252 or more. The first frame must not be
        // empty.
        let mut start = at;
        for index in 0..sizes {
            let first = *rest.get(start)?;
            if index == 0 && first == 0 {
                return None;
            }
            start += if first >= 252 { 2 } else { 1 };
        }
        rest.get(start).copied()
    };
    match toc & 3 {
        0 | 1 => rest.first().copied(),
        2 => sized(rest, 1, 0),
        _ => {
            let count = *rest.first()?;
            let mut start = 1;
            if count & 0x40 != 0 {
                while *rest.get(start)? == 255 {
                    start += 1;
                }
                start += 1;
            }
            let sizes = if count & 0x80 != 0 {
                usize::from(count & 0x3f).saturating_sub(1)
            } else {
                0
            };
            sized(rest, sizes, start)
        }
    }
}

/// Whether the SILK layer contains the frame before. The flags of voice activity for each 20 ms
/// come first, then this flag. All have even odds, so they are plain bits (RFC 6716 section 4.2.3).
fn has_lbrr(toc: u8, frame: u32, first: u8) -> bool {
    let silk_frames = (frame / 960).max(1);
    let mid = (first >> (7 - silk_frames)) & 1 != 0;
    let stereo = toc & 4 != 0;
    mid || (stereo && (first >> (6 - 2 * silk_frames)) & 1 != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_those_of_table_2() {
        let len = |config: u8| OpusPacket::parse(&[config << 3, 0, 0]).unwrap().len;
        assert_eq!([0, 1, 2, 3].map(len), [480, 960, 1_920, 2_880], "SILK");
        assert_eq!([12, 13, 14, 15].map(len), [480, 960, 480, 960], "hybrid");
        assert_eq!(
            [16, 17, 18, 19, 31].map(len),
            [120, 240, 480, 960, 960],
            "CELT"
        );
    }

    #[test]
    fn bands_are_those_of_table_2() {
        let rate = |config: u8| OpusPacket::parse(&[config << 3, 0, 0]).unwrap().rate;
        assert_eq!([0, 4, 8].map(rate), [8_000, 12_000, 16_000], "SILK");
        assert_eq!([12, 14].map(rate), [24_000, 48_000], "hybrid");
        assert_eq!([16, 20, 24, 28].map(rate), [8_000, 16_000, 24_000, 48_000]);
        assert!(
            [0, 15]
                .iter()
                .all(|config| OpusPacket::parse(&[config << 3, 0]).unwrap().silk)
        );
        assert!(!OpusPacket::parse(&[16 << 3, 0]).unwrap().silk);
        assert!(!OpusPacket::parse(&[8 << 3, 0]).unwrap().stereo);
        assert!(OpusPacket::parse(&[8 << 3 | 4, 0]).unwrap().stereo);
    }

    #[test]
    fn what_is_too_long_or_empty_is_no_packet() {
        assert_eq!(OpusPacket::parse(&[]), None);
        assert_eq!(OpusPacket::parse(&[0xfb]), None, "code 3 without a count");
        assert_eq!(OpusPacket::parse(&[0xfb, 0]), None, "no frames");
        assert_eq!(OpusPacket::parse(&[0xfb, 7, 1]), None, "140 ms");
        assert_eq!(OpusPacket::parse(&[0xfb, 6, 1]).unwrap().len, 5_760);
    }

    proptest! {
        /// The lengths are those of libopus for all packets.
        #[test]
        fn lengths_are_those_of_libopus(payload in prop::collection::vec(any::<u8>(), 0..40)) {
            let libopus = opusic_c::utils::get_nb_samples(&payload, opusic_c::SampleRate::Hz48000).ok().filter(|len| *len > 0);
            prop_assert_eq!(OpusPacket::parse(&payload).map(|packet| packet.len as usize), libopus);
        }
    }

    /// Packets of an encoder contain in-band FEC only if it is turned on. DTX packets are
    /// recognized.
    #[test]
    fn fec_and_dtx_are_seen() {
        use opusic_c::{Application, Bitrate, Channels, Encoder, InbandFec, SampleRate, Signal};
        for fec in [false, true] {
            let mut encoder =
                Encoder::new(Channels::Mono, SampleRate::Hz16000, Application::Voip).unwrap();
            encoder
                .set_inband_fec(if fec {
                    InbandFec::Mode1
                } else {
                    InbandFec::Off
                })
                .unwrap();
            encoder.set_packet_loss(20).unwrap();
            encoder.set_signal(Signal::Voice).unwrap();
            encoder.set_bitrate(Bitrate::Value(24_000)).unwrap();
            encoder.set_dtx(true).unwrap();
            let (mut with_fec, mut dtx) = (0, 0);
            for frame in 0..100 {
                let samples: Vec<f32> = (0..320)
                    .map(|index| {
                        let time = (frame * 320 + index) as f32 / 16_000.0;
                        let loud = if frame < 50 { 0.3 } else { 0.0 };
                        loud * (time * 900.0).sin() * (time * 20.0).sin()
                    })
                    .collect();
                let mut bytes = [0; 400];
                let len = encoder.encode_float_to_slice(&samples, &mut bytes).unwrap();
                let packet = OpusPacket::parse(bytes.get(..len).unwrap()).unwrap();
                assert_eq!(packet.len, 960);
                with_fec += usize::from(packet.fec == 960);
                dtx += usize::from(packet.dtx);
            }
            assert_eq!(with_fec > 20, fec, "{with_fec} with FEC");
            assert!(dtx > 20, "{dtx} DTX");
        }
    }
}
