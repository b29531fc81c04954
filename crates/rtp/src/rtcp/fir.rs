use super::PAYLOAD_FEEDBACK;
use super::frame::{Body, FeedbackFields, Frame, Out};
use crate::{RtpError, Ssrc};

/// View of a full intra request (RFC 5104 section 4.3.1).
#[derive(Debug, Clone, Copy)]
pub struct Fir<'a> {
    /// The sender of the request.
    pub sender: Ssrc,
    entries: &'a [[u8; 8]],
}

/// A stream whose keyframe is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirEntry {
    /// The stream.
    pub ssrc: Ssrc,
    /// The number of the command. A repeated number is a repetition, to be ignored.
    pub sequence: u8,
}

impl<'a> Fir<'a> {
    pub(super) const FORMAT: u8 = 4;

    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        // The media source is not used (section 4.3.1.2).
        let FeedbackFields {
            sender, control, ..
        } = frame.feedback()?;
        Ok(Self {
            sender,
            entries: control.as_chunks().0,
        })
    }

    /// Returns the streams whose keyframes are requested.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = FirEntry> + 'a {
        self.entries
            .iter()
            .map(|&[s0, s1, s2, s3, sequence, ..]| FirEntry {
                ssrc: Ssrc(u32::from_be_bytes([s0, s1, s2, s3])),
                sequence,
            })
    }
}

/// Writes a full intra request.
#[derive(Debug, Clone, Copy)]
pub struct FirWriter<'a> {
    /// The sender of the request.
    pub sender: Ssrc,
    /// The streams whose keyframes are requested.
    pub entries: &'a [FirEntry],
}

impl Body for FirWriter<'_> {
    const PACKET_TYPE: u8 = PAYLOAD_FEEDBACK;

    fn count(&self) -> usize {
        usize::from(Fir::FORMAT)
    }

    fn len(&self) -> usize {
        8 + self.entries.len() * 8
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.sender)?;
        out.put_u32(0)?;
        self.entries.iter().try_for_each(|entry| {
            out.put_ssrc(entry.ssrc)?;
            out.put(&[entry.sequence, 0, 0, 0])
        })
    }
}
