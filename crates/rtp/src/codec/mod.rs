//! Payload descriptors of codecs, and what payloads show: keyframes, layers, picture ids.

pub mod av1;
pub mod h264;
pub mod h265;
pub mod vp8;
pub mod vp9;

pub use av1::Av1;
pub use vp8::{PictureId, Vp8};
pub use vp9::{ScalabilityStructure, Vp9, Vp9Layer};

/// The video codecs whose payloads can be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VideoCodec {
    /// RFC 7741.
    Vp8,
    /// RFC 9628.
    Vp9,
    /// RFC 6184.
    H264,
    /// RFC 7798.
    H265,
    /// The Alliance for Open Media's payload format.
    Av1,
}

impl VideoCodec {
    /// Returns the codec with this encoding name in SDP, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Vp8, Self::Vp9, Self::H264, Self::H265, Self::Av1]
            .into_iter()
            .find(|codec| codec.name().eq_ignore_ascii_case(name))
    }

    /// Returns the encoding name in SDP.
    pub const fn name(self) -> &'static str {
        match self {
            VideoCodec::Vp8 => "VP8",
            VideoCodec::Vp9 => "VP9",
            VideoCodec::H264 => "H264",
            VideoCodec::H265 => "H265",
            VideoCodec::Av1 => "AV1",
        }
    }
}

/// Returns whether a decoder can start with this payload: it starts a keyframe, or the parameter
/// sets before one. False for later packets of the keyframe and for malformed payloads.
pub fn is_keyframe(codec: VideoCodec, payload: &[u8]) -> bool {
    match codec {
        VideoCodec::Vp8 => {
            Vp8::parse(payload).is_ok_and(|descriptor| descriptor.is_keyframe(payload))
        }
        VideoCodec::Vp9 => Vp9::parse(payload).is_ok_and(|descriptor| descriptor.is_keyframe()),
        VideoCodec::H264 => h264::is_keyframe(payload),
        VideoCodec::H265 => h265::is_keyframe(payload),
        VideoCodec::Av1 => Av1::parse(payload).is_ok_and(|header| header.is_keyframe(payload)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [VideoCodec; 5] = [
        VideoCodec::Vp8,
        VideoCodec::Vp9,
        VideoCodec::H264,
        VideoCodec::H265,
        VideoCodec::Av1,
    ];

    #[test]
    fn names() {
        for codec in ALL {
            assert_eq!(
                VideoCodec::from_name(&codec.name().to_lowercase()),
                Some(codec)
            );
        }
        assert_eq!(VideoCodec::from_name("rtx"), None);
    }

    #[test]
    fn one_keyframe_of_each() {
        let keyframes: [&[u8]; 5] = [
            &[0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0xe0, 0x01],
            &[0x08, 0x82],
            &[0x65, 0x88],
            &[0x26, 0x01, 0xaf],
            &[0x18, 0x0a, 0x0b],
        ];
        for (codec, payload) in ALL.into_iter().zip(keyframes) {
            assert!(is_keyframe(codec, payload), "{codec:?}");
            assert!(!is_keyframe(codec, &[]), "{codec:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_payloads_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            for codec in ALL {
                let _ = is_keyframe(codec, &payload);
            }
        }
    }
}
