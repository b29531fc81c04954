use super::RECEIVER_REPORT;
use super::frame::{Body, Frame, Out};
use super::report_block::{ReportBlock, ReportBlocks};
use crate::{RtpError, Ssrc};

/// View of a receiver report (RFC 3550 section 6.4.2).
#[derive(Debug, Clone, Copy)]
pub struct ReceiverReport<'a> {
    /// The sender of the report.
    pub ssrc: Ssrc,
    blocks: ReportBlocks<'a>,
}

impl<'a> ReceiverReport<'a> {
    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        let (ssrc, blocks) = frame.split_body()?;
        let ssrc = Ssrc(u32::from_be_bytes(*ssrc));
        Ok(Self {
            ssrc,
            blocks: ReportBlocks::parse(frame.count, blocks)?,
        })
    }

    /// Returns the reports on received streams.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = ReportBlock> + 'a {
        self.blocks.iter()
    }
}

/// Writes a receiver report.
#[derive(Debug, Clone, Copy)]
pub struct ReceiverReportWriter<'a> {
    /// The sender of the report.
    pub ssrc: Ssrc,
    /// The reports on received streams: at most 31.
    pub blocks: &'a [ReportBlock],
}

impl Body for ReceiverReportWriter<'_> {
    const PACKET_TYPE: u8 = RECEIVER_REPORT;

    fn count(&self) -> usize {
        self.blocks.len()
    }

    fn len(&self) -> usize {
        4 + self.blocks.len() * ReportBlock::LEN
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.ssrc)?;
        self.blocks
            .iter()
            .try_for_each(|block| block.write(&mut out))
    }
}
