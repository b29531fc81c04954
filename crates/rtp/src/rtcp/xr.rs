use super::frame::Frame;
use crate::{RtpError, Ssrc};

/// View of an extended report (RFC 3611).
#[derive(Debug, Clone, Copy)]
pub struct Xr<'a> {
    /// The sender of the report.
    pub sender: Ssrc,
    blocks: &'a [u8],
}

/// A block of an extended report.
#[derive(Debug, Clone, Copy)]
pub enum XrBlock<'a> {
    /// The receiver's clock (section 4.4): an NTP timestamp, seconds since 1900 as 32.32 bits.
    ReceiverReferenceTime(u64),
    /// Answers to reference times of others (section 4.5).
    Dlrr(&'a [[u8; 12]]),
    /// Any other block.
    Other {
        /// The type of the block.
        kind: u8,
        /// The type-specific bits.
        specific: u8,
        /// The bytes after the block's first four.
        content: &'a [u8],
    },
}

/// The time since the arrival of a receiver's reference time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dlrr {
    /// The receiver.
    pub ssrc: Ssrc,
    /// The middle 32 bits of its reference time. 0 without one.
    pub last_rr: u32,
    /// The time since its arrival, in 1/65,536 s.
    pub delay: u32,
}

const RECEIVER_REFERENCE_TIME: u8 = 4;
const DLRR: u8 = 5;

impl<'a> Xr<'a> {
    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        let (sender, blocks) = frame.split_body()?;
        Ok(Self {
            sender: Ssrc(u32::from_be_bytes(*sender)),
            blocks,
        })
    }

    /// Returns the blocks. A malformed one ends them.
    pub fn blocks(&self) -> impl Iterator<Item = XrBlock<'a>> + 'a {
        let mut rest = self.blocks;
        std::iter::from_fn(move || {
            let (&[kind, specific, l0, l1], after) = rest.split_first_chunk()?;
            let len = usize::from(u16::from_be_bytes([l0, l1])) * 4;
            let (content, after) = after.split_at_checked(len)?;
            rest = after;
            Some(match (kind, <[u8; 8]>::try_from(content)) {
                (RECEIVER_REFERENCE_TIME, Ok(ntp)) => {
                    XrBlock::ReceiverReferenceTime(u64::from_be_bytes(ntp))
                }
                (DLRR, _) => XrBlock::Dlrr(content.as_chunks().0),
                _ => XrBlock::Other {
                    kind,
                    specific,
                    content,
                },
            })
        })
    }
}

impl Dlrr {
    /// Reads an entry of [`XrBlock::Dlrr`].
    pub fn parse(bytes: &[u8; 12]) -> Self {
        let [s0, s1, s2, s3, r0, r1, r2, r3, d0, d1, d2, d3] = *bytes;
        Self {
            ssrc: Ssrc(u32::from_be_bytes([s0, s1, s2, s3])),
            last_rr: u32::from_be_bytes([r0, r1, r2, r3]),
            delay: u32::from_be_bytes([d0, d1, d2, d3]),
        }
    }
}
