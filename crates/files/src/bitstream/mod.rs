//! What a decoder has to be told before the first frame, read out of frames: parameter sets, sizes, profiles.
//!
//! Frames have the forms of [`portunus_rtp::depacketize`].

use crate::track::Codec;

/// What a container says of a track's codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setup {
    /// VP8: nothing.
    Vp8,
    /// VP9 (the VP codec configuration of MP4).
    Vp9 {
        /// The profile, 0 to 3.
        profile: u8,
        /// Bits of a sample: 8, 10 or 12.
        bit_depth: u8,
        /// How chroma is subsampled: 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
        subsampling: u8,
        /// Samples use the full range of values.
        full_range: bool,
    },
    /// AV1.
    Av1 {
        /// The sequence header OBU, with its size.
        sequence_header: Vec<u8>,
        /// The first four bytes of an AV1CodecConfigurationRecord.
        config: [u8; 4],
    },
    /// H.264, NAL units without lengths.
    H264 {
        /// Sequence parameter sets.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets.
        pps: Vec<Vec<u8>>,
    },
    /// H.265, NAL units without lengths.
    H265 {
        /// Video parameter sets.
        vps: Vec<Vec<u8>>,
        /// Sequence parameter sets.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets.
        pps: Vec<Vec<u8>>,
    },
    /// Opus.
    Opus {
        /// The channels that a decoder makes of it: 1 or 2.
        channels: u8,
    },
    /// G.711, mu-law.
    Pcmu,
    /// G.711, A-law.
    Pcma,
}

/// The size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Picture {
    /// Pixels from left to right, at least 1.
    pub width: u32,
    /// Pixels from top to bottom, at least 1.
    pub height: u32,
}

impl Picture {
    /// Nothing if there is nothing to see.
    fn new(width: u32, height: u32) -> Option<Self> {
        (width > 0 && height > 0).then_some(Self { width, height })
    }
}

/// Reads what a decoder has to be told to begin with this keyframe, and its size if it is a picture. `before` is what was
/// known: parameter sets that the keyframe lacks are taken from it. Nothing: no decoder could begin here.
pub fn read_setup(
    codec: Codec,
    keyframe: &[u8],
    before: Option<&Setup>,
) -> Option<(Setup, Option<Picture>)> {
    let _ = before;
    let (setup, picture) = match codec {
        Codec::Vp8 => (Setup::Vp8, vp8_picture(keyframe)?),
        Codec::Vp9 | Codec::Av1 | Codec::H264 | Codec::H265 => return None,
        // Decoders of WebRTC's Opus make two channels of any packet (RFC 7587 section 7).
        Codec::Opus => return Some((Setup::Opus { channels: 2 }, None)),
        Codec::Pcmu => return Some((Setup::Pcmu, None)),
        Codec::Pcma => return Some((Setup::Pcma, None)),
    };
    Some((setup, Some(picture)))
}

impl Setup {
    /// The codec that it is of.
    pub fn codec(&self) -> Codec {
        match self {
            Setup::Vp8 => Codec::Vp8,
            Setup::Vp9 { .. } => Codec::Vp9,
            Setup::Av1 { .. } => Codec::Av1,
            Setup::H264 { .. } => Codec::H264,
            Setup::H265 { .. } => Codec::H265,
            Setup::Opus { .. } => Codec::Opus,
            Setup::Pcmu => Codec::Pcmu,
            Setup::Pcma => Codec::Pcma,
        }
    }
}

/// The size in a VP8 keyframe's header (RFC 6386 section 9.1).
fn vp8_picture(frame: &[u8]) -> Option<Picture> {
    let [tag, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1] = *frame.first_chunk()? else {
        return None;
    };
    // The two bits above are scaling, left to the player.
    let pixels = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    let picture = Picture::new(pixels(w0, w1), pixels(h0, h1))?;
    (tag & 1 == 0).then_some(picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vp8_keyframes() {
        let keyframe = [
            0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0xe0, 0x41, 9,
        ];
        let picture = Picture {
            width: 640,
            height: 480,
        };
        let expected = Some((Setup::Vp8, Some(picture)));
        assert_eq!(read_setup(Codec::Vp8, &keyframe, None), expected);
        let delta = [&[0x11], &keyframe[1..]].concat();
        assert_eq!(read_setup(Codec::Vp8, &delta, None), None);
        assert_eq!(read_setup(Codec::Vp8, &keyframe[..9], None), None);
    }

    #[test]
    fn sound() {
        let opus = Some((Setup::Opus { channels: 2 }, None));
        assert_eq!(read_setup(Codec::Opus, &[0xfc], None), opus);
        for (codec, setup) in [(Codec::Pcmu, Setup::Pcmu), (Codec::Pcma, Setup::Pcma)] {
            assert_eq!(setup.codec(), codec);
            assert_eq!(read_setup(codec, &[1], None), Some((setup, None)));
        }
    }
}
