//! RTCP with a far end (RFC 3550 section 6): what it is told, and what it tells.

use portunus_rtc::streams::SenderFigures;
use portunus_rtp::rtcp::{
    ByeWriter, CnameWriter, CompoundWriter, FirEntry, FirWriter, Pli, ReceiverReportWriter,
    ReportBlock, SenderInfo, SenderReportWriter,
};
use portunus_rtp::{RtpError, Ssrc};

use super::KeyframeAsking;

/// What a compound says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report<'a> {
    /// Who we are.
    pub(crate) own: Ssrc,
    /// Our name in it.
    pub(crate) cname: &'a str,
    /// What we sent, if that was anything since the last report.
    pub(crate) sent: Option<SenderFigures>,
    /// What came.
    pub(crate) received: Option<ReportBlock>,
    /// A keyframe is wanted of this stream; by FIR the number of the request.
    pub(crate) keyframe: Option<(Ssrc, KeyframeAsking, u8)>,
    /// We send no more.
    pub(crate) bye: bool,
}

impl Report<'_> {
    /// Writes it, in the clear; gives its length.
    pub(crate) fn write(&self, out: &mut [u8]) -> Result<usize, RtpError> {
        let mut writer = CompoundWriter::new(out);
        let ssrc = self.own;
        let blocks = self.received.as_slice();
        match self.sent {
            Some(sent) => writer.push(&SenderReportWriter {
                ssrc,
                info: SenderInfo {
                    ntp: sent.ntp,
                    rtp: sent.timestamp,
                    packets: sent.packets,
                    octets: sent.bytes,
                },
                blocks,
            })?,
            None => writer.push(&ReceiverReportWriter { ssrc, blocks })?,
        }
        let cname = self.cname;
        writer.push(&CnameWriter { ssrc, cname })?;
        match self.keyframe {
            Some((media, KeyframeAsking::Pli, _)) => writer.push(&Pli {
                sender: ssrc,
                media,
            })?,
            Some((media, KeyframeAsking::Fir, sequence)) => {
                let entries = &[FirEntry {
                    ssrc: media,
                    sequence,
                }];
                writer.push(&FirWriter {
                    sender: ssrc,
                    entries,
                })?;
            }
            Some((_, KeyframeAsking::Never, _)) | None => {}
        }
        if self.bye {
            let (ssrcs, reason) = (&[ssrc][..], "");
            writer.push(&ByeWriter { ssrcs, reason })?;
        }
        Ok(writer.len())
    }
}
