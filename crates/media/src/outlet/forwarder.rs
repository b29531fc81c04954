//! Forwarders: send the packets of a source as RTP, or its messages, to a UDP port.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_graph::{Packet, SourceFormat};
use portunus_rtc::streams::{NtpClock, SenderClock};
use portunus_rtp::rtcp::{
    CnameWriter, CompoundWriter, ReceiverReportWriter, SenderInfo, SenderReportWriter,
};
use portunus_rtp::{Fields, Pt, Ssrc, write_header};
use portunus_srtp::Sealer;

use super::{Content, Encodings, Taken, write_packet};
use crate::ingest::{IngestBind, IngestError, IngestSocket, IngestSrtp, SharedSocket};

/// The time between two reports to a receiver (RFC 3550 section 6.2).
const REPORTS: Duration = Duration::from_secs(5);
/// Keyframe requests of a receiver that come sooner after the last one are ignored.
const KEYFRAMES: Duration = Duration::from_millis(500);
/// The maximum size of a framed message with its header, in bytes: what receivers take of a
/// datagram.
const MAX_FRAMED: usize = 1_488;

/// The options of a forwarder.
#[derive(Debug, Clone)]
pub struct ForwardOptions {
    /// The receiver: an address, or a multicast group.
    pub to: SocketAddr,
    /// The simulcast encodings to forward.
    pub encodings: Encodings,
    /// The payload type. `None` means that of the source.
    pub pt: Option<Pt>,
    /// The SSRC. `None` means that of the source, or of its first packet if encodings may change or
    /// SRTP is used.
    pub ssrc: Option<Ssrc>,
    /// The sequence number before that of the first packet, below 2^15. `None` means a random one.
    pub after: Option<u16>,
    /// The SRTP key. Messages and RTCP are not encrypted in any case.
    pub srtp: Option<IngestSrtp>,
    /// The framing of messages.
    pub messages: Framing,
    /// The socket for reports to the receiver, and keyframe requests from it.
    pub rtcp: Option<ForwardRtcp>,
    /// A connected socket for RTP. `None` uses one that all forwarders of the worker share.
    pub socket: Option<SharedSocket>,
}

impl ForwardOptions {
    /// Forwards a source unchanged.
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            encodings: Encodings::Best,
            pt: None,
            ssrc: None,
            after: None,
            srtp: None,
            messages: Framing::Bare,
            rtcp: None,
            socket: None,
        }
    }
}

/// The framing of messages in datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// The datagram is the message.
    #[default]
    Bare,
    /// The message follows an RTP header with this SSRC, whose payload type is 0 for text and 1 for
    /// bytes.
    Rtp(Ssrc),
}

/// The RTCP socket of forwarders to one receiver. The control plane binds it, and workers share it.
#[derive(Debug, Clone)]
pub struct ForwardRtcp {
    socket: SharedSocket,
    to: SocketAddr,
}

impl ForwardRtcp {
    /// Opens a port for RTCP with the receiver at `to`.
    pub fn bind(to: SocketAddr) -> Result<Self, IngestError> {
        let socket = IngestSocket::bind(IngestBind::new(0))?;
        let socket = socket.into();
        Ok(Self { socket, to })
    }

    /// The local port.
    pub fn local_port(&self) -> u16 {
        self.socket.port()
    }

    /// The receiver's address.
    pub fn remote(&self) -> SocketAddr {
        self.to
    }

    pub(crate) fn socket(&self) -> &SharedSocket {
        &self.socket
    }

    fn send(&self, datagram: &[u8]) {
        if let Err(error) = self.socket.send(datagram, self.to) {
            tracing::debug!(%error, to = %self.to, "the receiver of a forwarder cannot be told");
        }
    }
}

/// The state of a forwarder. It writes datagrams, and has no socket except that of its RTCP.
#[derive(Debug)]
pub(crate) struct Forwarder {
    options: ForwardOptions,
    sealer: Option<Sealer>,
    /// The CNAME of the source's publisher (RFC 3550 section 6.5.1).
    cname: String,
    /// Our SSRC in RTCP before the first packet.
    own: Ssrc,
    packets: u32,
    octets: u32,
    last: Option<Last>,
    report_at: Option<Instant>,
    asked: Option<Instant>,
}

/// The last packet that was written.
#[derive(Debug, Clone, Copy)]
struct Last {
    ssrc: Ssrc,
    timestamp: u32,
    offset: u32,
    encoding: u8,
    at: Instant,
}

impl Forwarder {
    pub(crate) fn new(options: ForwardOptions, cname: String) -> Self {
        Self {
            sealer: options.srtp.as_ref().and_then(IngestSrtp::sealer),
            cname,
            own: Ssrc(rand::random()),
            packets: 0,
            octets: 0,
            last: None,
            report_at: None,
            asked: None,
            options,
        }
    }

    pub(crate) fn options(&self) -> &ForwardOptions {
        &self.options
    }

    /// Writes a packet. Returns its length.
    pub(crate) fn write(
        &mut self,
        packet: &Packet,
        taken: &Taken,
        out: &mut [u8],
    ) -> Option<usize> {
        let follows = self.sealer.is_none() && matches!(self.options.encodings, Encodings::Only(_));
        let kept = if follows {
            packet.header.ssrc
        } else {
            taken.ssrc
        };
        let ssrc = self.options.ssrc.unwrap_or(kept);
        let pt = self.options.pt.unwrap_or(packet.header.pt);
        let (header_len, len) = write_packet(packet, taken, (ssrc, pt), Content::Padded, out)?;
        let sealed = match (&self.sealer, &self.options.srtp) {
            (Some(sealer), _) => sealer.seal_rtp(taken.sent.out, header_len, len, out).ok()?,
            (None, None) => len,
            // Packets that should be encrypted never leave without encryption.
            (None, Some(_)) => return None,
        };
        self.packets = self.packets.wrapping_add(1);
        self.octets = self
            .octets
            .wrapping_add(len.saturating_sub(header_len) as u32);
        let offset = taken.sent.timestamp_offset;
        self.last = Some(Last {
            ssrc,
            timestamp: packet.header.timestamp.wrapping_add(offset),
            offset,
            encoding: packet.encoding,
            at: packet.arrival,
        });
        Some(sealed)
    }

    /// Writes a message as a datagram. Returns `None` if it is too long to be framed.
    pub(crate) fn frame(&mut self, message: &[u8], text: bool) -> Option<Vec<u8>> {
        let Framing::Rtp(ssrc) = self.options.messages else {
            return Some(message.to_vec());
        };
        if message.len() > MAX_FRAMED {
            return None;
        }
        self.packets = self.packets.wrapping_add(1);
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(u8::from(!text)),
            sequence: self.packets as u16,
            timestamp: self.packets,
            ssrc,
        };
        let mut datagram = vec![0; message.len() + portunus_rtp::header::FIXED_HEADER_LEN];
        let header = write_header(&mut datagram, &fields, []).ok()?;
        datagram.get_mut(header..)?.copy_from_slice(message);
        Some(datagram)
    }

    /// When a report is due.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.options.rtcp.as_ref()?;
        // The first report tells the receiver where to send its own.
        Some(self.report_at.unwrap_or(now))
    }

    /// Writes the report that is due. Before the first packet, it only says that the sender is
    /// there.
    pub(crate) fn report(
        &mut self,
        format: &SourceFormat,
        clocks: &[Option<SenderClock>],
        clock: &NtpClock,
        now: Instant,
    ) {
        let mut datagram = [0; 400];
        if let Some(rtcp) = &self.options.rtcp
            && let Some(len) = self.write_report(format, clocks, clock, now, &mut datagram)
            && let Some(report) = datagram.get(..len)
        {
            rtcp.send(report);
        }
        // Soon after the first packet follows the report that synchronizes it with other streams.
        let soon = self.last.is_none() || self.report_at.is_none();
        let next = if soon { REPORTS / 5 } else { REPORTS };
        self.report_at = Some(now + next);
    }

    fn write_report(
        &self,
        format: &SourceFormat,
        clocks: &[Option<SenderClock>],
        clock: &NtpClock,
        now: Instant,
        out: &mut [u8],
    ) -> Option<usize> {
        let mut writer = CompoundWriter::new(out);
        let ssrc = match self.last {
            None => {
                let ssrc = self.own;
                let report = ReceiverReportWriter { ssrc, blocks: &[] };
                writer.push(&report).ok()?;
                ssrc
            }
            Some(last) => {
                let (ntp, rtp) = last.time(format, clocks, clock, now);
                let info = SenderInfo {
                    ntp,
                    rtp,
                    packets: self.packets,
                    octets: self.octets,
                };
                let ssrc = last.ssrc;
                let report = SenderReportWriter {
                    ssrc,
                    info,
                    blocks: &[],
                };
                writer.push(&report).ok()?;
                ssrc
            }
        };
        let cname = self.cname.as_str();
        writer.push(&CnameWriter { ssrc, cname }).ok()?;
        Some(writer.len())
    }

    /// Whether a receiver's keyframe request for `media`, if it names one, is for this forwarder.
    pub(crate) fn is_asked(&self, media: Ssrc) -> bool {
        let ssrc = self.options.ssrc.or(self.last.map(|last| last.ssrc));
        ssrc == Some(media)
    }

    /// Notes a keyframe request. Returns whether to pass it on.
    pub(crate) fn ask(&mut self, now: Instant) -> bool {
        let recent = |asked| now.saturating_duration_since(asked) < KEYFRAMES;
        if self.asked.is_some_and(recent) {
            return false;
        }
        self.asked = Some(now);
        true
    }
}

impl Last {
    /// Returns the present NTP time and timestamp: by the publisher's clock if it is known, else by
    /// ours.
    fn time(
        &self,
        format: &SourceFormat,
        clocks: &[Option<SenderClock>],
        clock: &NtpClock,
        now: Instant,
    ) -> (u64, u32) {
        let known = clocks.get(usize::from(self.encoding)).copied().flatten();
        if let Some(known) = known {
            let (ntp, timestamp) = known.at(now, format.clock_rate);
            return (ntp, timestamp.wrapping_add(self.offset));
        }
        let own = SenderClock {
            ntp: clock.ntp(self.at),
            timestamp: self.timestamp,
            at: self.at,
        };
        own.at(now, format.clock_rate)
    }
}
