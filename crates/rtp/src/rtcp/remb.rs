use super::PAYLOAD_FEEDBACK;
use super::frame::{Body, FeedbackFields, Frame, Out};
use crate::{RtpError, Ssrc};

/// View of a receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb).
#[derive(Debug, Clone, Copy)]
pub struct Remb<'a> {
    /// The sender of the estimate.
    pub sender: Ssrc,
    /// The bitrate of all streams together, in bit/s.
    pub bitrate: u64,
    ssrcs: &'a [[u8; 4]],
}

const NAME: [u8; 4] = *b"REMB";
const MANTISSA_BITS: u32 = 18;

impl<'a> Remb<'a> {
    /// Application layer feedback, in which the name identifies REMB.
    pub(super) const FORMAT: u8 = 15;

    pub(super) fn parse(frame: Frame<'a>) -> Result<Option<Self>, RtpError> {
        let FeedbackFields {
            sender, control, ..
        } = frame.feedback()?;
        let Some((&NAME, rest)) = control.split_first_chunk() else {
            return Ok(None);
        };
        let truncated = |expected| RtpError::Truncated {
            expected,
            actual: control.len(),
        };
        let (&[count, r0, r1, r2], rest) = rest.split_first_chunk().ok_or(truncated(8))?;
        let (ssrcs, _) = rest.as_chunks();
        let ssrcs = ssrcs
            .get(..usize::from(count))
            .ok_or(truncated(8 + usize::from(count) * 4))?;
        let mantissa = u64::from(u32::from_be_bytes([0, r0 & 3, r1, r2]));
        // A rate above 64 bits is no limit.
        let bitrate = u128::from(mantissa) << (r0 >> 2);
        let bitrate = u64::try_from(bitrate).unwrap_or(u64::MAX);
        Ok(Some(Self {
            sender,
            bitrate,
            ssrcs,
        }))
    }

    /// Returns the streams that share the bitrate.
    pub fn ssrcs(&self) -> impl ExactSizeIterator<Item = Ssrc> + 'a {
        self.ssrcs
            .iter()
            .map(|ssrc| Ssrc(u32::from_be_bytes(*ssrc)))
    }
}

/// Writes a receiver estimated maximum bitrate.
#[derive(Debug, Clone, Copy)]
pub struct RembWriter<'a> {
    /// The sender of the estimate.
    pub sender: Ssrc,
    /// The bitrate of all streams together, in bit/s. It is rounded down to 18 significant bits.
    pub bitrate: u64,
    /// The streams that share the bitrate: at most 255, more are omitted.
    pub ssrcs: &'a [Ssrc],
}

impl RembWriter<'_> {
    fn ssrcs(&self) -> &[Ssrc] {
        self.ssrcs.get(..255).unwrap_or(self.ssrcs)
    }
}

impl Body for RembWriter<'_> {
    const PACKET_TYPE: u8 = PAYLOAD_FEEDBACK;

    fn count(&self) -> usize {
        usize::from(Remb::FORMAT)
    }

    fn len(&self) -> usize {
        16 + self.ssrcs().len() * 4
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        let exponent = (u64::BITS - self.bitrate.leading_zeros()).saturating_sub(MANTISSA_BITS);
        let mantissa = (self.bitrate >> exponent) as u32;
        out.put_ssrc(self.sender)?;
        out.put_u32(0)?;
        out.put(&NAME)?;
        out.put_u32(((self.ssrcs().len() as u32) << 24) | (exponent << MANTISSA_BITS) | mantissa)?;
        self.ssrcs().iter().try_for_each(|ssrc| out.put_ssrc(*ssrc))
    }
}
