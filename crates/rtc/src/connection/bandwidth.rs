//! The bandwidth of the link: feedback in, estimate and padding out.

use std::time::Instant;

use portunus_rtp::extension::{AbsSendTime, TransportCc};
use portunus_rtp::{ExtensionKind, Fields, Pt, Ssrc, header, write_header};
use portunus_sdp::negotiated::{Kind, Negotiated, NegotiatedMedia};
use smallvec::SmallVec;

use super::Connection;
use crate::bandwidth::{Bandwidth, DataRate, Estimate, Measure};

/// The most padding of one packet: its length takes one byte (RFC 3550 section 5.1).
const MAX_PADDING: usize = 255;
/// Room for a header with extensions, and for the tag.
const AROUND: usize = 80;

/// The repair stream that carries padding, so that the sequence numbers of the media have no gaps.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaddingStream {
    media: usize,
    pt: Pt,
    ssrc: Ssrc,
}

impl Connection {
    /// Records a sent packet of `bytes` with the transport-wide number `seq`. Numbers that were
    /// reserved but not written into a packet must not be recorded.
    #[inline]
    pub fn record_sent(&mut self, seq: u16, bytes: usize, now: Instant) {
        if self.measure == Some(Measure::Transport) {
            self.sent_log.record(seq, bytes, now);
        }
    }

    /// Returns which side measures the bandwidth. Returns `None` if no feedback for it was agreed
    /// on.
    pub fn measure(&self) -> Option<Measure> {
        self.measure
    }

    /// Returns whether the peer has sent any feedback on its link. Not all peers do what was agreed
    /// on.
    pub fn is_bandwidth_heard(&self) -> bool {
        self.bandwidth
            .as_ref()
            .is_some_and(|bandwidth| bandwidth.is_heard())
    }

    /// Returns the packets recorded so far, or counted if the receiver measures.
    pub fn recorded(&self) -> u64 {
        self.sent_log.packets()
    }

    /// Returns the estimate of the link to the peer. Returns `None` if no feedback for it was
    /// agreed on.
    pub fn bandwidth(&self) -> Option<Estimate> {
        self.bandwidth
            .as_ref()
            .map(|bandwidth| bandwidth.estimate())
    }

    /// Returns the estimate if it has changed enough since the last poll.
    pub fn poll_bandwidth(&mut self) -> Option<Estimate> {
        self.bandwidth.as_mut()?.poll_estimate()
    }

    /// Sets the bitrate that would be used if the link carried it. While it exceeds the estimate,
    /// padding probes for it, also while nothing else is sent. Without a repair stream there are no
    /// probes.
    pub fn want_bandwidth(&mut self, wanted: DataRate, now: Instant) {
        if let Some(bandwidth) = self.bandwidth.as_mut().filter(|_| self.padding.is_some()) {
            bandwidth.want(wanted, now);
        }
    }

    /// Sets whether the sent rate follows the estimate up and down, as an encoder does.
    pub fn set_follows_bandwidth(&mut self, follows: bool) {
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.set_follows(follows);
        }
    }

    /// Sets the measuring side and the stream for padding from the negotiation.
    pub(super) fn negotiate_bandwidth(&mut self, negotiated: &Negotiated) {
        let sends =
            |line: &&NegotiatedMedia| line.send && !line.disabled && line.kind != Kind::Data;
        let lines = || {
            negotiated
                .media
                .iter()
                .enumerate()
                .filter(|(_, line)| sends(line))
        };
        let video = || lines().filter(|(_, line)| line.kind == Kind::Video);
        let repair = |(media, line): (usize, &NegotiatedMedia)| {
            let pt = line.payloads.iter().find_map(|payload| payload.rtx)?;
            let ssrc = line.local_rtx_ssrc?;
            Some(PaddingStream { media, pt, ssrc })
        };
        self.padding = video().find_map(repair);
        // Without a stream of their own, retransmissions repeat packets unchanged. So these packets
        // have no transport-wide numbers, no feedback reports on them, and no stream carries
        // padding.
        let is_blind = video().any(|line| repair(line).is_none());
        let transport = lines().any(|(_, line)| {
            line.extensions.id(ExtensionKind::TransportCc).is_some()
                && line
                    .payloads
                    .iter()
                    .any(|payload| payload.feedback.transport_cc)
        });
        let receiver =
            lines().any(|(_, line)| line.payloads.iter().any(|payload| payload.feedback.remb));
        self.measure = match (transport, receiver) {
            _ if is_blind => None,
            (true, _) => Some(Measure::Transport),
            (false, true) => Some(Measure::Receiver),
            (false, false) => None,
        };
        match self.measure {
            Some(measure)
                if self
                    .bandwidth
                    .as_ref()
                    .is_none_or(|b| b.measure() != measure) =>
            {
                self.bandwidth = Some(Box::new(Bandwidth::new(measure)));
            }
            Some(_) => {}
            None => self.bandwidth = None,
        }
    }

    /// Counts sent packets if the receiver measures.
    #[inline]
    pub(super) fn count_sent(&mut self, packets: u64, bytes: u64) {
        if self.measure == Some(Measure::Receiver) {
            self.sent_log.count(packets, bytes);
        }
    }

    /// Writes and seals a packet of padding if some is due.
    pub(super) fn write_padding(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let stream = self.padding?;
        if self.padding_due == 0 {
            let bandwidth = self.bandwidth.as_mut()?;
            self.padding_due = bandwidth.poll_padding(&self.sent_log, now)?.bytes;
        }
        let len = self.write_padding_packet(stream, now, buf);
        // Padding that cannot be written now is dropped.
        self.padding_due = len.map_or(0, |len| self.padding_due.saturating_sub(len));
        len
    }

    fn write_padding_packet(
        &mut self,
        stream: PaddingStream,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<usize> {
        let sending = self.media.get_mut(stream.media)?.sending.as_mut()?;
        let (number, timestamp) = (sending.next_padding(), sending.last_timestamp());
        let transport_seq = self.next_transport_seq();
        let room = buf.len().checked_sub(AROUND)?;
        let fields = Fields {
            marker: false,
            padding: true,
            pt: stream.pt,
            sequence: number.wire(),
            timestamp,
            ssrc: stream.ssrc,
        };
        let header_len =
            self.write_padding_header(&fields, stream.media, transport_seq, now, buf)?;
        let len = header_len + room.min(MAX_PADDING);
        header::write_padding(buf.get_mut(header_len..len)?).ok()?;
        let sealed = self.transport.seal_rtp(number, header_len, len, buf).ok()?;
        self.record_sent(transport_seq, sealed, now);
        self.count_sent(1, sealed as u64);
        Some(sealed)
    }

    /// Writes the header of a padding packet and returns its length.
    fn write_padding_header(
        &self,
        fields: &Fields,
        media: usize,
        transport_seq: u16,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<usize> {
        let mid = self.media.get(media)?.mid;
        let send_time = AbsSendTime::from_duration(self.clock.since_1900(now)).to_bytes();
        let transport_seq = TransportCc(transport_seq).to_bytes();
        let values: [(ExtensionKind, &[u8]); 3] = [
            (ExtensionKind::Mid, mid.as_bytes()),
            (ExtensionKind::AbsSendTime, &send_time),
            (ExtensionKind::TransportCc, &transport_seq),
        ];
        let extensions = self.extensions();
        let extensions: SmallVec<[(u8, &[u8]); 3]> = values
            .into_iter()
            .filter_map(|(kind, value)| Some((extensions.id(kind)?, value)))
            .collect();
        write_header(buf, fields, extensions.iter().copied()).ok()
    }
}
