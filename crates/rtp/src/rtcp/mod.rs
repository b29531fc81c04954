//! RTCP (RFC 3550 section 6, RFC 4585, RFC 5104): views of received packets, and writers of packets
//! to send.
//!
//! [`Compound`] iterates over a decrypted datagram. Each packet type has a writer, which is pushed
//! into a [`CompoundWriter`] or written alone by [`WritePacket::write_into`].

mod bye;
mod fir;
mod frame;
mod nack;
mod pli;
mod receiver_report;
mod remb;
mod report_block;
mod sdes;
mod sender_report;
mod twcc;
mod xr;

use crate::RtpError;
use frame::Frame;

pub use bye::{Bye, ByeWriter};
pub use fir::{Fir, FirEntry, FirWriter};
pub use frame::{CompoundWriter, WritePacket};
pub use nack::{Nack, NackWriter};
pub use pli::Pli;
pub use receiver_report::{ReceiverReport, ReceiverReportWriter};
pub use remb::{Remb, RembWriter};
pub use report_block::ReportBlock;
pub use sdes::{CnameWriter, Sdes, SdesChunk, SdesItem};
pub use sender_report::{SenderInfo, SenderReport, SenderReportWriter};
pub use twcc::{Twcc, TwccStatus, TwccWriter};
pub use xr::{Dlrr, Xr, XrBlock};

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const SDES: u8 = 202;
const BYE: u8 = 203;
const TRANSPORT_FEEDBACK: u8 = 205;
const PAYLOAD_FEEDBACK: u8 = 206;
const EXTENDED_REPORT: u8 = 207;

/// Returns whether a datagram of RTP version 2 is RTCP rather than RTP (RFC 5761 section 4).
pub fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [first, 192..=223, ..] if first >> 6 == 2)
}

/// A packet of a compound.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// A sender's report on its stream and on those that it receives.
    SenderReport(SenderReport<'a>),
    /// A receiver's report on the streams that it receives.
    ReceiverReport(ReceiverReport<'a>),
    /// Names of sources.
    Sdes(Sdes<'a>),
    /// Sources that have ended.
    Bye(Bye<'a>),
    /// A request to retransmit packets.
    Nack(Nack<'a>),
    /// A picture was lost, so a keyframe is requested.
    Pli(Pli),
    /// A command to send a keyframe.
    Fir(Fir<'a>),
    /// The bitrate that a receiver estimates.
    Remb(Remb<'a>),
    /// The packets of the transport that arrived, and when.
    Twcc(Twcc<'a>),
    /// Extended reports.
    Xr(Xr<'a>),
}

/// Iterates over the packets of a decrypted datagram, compound or reduced-size (RFC 5506).
///
/// Unknown types are skipped. A packet with malformed content is an error, after which the
/// iteration continues. A malformed frame ends it.
#[derive(Debug, Clone)]
pub struct Compound<'a> {
    rest: &'a [u8],
}

impl<'a> Compound<'a> {
    /// Iterates over `datagram`.
    pub fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram }
    }
}

impl<'a> Iterator for Compound<'a> {
    type Item = Result<Packet<'a>, RtpError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match Frame::split(self.rest) {
                Ok((frame, rest)) => {
                    self.rest = rest;
                    if let Some(packet) = Packet::parse(frame).transpose() {
                        return Some(packet);
                    }
                }
                Err(error) => {
                    self.rest = &[];
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl std::iter::FusedIterator for Compound<'_> {}

impl<'a> Packet<'a> {
    fn parse(frame: Frame<'a>) -> Result<Option<Self>, RtpError> {
        Ok(Some(match (frame.packet_type, frame.count) {
            (SENDER_REPORT, _) => Packet::SenderReport(SenderReport::parse(frame)?),
            (RECEIVER_REPORT, _) => Packet::ReceiverReport(ReceiverReport::parse(frame)?),
            (SDES, _) => Packet::Sdes(Sdes::parse(frame)),
            (BYE, _) => Packet::Bye(Bye::parse(frame)?),
            (TRANSPORT_FEEDBACK, Nack::FORMAT) => Packet::Nack(Nack::parse(frame)?),
            (TRANSPORT_FEEDBACK, Twcc::FORMAT) => Packet::Twcc(Twcc::parse(frame)?),
            (PAYLOAD_FEEDBACK, Pli::FORMAT) => Packet::Pli(Pli::parse(frame)?),
            (PAYLOAD_FEEDBACK, Fir::FORMAT) => Packet::Fir(Fir::parse(frame)?),
            (PAYLOAD_FEEDBACK, Remb::FORMAT) => return Ok(Remb::parse(frame)?.map(Packet::Remb)),
            (EXTENDED_REPORT, _) => Packet::Xr(Xr::parse(frame)?),
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests;
