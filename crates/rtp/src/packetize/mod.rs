//! Frames to RTP payloads: the reverse of [`crate::depacketize`].
//!
//! A [`Packetizer`] takes one encoded frame at a time, as containers and encoders have them, and
//! emits its payloads in order. It keeps the state across frames (picture ids) and one buffer for
//! payloads.

mod av1;
mod h264;
mod h265;
mod vp8;
mod vp9;

use crate::RtpError;

pub use h264::ParameterSets;

/// The bytes of payload in a packet. With RTP header, extensions, SRTP tag and the headers of a
/// tunnel, it stays below the 1,280 bytes that every IPv6 path takes.
pub const DEFAULT_MAX_PAYLOAD: usize = 1_200;

/// The least value for [`Packetizer::with_max_payload`].
pub const MIN_MAX_PAYLOAD: usize = 64;

/// The form of the frames.
#[derive(Debug, Clone)]
pub enum PayloadFormat {
    /// RFC 7741. A frame is what the decoder takes at once.
    Vp8,
    /// RFC 9628, one layer. A frame is a superframe with its frames that are not shown.
    Vp9,
    /// The Alliance for Open Media's format. A frame is a temporal unit: OBUs with their sizes.
    Av1 {
        /// A sequence header OBU with its size, inserted before keyframes without one.
        sequence_header: Vec<u8>,
    },
    /// RFC 6184, packetization mode 1. A frame is an access unit: NAL units with their lengths.
    H264(ParameterSets),
    /// RFC 7798, without decoding order numbers. A frame is an access unit: NAL units with their
    /// lengths.
    H265(ParameterSets),
    /// The frame is the payload: Opus (RFC 7587), G.711 (RFC 3551).
    Whole,
}

/// Splits the frames of one stream.
#[derive(Debug, Clone)]
pub struct Packetizer {
    format: PayloadFormat,
    max_payload: usize,
    picture_id: u16,
    payload: Vec<u8>,
}

impl Packetizer {
    /// Makes payloads of up to [`DEFAULT_MAX_PAYLOAD`] bytes.
    pub fn new(format: PayloadFormat) -> Self {
        Self::with_max_payload(format, DEFAULT_MAX_PAYLOAD)
    }

    /// Makes payloads of up to `max_payload` bytes, at least [`MIN_MAX_PAYLOAD`].
    /// [`PayloadFormat::Whole`] is not split, so its payloads may be longer.
    pub fn with_max_payload(format: PayloadFormat, max_payload: usize) -> Self {
        Self {
            format,
            max_payload: max_payload.max(MIN_MAX_PAYLOAD),
            picture_id: 0,
            payload: Vec::new(),
        }
    }

    /// Passes the payloads of `frame` to `emit`, each with whether it is the last one (the marker
    /// bit of video). `keyframe` says whether a decoder can start here. A malformed frame is an
    /// error, which may be found after some payloads.
    pub fn packetize(
        &mut self,
        frame: &[u8],
        keyframe: bool,
        mut emit: impl FnMut(&[u8], bool),
    ) -> Result<(), RtpError> {
        if frame.is_empty() {
            return Ok(());
        }
        let (max, payload) = (self.max_payload, &mut self.payload);
        match &self.format {
            PayloadFormat::Vp8 => vp8::packetize(frame, self.picture_id, max, payload, emit),
            PayloadFormat::Vp9 => {
                vp9::packetize(frame, keyframe, self.picture_id, max, payload, emit);
            }
            PayloadFormat::Av1 { sequence_header } => {
                av1::packetize(frame, sequence_header, keyframe, max, payload, emit)?;
            }
            PayloadFormat::H264(sets) => {
                h264::packetize(frame, sets, keyframe, max, payload, emit)?;
            }
            PayloadFormat::H265(sets) => {
                h265::packetize(frame, sets, keyframe, max, payload, emit)?;
            }
            PayloadFormat::Whole => emit(frame, true),
        }
        self.picture_id = (self.picture_id + 1) & 0x7fff;
        Ok(())
    }
}

/// Splits `bytes` into the least number of parts of at most `max`, of almost equal size. So the
/// last packet of a frame is not a small one, and equal packets can be sent in one system call.
fn equal_parts(bytes: &[u8], max: usize) -> impl Iterator<Item = &[u8]> {
    let parts = bytes.len().div_ceil(max).max(1);
    bytes.chunks(bytes.len().div_ceil(parts).max(1))
}

/// Passes `parts` to `each`, with whether a part is the first and the last.
fn with_ends<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(&'a [u8], bool, bool),
) {
    let mut parts = parts.peekable();
    let mut first = true;
    while let Some(part) = parts.next() {
        each(part, first, parts.peek().is_none());
        first = false;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;
    use proptest::prelude::*;

    fn formats() -> [PayloadFormat; 6] {
        [
            PayloadFormat::Vp8,
            PayloadFormat::Vp9,
            PayloadFormat::Av1 {
                sequence_header: vec![0x0a, 1, 0],
            },
            PayloadFormat::H264(ParameterSets {
                length_size: 4,
                units: vec![vec![0x67, 1, 2, 3], vec![0x68, 1]],
            }),
            PayloadFormat::H265(ParameterSets {
                length_size: 4,
                units: vec![vec![0x40, 1, 2], vec![0x42, 1, 2], vec![0x44, 1]],
            }),
            PayloadFormat::Whole,
        ]
    }

    #[test]
    fn parts_are_of_almost_equal_size() {
        let bytes = [0; 2_500];
        let lengths: Vec<_> = equal_parts(&bytes, 1_200).map(<[u8]>::len).collect();
        assert_eq!(lengths, [834, 834, 832]);
        assert_eq!(equal_parts(&bytes[..1_200], 1_200).count(), 1);
    }

    #[test]
    fn an_empty_frame_has_no_packets() {
        for format in formats() {
            Packetizer::new(format)
                .packetize(&[], true, |_, _| unreachable!())
                .unwrap();
        }
    }

    proptest! {
        #[test]
        fn payloads_fit_and_the_last_one_is_marked(
            frame in proptest::collection::vec(any::<u8>(), 1..600),
            max in 64_usize..200,
            keyframe: bool,
        ) {
            for format in formats() {
                let whole = matches!(format, PayloadFormat::Whole);
                let mut marks = Vec::new();
                let result = Packetizer::with_max_payload(format, max)
                    .packetize(&frame, keyframe, |payload, last| {
                        assert!(whole || payload.len() <= max);
                        assert!(!payload.is_empty());
                        marks.push(last);
                    });
                if result.is_ok() && !marks.is_empty() {
                    prop_assert!(marks.pop() == Some(true) && marks.iter().all(|last| !last));
                }
            }
        }
    }
}
