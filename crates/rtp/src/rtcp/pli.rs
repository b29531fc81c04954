use super::PAYLOAD_FEEDBACK;
use super::frame::{Body, FeedbackFields, Frame, Out};
use crate::{RtpError, Ssrc};

/// A picture loss indication (RFC 4585 section 6.3.1): view and writer in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pli {
    /// The sender of the request.
    pub sender: Ssrc,
    /// The stream whose keyframe is requested.
    pub media: Ssrc,
}

impl Pli {
    pub(super) const FORMAT: u8 = 1;

    pub(super) fn parse(frame: Frame<'_>) -> Result<Self, RtpError> {
        let FeedbackFields { sender, media, .. } = frame.feedback()?;
        Ok(Self { sender, media })
    }
}

impl Body for Pli {
    const PACKET_TYPE: u8 = PAYLOAD_FEEDBACK;

    fn count(&self) -> usize {
        usize::from(Self::FORMAT)
    }

    fn len(&self) -> usize {
        8
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.sender)?;
        out.put_ssrc(self.media)
    }
}
