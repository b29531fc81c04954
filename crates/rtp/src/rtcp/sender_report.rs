use super::SENDER_REPORT;
use super::frame::{Body, Frame, Out};
use super::report_block::{ReportBlock, ReportBlocks};
use crate::{RtpError, Ssrc};

/// A sender's information on its own stream (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderInfo {
    /// When the report was sent: seconds since 1900 as 32.32 bits.
    pub ntp: u64,
    /// The same instant in the stream's timestamps.
    pub rtp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Payload bytes sent.
    pub octets: u32,
}

impl SenderInfo {
    /// Returns the middle 32 bits of the NTP timestamp, which receivers report back.
    pub const fn compact_ntp(&self) -> u32 {
        (self.ntp >> 16) as u32
    }
}

/// View of a sender report.
#[derive(Debug, Clone, Copy)]
pub struct SenderReport<'a> {
    /// The sender.
    pub ssrc: Ssrc,
    /// The sender's information.
    pub info: SenderInfo,
    blocks: ReportBlocks<'a>,
}

/// Bytes before the report blocks.
const HEAD_LEN: usize = 24;

impl<'a> SenderReport<'a> {
    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        let (head, blocks) = frame.split_body::<HEAD_LEN>()?;
        let (words, _) = head.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
        let mut word = || words.next().unwrap_or(0);
        Ok(Self {
            ssrc: Ssrc(word()),
            info: SenderInfo {
                ntp: (u64::from(word()) << 32) | u64::from(word()),
                rtp: word(),
                packets: word(),
                octets: word(),
            },
            blocks: ReportBlocks::parse(frame.count, blocks)?,
        })
    }

    /// Returns the reports on received streams.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = ReportBlock> + 'a {
        self.blocks.iter()
    }
}

/// Writes a sender report.
#[derive(Debug, Clone, Copy)]
pub struct SenderReportWriter<'a> {
    /// The sender.
    pub ssrc: Ssrc,
    /// The sender's information.
    pub info: SenderInfo,
    /// The reports on received streams: at most 31.
    pub blocks: &'a [ReportBlock],
}

impl Body for SenderReportWriter<'_> {
    const PACKET_TYPE: u8 = SENDER_REPORT;

    fn count(&self) -> usize {
        self.blocks.len()
    }

    fn len(&self) -> usize {
        HEAD_LEN + self.blocks.len() * ReportBlock::LEN
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.ssrc)?;
        out.put(&self.info.ntp.to_be_bytes())?;
        out.put_u32(self.info.rtp)?;
        out.put_u32(self.info.packets)?;
        out.put_u32(self.info.octets)?;
        self.blocks
            .iter()
            .try_for_each(|block| block.write(&mut out))
    }
}
