use super::BYE;
use super::frame::{Body, Frame, Out};
use crate::{RtpError, Ssrc};

/// View of a goodbye (RFC 3550 section 6.6).
#[derive(Debug, Clone, Copy)]
pub struct Bye<'a> {
    ssrcs: &'a [[u8; 4]],
    reason: &'a [u8],
}

impl<'a> Bye<'a> {
    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        let expected = usize::from(frame.count) * 4;
        let error = RtpError::Truncated {
            expected,
            actual: frame.body.len(),
        };
        let (ssrcs, rest) = frame.body.split_at_checked(expected).ok_or(error)?;
        let reason = rest
            .split_first()
            .and_then(|(len, text)| text.get(..usize::from(*len)));
        Ok(Self {
            ssrcs: ssrcs.as_chunks().0,
            reason: reason.unwrap_or_default(),
        })
    }

    /// The sources that have ended.
    pub fn ssrcs(&self) -> impl ExactSizeIterator<Item = Ssrc> + 'a {
        self.ssrcs
            .iter()
            .map(|ssrc| Ssrc(u32::from_be_bytes(*ssrc)))
    }

    /// Returns the reason. Empty without one.
    pub fn reason(&self) -> &'a [u8] {
        self.reason
    }
}

/// Writes a goodbye.
#[derive(Debug, Clone, Copy)]
pub struct ByeWriter<'a> {
    /// The sources that have ended: at most 31.
    pub ssrcs: &'a [Ssrc],
    /// The reason. It is omitted if empty, and truncated after 255 bytes.
    pub reason: &'a str,
}

impl ByeWriter<'_> {
    fn text(&self) -> &[u8] {
        let reason = self.reason.as_bytes();
        reason.get(..255).unwrap_or(reason)
    }
}

impl Body for ByeWriter<'_> {
    const PACKET_TYPE: u8 = BYE;

    fn count(&self) -> usize {
        self.ssrcs.len()
    }

    fn len(&self) -> usize {
        let reason = if self.reason.is_empty() {
            0
        } else {
            1 + self.text().len()
        };
        self.ssrcs.len() * 4 + reason.next_multiple_of(4)
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        self.ssrcs.iter().try_for_each(|ssrc| out.put_ssrc(*ssrc))?;
        if !self.reason.is_empty() {
            out.put(&[self.text().len() as u8])?;
            out.put(self.text())?;
        }
        out.pad()
    }
}
