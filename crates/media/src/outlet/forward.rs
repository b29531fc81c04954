//! Forwarders: a source's packets as RTP, or its messages, to a UDP port.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::streams::{NtpClock, SenderClock};
use portunus_rtp::rtcp::{
    CnameWriter, CompoundWriter, ReceiverReportWriter, SenderInfo, SenderReportWriter,
};
use portunus_rtp::{Fields, Pt, Ssrc, write_header};
use portunus_srtp::Sealer;

use super::{Encodings, Taken, write_packet};
use crate::graph::{Packet, SourceFormat};
use crate::ingest::{IngestBind, IngestError, IngestSocket, IngestSrtp, SharedSocket};

/// Between two reports to a receiver (RFC 3550 section 6.2).
const REPORTS: Duration = Duration::from_secs(5);
/// Keyframe requests of a receiver that come sooner after the one before are not passed on.
const KEYFRAMES: Duration = Duration::from_millis(500);
/// Bytes of the longest message that is framed: with its header, what receivers take of a datagram.
const MAX_FRAMED: usize = 1_488;

/// Where a source is forwarded to, and how.
#[derive(Debug, Clone)]
pub struct ForwardOptions {
    /// The receiver: an address, or a multicast group.
    pub to: SocketAddr,
    /// Which simulcast encodings are forwarded.
    pub encodings: Encodings,
    /// The payload type; none: the source's.
    pub pt: Option<Pt>,
    /// The SSRC; none: the source's. It stays that of the first packet where encodings may change, and with SRTP.
    pub ssrc: Option<Ssrc>,
    /// The sequence number that the first packet follows, below 2^15; none: a random one.
    pub after: Option<u16>,
    /// The key that packets are protected with. Messages and RTCP are plain all the same.
    pub srtp: Option<IngestSrtp>,
    /// How the messages of a data source are sent.
    pub messages: Framing,
    /// For reports to the receiver, and keyframe requests from it.
    pub rtcp: Option<ForwardRtcp>,
    /// A connected socket to send RTP by, to where that is connected; none: one that all forwarders of the worker have in
    /// common.
    pub socket: Option<SharedSocket>,
}

impl ForwardOptions {
    /// All of a source, as it is.
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

/// How a message becomes a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// The datagram is the message.
    #[default]
    Bare,
    /// Behind an RTP header, which has this SSRC, and as payload type whether it is text (0) or bytes (1).
    Rtp(Ssrc),
}

/// The RTCP of forwarders to one receiver: a socket of its own, which the control plane binds and workers share.
#[derive(Debug, Clone)]
pub struct ForwardRtcp {
    socket: SharedSocket,
    to: SocketAddr,
}

impl ForwardRtcp {
    /// Opens a port for the RTCP with the receiver at `to`.
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

/// The state of a forwarder: it writes datagrams, and knows no socket but that of its RTCP.
#[derive(Debug)]
pub(crate) struct Forwarder {
    options: ForwardOptions,
    sealer: Option<Sealer>,
    /// The name of its publisher in reports (RFC 3550 section 6.5.1).
    cname: String,
    /// Who we are in RTCP before there is a packet.
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

    /// Writes a packet that was taken; gives its length.
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
        let (header_len, len) = write_packet(packet, taken, (ssrc, pt), true, out)?;
        let sealed = match (&self.sealer, &self.options.srtp) {
            (Some(sealer), _) => sealer.seal_rtp(taken.sent.out, header_len, len, out).ok()?,
            (None, None) => len,
            // What is to be protected never leaves in clear.
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

    /// Makes a datagram of a message; none if it is too long to be framed.
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

    /// When the receiver is to be told something.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.options.rtcp.as_ref()?;
        // The first report says who forwards, so that the receiver knows where to send its own.
        Some(self.report_at.unwrap_or(now))
    }

    /// Sends the report that is due. Before the first packet it says no more than that somebody is here.
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
        // The first packet is soon followed by what puts it in step with others.
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

    /// A receiver asks for a keyframe of `media`, if that is said; tells whether that is for this forwarder.
    pub(crate) fn is_asked(&self, media: Ssrc) -> bool {
        let ssrc = self.options.ssrc.or(self.last.map(|last| last.ssrc));
        ssrc == Some(media)
    }

    /// The receiver asks for a keyframe; says whether that is to be passed on.
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
    /// NTP time and timestamp now: by the publisher's clock if it is known, else by ours.
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
