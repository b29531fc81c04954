//! A connection that records what it receives, answers retransmission requests, and can echo.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtp::extension::TransportCc;
use portunus_rtp::{ExtensionKind, Fields, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::{DtlsRole, Negotiated, NegotiatedMedia};

use super::{Network, Side};
use crate::connection::{Incoming, Received, Refusal};
use crate::data::{DataMessage, DataOptions, DataPayload};
use crate::streams::{Burst, NtpClock};
use crate::{Connection, Feedback, StreamConfig, TransportConfig, TransportEvent};

/// A received RTP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The time.
    pub at: Instant,
    /// The index of the m-line.
    pub media: usize,
    /// The simulcast encoding.
    pub encoding: u8,
    /// The extended sequence number.
    pub seq: SeqNo,
    /// The timestamp.
    pub timestamp: u32,
    /// The SSRC. For a retransmission, that of the repaired stream.
    pub ssrc: Ssrc,
    /// The payload without padding.
    pub payload: Vec<u8>,
}

/// A packet kept for retransmission.
#[derive(Debug, Clone)]
struct Sent {
    timestamp: u32,
    payload: Vec<u8>,
    /// A retransmission with the same number has to be identical, or SRTP would repeat its nonce.
    transport_seq: u16,
}

/// A connection with its events.
#[derive(Debug)]
pub struct MediaSide {
    /// The connection.
    pub connection: Connection,
    /// The agreed m-lines of this side.
    pub lines: Vec<NegotiatedMedia>,
    /// The configuration of its transport.
    pub config: TransportConfig,
    role: DtlsRole,
    /// All events of its transport.
    pub events: Vec<TransportEvent>,
    /// All feedback.
    pub feedback: Vec<(Instant, Feedback)>,
    /// The received packets.
    pub arrivals: Vec<Arrival>,
    /// The reasons of refused datagrams.
    pub refusals: Vec<Refusal>,
    /// The received RTCP: decrypted compound packets.
    pub rtcp: Vec<(Instant, Vec<u8>)>,
    /// Whether it echoes media on the same m-line, and messages on the same channel.
    pub echo: bool,
    /// Whether it answers retransmission requests.
    pub repairs: bool,
    history: BTreeMap<(usize, SeqNo), Sent>,
}

/// A packet to send on an m-line.
pub(super) struct NewPacket<'a> {
    pub(super) media: usize,
    pub(super) seq: SeqNo,
    pub(super) timestamp: u32,
    pub(super) payload: &'a [u8],
}

impl MediaSide {
    pub(super) fn new(
        side: Side,
        lines: Vec<NegotiatedMedia>,
        streams: StreamConfig,
        now: Instant,
    ) -> Self {
        let clock = NtpClock::new(now, Duration::from_secs(1_700_000_000));
        Self {
            connection: Connection::new(side.config.clone(), streams, clock, now),
            lines,
            config: side.config,
            role: side.role,
            events: Vec::new(),
            feedback: Vec::new(),
            arrivals: Vec::new(),
            refusals: Vec::new(),
            rtcp: Vec::new(),
            echo: false,
            repairs: true,
            history: BTreeMap::new(),
        }
    }

    /// Returns the packets of an m-line in the order of arrival.
    pub fn arrived(&self, media: usize) -> impl Iterator<Item = &Arrival> {
        self.arrivals
            .iter()
            .filter(move |arrival| arrival.media == media)
    }

    /// Returns the feedback of some kind.
    pub fn matching_feedback(
        &self,
        matches: impl Fn(&Feedback) -> bool,
    ) -> Vec<(Instant, Feedback)> {
        let told = self.feedback.iter();
        told.filter(|(_, feedback)| matches(feedback))
            .copied()
            .collect()
    }

    /// Returns the messages of a data channel.
    pub fn messages<'a>(&'a self, of: &'a str) -> Vec<&'a DataMessage> {
        let message = |event: &'a TransportEvent| match event {
            TransportEvent::Data { label, message, .. } if label == of => Some(message),
            _ => None,
        };
        self.events.iter().filter_map(message).collect()
    }

    pub(super) fn negotiate(&mut self, other: &MediaSide, now: Instant) {
        let side = Side::with(other.config.clone(), other.role);
        let negotiated = Negotiated {
            transport: side.describe(),
            media: self.lines.clone(),
        };
        #[expect(
            clippy::unwrap_used,
            reason = "a test whose own descriptions are refused cannot go on"
        )]
        self.connection.negotiate(&negotiated, now).unwrap();
    }

    pub(super) fn has(&self, address: SocketAddr) -> bool {
        let mut candidates = self.config.candidates.iter();
        candidates.any(|candidate| candidate.base == address)
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        (source, destination): (SocketAddr, SocketAddr),
        datagram: &mut [u8],
        network: &mut Network,
    ) {
        let received = self
            .connection
            .transport
            .receive(now, destination, source, datagram);
        if let crate::Received::Rtcp { len } = received {
            let compound = datagram.get(..len).unwrap_or_default().to_vec();
            self.rtcp.push((now, compound));
        }
        match self.connection.take(now, received, datagram) {
            Received::Consumed => {}
            Received::Refused(refusal) => self.refusals.push(refusal),
            Received::Rtp(incoming) => self.arrive(now, &incoming, datagram, network),
        }
    }

    fn arrive(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        datagram: &[u8],
        network: &mut Network,
    ) {
        let packet = datagram.get(incoming.range.clone()).unwrap_or_default();
        let arrival = Arrival {
            at: now,
            media: incoming.media,
            encoding: incoming.encoding,
            seq: incoming.seq,
            timestamp: incoming.header.timestamp,
            ssrc: incoming.header.ssrc,
            payload: incoming.header.payload(packet).to_vec(),
        };
        if self.echo {
            let packet = NewPacket {
                media: arrival.media,
                seq: arrival.seq,
                timestamp: arrival.timestamp,
                payload: &arrival.payload,
            };
            self.send(now, packet, network);
        }
        self.arrivals.push(arrival);
    }

    /// Sends a new packet on an m-line.
    pub(super) fn send(&mut self, now: Instant, packet: NewPacket<'_>, network: &mut Network) {
        let NewPacket {
            media,
            seq,
            timestamp,
            payload,
        } = packet;
        let Some(line) = self.lines.get(media).filter(|line| line.send) else {
            return;
        };
        let Some(pt) = line.payloads.first().map(|payload| payload.pt) else {
            return;
        };
        let fields = Fields {
            marker: false,
            padding: false,
            pt,
            sequence: seq.wire(),
            timestamp,
            ssrc: line.local_ssrc,
        };
        let sent = Sent {
            timestamp,
            payload: payload.to_vec(),
            transport_seq: self.connection.next_transport_seq(),
        };
        let mut buf = [0; 2_048];
        let lengths = write(line, &fields, sent.transport_seq, &[payload], &mut buf);
        let transport_seq = sent.transport_seq;
        self.history.insert((media, seq), sent);
        let sealed = self.connection.seal_rtp(seq, (lengths, &[]), &mut buf);
        if let Ok(len) = sealed {
            let mut burst = Burst::default();
            burst.add(seq, timestamp, payload.len());
            self.connection.sent(media, &burst, now);
            self.connection.record_sent(transport_seq, len, now);
            self.launch(now, buf.get(..len).unwrap_or_default(), network);
        }
    }

    /// Answers a retransmission request, if the packet was sent.
    fn send_again(&mut self, now: Instant, media: usize, seq: SeqNo, network: &mut Network) {
        let (Some(line), Some(sent)) = (self.lines.get(media), self.history.get(&(media, seq)))
        else {
            return;
        };
        let Some(payload) = line.payloads.first() else {
            return;
        };
        let mut fields = Fields {
            marker: false,
            padding: false,
            pt: payload.pt,
            sequence: seq.wire(),
            timestamp: sent.timestamp,
            ssrc: line.local_ssrc,
        };
        let mut buf = [0; 2_048];
        let (number, lengths) = match (payload.rtx, line.local_rtx_ssrc) {
            (Some(pt), Some(ssrc)) => {
                let Some(number) = self.connection.next_rtx(media) else {
                    return;
                };
                fields = Fields {
                    pt,
                    ssrc,
                    sequence: number.wire(),
                    ..fields
                };
                let transport_seq = self.connection.next_transport_seq();
                let original = seq.wire().to_be_bytes();
                let parts = [&original[..], &sent.payload];
                (
                    number,
                    write(line, &fields, transport_seq, &parts, &mut buf),
                )
            }
            _ => {
                self.connection.count_retransmission(media);
                let parts = [&sent.payload[..]];
                (
                    seq,
                    write(line, &fields, sent.transport_seq, &parts, &mut buf),
                )
            }
        };
        if let Ok(len) = self.connection.seal_again(number, lengths, &mut buf) {
            self.launch(now, buf.get(..len).unwrap_or_default(), network);
        }
    }

    /// Sends a hand-made packet. The first number of a stream has to be below 2^15, as SRTP
    /// requires.
    pub(super) fn send_raw(
        &mut self,
        now: Instant,
        fields: &Fields,
        extensions: &[(u8, &[u8])],
        payload: &[u8],
        network: &mut Network,
    ) {
        let mut buf = [0; 2_048];
        let header_len = write_header(&mut buf, fields, extensions.iter().copied()).unwrap_or(0);
        let len = append(&mut buf, header_len, &[payload]);
        let seq = SeqNo(fields.sequence.into());
        let transport = &self.connection.transport;
        if let Ok(len) = transport.seal_rtp(seq, header_len, len, &mut buf) {
            self.launch(now, buf.get(..len).unwrap_or_default(), network);
        }
    }

    /// Sends bytes in place of a compound RTCP packet.
    pub(super) fn send_rtcp(&mut self, now: Instant, compound: &[u8], network: &mut Network) {
        let mut buf = [0; 2_048];
        let len = append(&mut buf, 0, &[compound]);
        if let Ok(len) = self.connection.transport.seal_rtcp(len, &mut buf) {
            self.launch(now, buf.get(..len).unwrap_or_default(), network);
        }
    }

    fn launch(&self, now: Instant, datagram: &[u8], network: &mut Network) {
        if let Some(pair) = self.connection.transport.selected_pair() {
            network.send(now, pair.local, pair.remote, datagram);
        }
    }

    /// Takes the output and the events of the connection.
    pub(super) fn flush(&mut self, now: Instant, network: &mut Network) {
        let mut buf = [0; 2_048];
        while let Some(transmit) = self.connection.poll_transmit(now, &mut buf) {
            let bytes = buf.get(..transmit.len).unwrap_or_default();
            network.send(now, transmit.source, transmit.destination, bytes);
        }
        while let Some(feedback) = self.connection.poll_feedback() {
            if let Feedback::Nack { media, seq } = feedback
                && self.repairs
            {
                self.send_again(now, media, seq, network);
            }
            self.feedback.push((now, feedback));
        }
        while let Some(event) = self.connection.transport.poll_event() {
            if let TransportEvent::Data { label, message, .. } = &event
                && self.echo
            {
                let payload = match message {
                    DataMessage::Text(text) => DataPayload::Text(text),
                    DataMessage::Binary(bytes) => DataPayload::Binary(bytes),
                };
                let options = DataOptions::default();
                let transport = &mut self.connection.transport;
                // A full channel drops the message, which fails the test.
                let _ = transport.send_data(label, "", payload, options, now);
            }
            self.events.push(event);
        }
    }
}

/// Writes a packet with the extensions of its m-line. Returns the lengths of the header and of the
/// packet.
fn write(
    line: &NegotiatedMedia,
    fields: &Fields,
    transport_seq: u16,
    parts: &[&[u8]],
    buf: &mut [u8],
) -> (usize, usize) {
    let transport_seq = TransportCc(transport_seq).to_bytes();
    let mid = (ExtensionKind::Mid, line.mid.as_bytes());
    let list = [mid, (ExtensionKind::TransportCc, &transport_seq[..])];
    let list: Vec<(u8, &[u8])> = list
        .into_iter()
        .filter_map(|(kind, value)| Some((line.extensions.id(kind)?, value)))
        .collect();
    let header_len = write_header(buf, fields, list.iter().copied()).unwrap_or(0);
    (header_len, append(buf, header_len, parts))
}

/// Appends the parts from `at` on. Returns the end.
fn append(buf: &mut [u8], at: usize, parts: &[&[u8]]) -> usize {
    let mut end = at;
    for part in parts {
        if let Some(place) = buf.get_mut(end..end + part.len()) {
            place.copy_from_slice(part);
            end += part.len();
        }
    }
    end
}
