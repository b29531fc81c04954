//! Decoder setups, read from frames: parameter sets, sizes, profiles.
//!
//! Frames have the formats of [`portunus_rtp::depacketize`].

mod av1;
mod bits;
mod h264;
mod h265;
mod nal;
mod vp9;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

pub(crate) use h264::avcc;
pub(crate) use h265::hvcc;

use crate::track::Codec;

/// The codec setup of a track in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setup {
    /// VP8, which has no parameters.
    Vp8,
    /// VP9 (the VP codec configuration of MP4).
    Vp9 {
        /// The profile, 0 to 3.
        profile: u8,
        /// The bit depth: 8, 10 or 12.
        bit_depth: u8,
        /// The chroma subsampling: 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
        subsampling: u8,
        /// Whether samples use the full range of values.
        full_range: bool,
    },
    /// AV1.
    Av1 {
        /// The sequence header OBU, with its size.
        sequence_header: Vec<u8>,
        /// The first four bytes of an AV1CodecConfigurationRecord.
        config: [u8; 4],
    },
    /// H.264, with NAL units without lengths.
    H264 {
        /// Sequence parameter sets.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets.
        pps: Vec<Vec<u8>>,
    },
    /// H.265, with NAL units without lengths.
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
        /// The channels of the decoded audio: 1 or 2.
        channels: u8,
    },
    /// G.711, µ-law.
    Pcmu,
    /// G.711, A-law.
    Pcma,
}

/// The size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Picture {
    /// The width in pixels, at least 1.
    pub width: u32,
    /// The height in pixels, at least 1.
    pub height: u32,
}

impl Picture {
    /// Returns `None` for an empty picture.
    fn new(width: u32, height: u32) -> Option<Self> {
        (width > 0 && height > 0).then_some(Self { width, height })
    }
}

/// Reads the decoder setup of a keyframe, and its size if it is a picture. Missing parameter sets
/// are taken from the earlier setup `before`. Returns `None` if no decoder could start here.
pub fn read_setup(
    codec: Codec,
    keyframe: &[u8],
    before: Option<&Setup>,
) -> Option<(Setup, Option<Picture>)> {
    let (setup, picture) = match codec {
        Codec::Vp8 => (Setup::Vp8, vp8_picture(keyframe)?),
        Codec::Vp9 => vp9::read_setup(keyframe)?,
        Codec::Av1 => av1::read_setup(keyframe, before)?,
        Codec::H264 => h264::read_setup(keyframe, before)?,
        Codec::H265 => h265::read_setup(keyframe, before)?,
        // WebRTC's Opus decoders make two channels of any packet (RFC 7587 section 7).
        Codec::Opus => return Some((Setup::Opus { channels: 2 }, None)),
        Codec::Pcmu => return Some((Setup::Pcmu, None)),
        Codec::Pcma => return Some((Setup::Pcma, None)),
    };
    Some((setup, Some(picture)))
}

/// Reads the decoder setup in the format parameters of SDP: `sprop-parameter-sets` of H.264 (RFC
/// 6184 section 8.1), `sprop-vps`, `sprop-sps` and `sprop-pps` of H.265 (RFC 7798 section 7.1). For
/// audio it is that of [`read_setup`].
pub fn setup_of_fmtp(codec: Codec, fmtp: &str) -> Option<Setup> {
    let sets = |name: &str| {
        let parameters = fmtp.split(';').filter_map(|it| it.trim().split_once('='));
        let mut found = parameters.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        read_base64(found.next()?.1)
    };
    match codec {
        Codec::Vp8 | Codec::Vp9 | Codec::Av1 => None,
        Codec::H264 => h264::setup_of_sets(sets("sprop-parameter-sets")?),
        Codec::H265 => {
            let (vps, sps, pps) = (sets("sprop-vps")?, sets("sprop-sps")?, sets("sprop-pps")?);
            h265::setup(vps, sps, pps).map(|(setup, _)| setup)
        }
        Codec::Opus | Codec::Pcmu | Codec::Pcma => {
            read_setup(codec, &[], None).map(|(setup, _)| setup)
        }
    }
}

/// Reads sets in base64, with or without padding, separated by commas.
fn read_base64(text: &str) -> Option<Vec<Vec<u8>>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let mut sets: Vec<Vec<u8>> = Vec::new();
    for set in text.split(',').filter(|set| !set.trim().is_empty()) {
        sets.push(LENIENT.decode(set.trim()).ok()?);
    }
    nal::sets(sets.iter().map(Vec::as_slice), None)
}

impl Setup {
    /// Returns the size of pictures if the setup has it, as with AV1, H.264 and H.265.
    pub fn picture(&self) -> Option<Picture> {
        match self {
            Setup::Av1 {
                sequence_header, ..
            } => av1::picture(sequence_header),
            Setup::H264 { sps, .. } => h264::picture(sps),
            Setup::H265 { sps, .. } => h265::picture(sps),
            Setup::Vp8 | Setup::Vp9 { .. } | Setup::Opus { .. } | Setup::Pcmu | Setup::Pcma => None,
        }
    }

    /// Whether a decoder with this setup can continue with `other`: codec, profile and size are the
    /// same. The sizes of VP8 and VP9 do not count, because each keyframe has them.
    pub fn goes_on_with(&self, other: &Setup) -> bool {
        let same_picture = self.picture() == other.picture();
        match (self, other) {
            (Setup::H264 { sps: a, .. }, Setup::H264 { sps: b, .. }) => {
                same_picture && h264::profile(a) == h264::profile(b)
            }
            (Setup::H265 { sps: a, .. }, Setup::H265 { sps: b, .. }) => {
                same_picture && h265::profile(a) == h265::profile(b)
            }
            _ => self == other,
        }
    }

    /// Returns the AVCDecoderConfigurationRecord of H.264 for MP4 and Matroska (ISO/IEC 14496-15).
    pub fn avcc(&self) -> Option<Vec<u8>> {
        match self {
            Setup::H264 { sps, pps } => h264::avcc_bytes(sps, pps),
            _ => None,
        }
    }

    /// Returns the HEVCDecoderConfigurationRecord of H.265 for MP4 and Matroska (ISO/IEC 14496-15).
    pub fn hvcc(&self) -> Option<Vec<u8>> {
        match self {
            Setup::H265 { vps, sps, pps } => h265::hvcc_bytes(vps, sps, pps),
            _ => None,
        }
    }

    /// Returns the AV1CodecConfigurationRecord of AV1 for MP4 and Matroska.
    pub fn av1c(&self) -> Option<Vec<u8>> {
        match self {
            Setup::Av1 {
                sequence_header,
                config,
            } => Some([config, sequence_header.as_slice()].concat()),
            _ => None,
        }
    }

    /// Returns the codec.
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

/// Returns the size in the header of a VP8 keyframe (RFC 6386 section 9.1).
fn vp8_picture(frame: &[u8]) -> Option<Picture> {
    let [tag, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1] = *frame.first_chunk()? else {
        return None;
    };
    // The upper two bits are scaling, which is left to the player.
    let pixels = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    let picture = Picture::new(pixels(w0, w1), pixels(h0, h1))?;
    (tag & 1 == 0).then_some(picture)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;
    use proptest::prelude::*;

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

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text.chars().filter_map(|it| it.to_digit(16)).collect();
        digits
            .chunks(2)
            .map(|it| (it[0] << 4 | it[1]) as u8)
            .collect()
    }

    fn access_unit(units: &[&[u8]]) -> Vec<u8> {
        let with_length = |unit: &&[u8]| [&(unit.len() as u32).to_be_bytes(), *unit].concat();
        units.iter().flat_map(with_length).collect()
    }

    /// The size of all test pictures: 322x182, whose borders are cropped.
    const PICTURE: Picture = Picture {
        width: 322,
        height: 182,
    };

    /// x264, high profile.
    const AVCC: &str = "0164000c ffe1001a 6764000cacd94151 9e226c0440000003 0040000005 03c50a6580
        0100 0668ebe3cb22c0 fdf8f800";
    const H264_SPS: &str = "6764000cacd94151 9e226c0440000003 0040000005 03c50a6580";
    const H264_PPS: &str = "68ebe3cb22c0";

    #[test]
    fn h264_keyframes() {
        let (sps, pps) = (hex(H264_SPS), hex(H264_PPS));
        let keyframe = access_unit(&[&[9, 0xf0], &sps, &pps, &sps, &[0x65, 0x88]]);
        let (setup, picture) = read_setup(Codec::H264, &keyframe, None).unwrap();
        assert_eq!(picture, Some(PICTURE));
        assert_eq!(setup.avcc().unwrap(), hex(AVCC));
        // A keyframe without sets uses the earlier ones, and without those there is no setup.
        let bare = access_unit(&[&[0x65, 0x88]]);
        let again = read_setup(Codec::H264, &bare, Some(&setup));
        assert_eq!(again, Some((setup.clone(), picture)));
        assert_eq!(read_setup(Codec::H264, &bare, None), None);
        assert_eq!(read_setup(Codec::H264, &bare, Some(&Setup::Vp8)), None);
        // The same sets in SDP, without padding.
        let fmtp = "packetization-mode=1; sprop-parameter-sets=Z2QADKzZQVGeImwEQAAAAwBAAAAFA8UKZYA,aOvjyyLA";
        assert_eq!(setup_of_fmtp(Codec::H264, fmtp), Some(setup));
        let cut = "sprop-parameter-sets=Z2QADKzZ,aOvjyyLA";
        assert_eq!(setup_of_fmtp(Codec::H264, cut), None);
    }

    #[test]
    fn h265_keyframes() {
        let vps = hex("40010c01ffff01600000030090000003000003003c959809");
        let sps = hex(
            "420101016000000300900000030000030 03ca00a480b9c95965669 24caf01680 80000003008000000504 22",
        );
        let pps = hex("4401c172b46240");
        let sps = &sps[..42];
        let keyframe = access_unit(&[&vps, sps, &pps, &[0x26, 1, 0x80]]);
        let (setup, picture) = read_setup(Codec::H265, &keyframe, None).unwrap();
        assert_eq!(picture, Some(PICTURE));
        let record = setup.hvcc().unwrap();
        let expected = hex("01016000000090000000 00003cf000fcfdf8f800000f03 a0 0001 0018");
        assert_eq!(record[..expected.len()], expected);
        assert!(setup.goes_on_with(&setup));
        let fmtp = "sprop-vps=QAEMAf//AWAAAAMAkAAAAwAAAwA8lZgJ; sprop-sps=; sprop-pps=RAHBcrRiQA==";
        assert_eq!(setup_of_fmtp(Codec::H265, fmtp), None);
    }

    #[test]
    fn av1_keyframes() {
        let unit = hex("0a0b00000004 3d06d4fff98040 3203 100000");
        let (setup, picture) = read_setup(Codec::Av1, &unit, None).unwrap();
        assert_eq!(picture, Some(PICTURE));
        let record = hex("81000c00 0a0b00000004 3d06d4fff98040");
        assert_eq!(setup.av1c().unwrap(), record);
        let again = read_setup(Codec::Av1, &[0x32, 1, 0x10], Some(&setup));
        assert_eq!(again, Some((setup, Some(PICTURE))));
        assert_eq!(read_setup(Codec::Av1, &[0x32, 1, 0x10], None), None);
        assert_eq!(read_setup(Codec::Av1, &unit[..12], None), None);
    }

    #[test]
    fn vp9_keyframes() {
        let frame = hex("824983420014100b56083824");
        let expected = Setup::Vp9 {
            profile: 0,
            bit_depth: 8,
            subsampling: 1,
            full_range: false,
        };
        let expected = Some((expected, Some(PICTURE)));
        assert_eq!(read_setup(Codec::Vp9, &frame, None), expected);
        // The upper layer has its own size: shown, resilient, no reference of that size.
        let mut upper = Vec::new();
        for (value, bits) in [
            (0b1000_0111_u64, 8),
            (0, 8 + 12 + 3),
            (643, 16),
            (363, 16),
            (0, 1),
        ] {
            upper.extend((0..bits).rev().map(|bit| (value >> bit & 1) as u8));
        }
        let upper: Vec<u8> = upper
            .chunks(8)
            .map(|it| it.iter().fold(0, |sum, bit| sum << 1 | bit))
            .collect();
        let superframe = [&frame[..], &upper, &[0xc1, 12, upper.len() as u8, 0xc1]].concat();
        let (_, picture) = read_setup(Codec::Vp9, &superframe, None).unwrap();
        assert!(picture.is_some_and(|it| (it.width, it.height) == (644, 364)));
        assert_eq!(read_setup(Codec::Vp9, &[0x86, 0, 0], None), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0..60_usize) {
            let mut sets = access_unit(&[&hex(H264_SPS), &hex(H264_PPS)]);
            sets.splice(at.min(sets.len()).., bytes.iter().copied());
            let h265 = [&[0x42, 1], bytes.as_slice()].concat();
            let h265 = access_unit(&[&[0x40, 1, 1], &h265, &[0x44, 1, 1]]);
            let av1 = [&[0x08], bytes.as_slice()].concat();
            let vp9 = [&[0x82, 0x49, 0x83, 0x42], bytes.as_slice()].concat();
            for (codec, frame) in [
                (Codec::H264, &sets), (Codec::H265, &h265), (Codec::Av1, &av1), (Codec::Vp9, &vp9), (Codec::Vp9, &bytes),
            ] {
                if let Some((setup, picture)) = read_setup(codec, frame, None) {
                    prop_assert!(picture.is_some_and(|it| it.width > 0 && it.height > 0));
                    prop_assert_eq!(setup.avcc().is_some(), codec == Codec::H264);
                    prop_assert_eq!(setup.hvcc().is_some(), codec == Codec::H265);
                    prop_assert!(setup.goes_on_with(&setup));
                }
            }
        }
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
