//! RTCP to a far end (RFC 3550 section 6).

use portunus_rtc::streams::SenderFigures;
use portunus_rtp::rtcp::{
    ByeWriter, CnameWriter, CompoundWriter, FirEntry, FirWriter, Pli, ReceiverReportWriter,
    ReportBlock, SenderInfo, SenderReportWriter,
};
use portunus_rtp::{RtpError, Ssrc};

use super::KeyframeAsking;

/// The content of a compound packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report<'a> {
    /// Our SSRC.
    pub(crate) own: Ssrc,
    /// Our CNAME.
    pub(crate) cname: &'a str,
    /// What was sent, if anything was since the last report.
    pub(crate) sent: Option<SenderFigures>,
    /// What arrived.
    pub(crate) received: Option<ReportBlock>,
    /// A request for a keyframe.
    pub(crate) keyframe: Option<KeyframeRequest>,
    /// Nothing more is sent.
    pub(crate) bye: bool,
}

/// A request for a keyframe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyframeRequest {
    /// The stream that it is for.
    pub(crate) media: Ssrc,
    pub(crate) by: KeyframeAsking,
    /// The number of the request, for FIR.
    pub(crate) sequence: u8,
}

impl Report<'_> {
    /// Writes the packet without encryption. Returns its length.
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
        if let Some(KeyframeRequest {
            media,
            by,
            sequence,
        }) = self.keyframe
        {
            let sender = ssrc;
            match by {
                KeyframeAsking::Pli => writer.push(&Pli { sender, media })?,
                KeyframeAsking::Fir => {
                    let ssrc = media;
                    let entries = &[FirEntry { ssrc, sequence }];
                    writer.push(&FirWriter { sender, entries })?;
                }
                KeyframeAsking::Never => {}
            }
        }
        if self.bye {
            let (ssrcs, reason) = (&[ssrc][..], "");
            writer.push(&ByeWriter { ssrcs, reason })?;
        }
        Ok(writer.len())
    }
}
