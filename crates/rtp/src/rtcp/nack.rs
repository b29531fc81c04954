use super::TRANSPORT_FEEDBACK;
use super::frame::{Body, FeedbackFields, Frame, Out};
use crate::{RtpError, Ssrc};

/// View of a generic NACK: a request to retransmit packets (RFC 4585 section 6.2.1).
#[derive(Debug, Clone, Copy)]
pub struct Nack<'a> {
    /// The sender of the request.
    pub sender: Ssrc,
    /// The stream whose packets were lost.
    pub media: Ssrc,
    pairs: &'a [[u8; 4]],
}

impl<'a> Nack<'a> {
    pub(super) const FORMAT: u8 = 1;

    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        let FeedbackFields {
            sender,
            media,
            control,
        } = frame.feedback()?;
        Ok(Self {
            sender,
            media,
            pairs: control.as_chunks().0,
        })
    }

    /// Returns the sequence numbers of the lost packets, as sent. There may be repetitions.
    pub fn lost(&self) -> impl Iterator<Item = u16> + 'a {
        self.pairs.iter().flat_map(|&[p0, p1, b0, b1]| {
            let first = u16::from_be_bytes([p0, p1]);
            // Bit i stands for the packet i + 1 after the first.
            let all = (u32::from(u16::from_be_bytes([b0, b1])) << 1) | 1;
            (0..17)
                .filter(move |bit| all & (1 << bit) != 0)
                .map(move |bit| first.wrapping_add(bit))
        })
    }
}

/// Writes a generic NACK.
#[derive(Debug, Clone, Copy)]
pub struct NackWriter<I> {
    /// The sender of the request.
    pub sender: Ssrc,
    /// The stream whose packets were lost.
    pub media: Ssrc,
    /// The sequence numbers of the lost packets. In ascending order they take the least space: 17
    /// consecutive ones fit four bytes. The iterator is used twice.
    pub lost: I,
}

impl<I: IntoIterator<Item = u16> + Clone> NackWriter<I> {
    /// Packs the numbers into pairs of a first number and a mask of the next 16.
    fn pairs(&self) -> impl Iterator<Item = (u16, u16)> {
        let mut lost = self.lost.clone().into_iter().peekable();
        std::iter::from_fn(move || {
            let first = lost.next()?;
            let mut mask = 0u16;
            while let Some(next) = lost.next_if(|next| next.wrapping_sub(first) <= 16) {
                // A repetition of the first number sets no bit.
                if let Some(bit) = next.wrapping_sub(first).checked_sub(1) {
                    mask |= 1 << bit;
                }
            }
            Some((first, mask))
        })
    }
}

impl<I: IntoIterator<Item = u16> + Clone> Body for NackWriter<I> {
    const PACKET_TYPE: u8 = TRANSPORT_FEEDBACK;

    fn count(&self) -> usize {
        usize::from(Nack::FORMAT)
    }

    fn len(&self) -> usize {
        8 + self.pairs().count() * 4
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.sender)?;
        out.put_ssrc(self.media)?;
        self.pairs().try_for_each(|(first, mask)| {
            out.put_u16(first)?;
            out.put_u16(mask)
        })
    }
}
