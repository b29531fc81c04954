//! What the link carries: feedback in, estimate and padding out.

use std::time::Instant;

use portunus_rtp::extension::{AbsSendTime, TransportCc};
use portunus_rtp::{ExtensionKind, Fields, Pt, SeqNo, Ssrc, header, write_header};
use portunus_sdp::negotiated::{Kind, Negotiated, NegotiatedMedia};
use smallvec::SmallVec;

use super::Connection;
use crate::bandwidth::{Bandwidth, DataRate, Estimate, Measure};

/// Padding of one packet: its length stands in one byte (RFC 3550 section 5.1).
const MAX_PADDING: usize = 255;
/// Room for a header with extensions and for the tag.
const AROUND: usize = 80;

/// The repair stream that padding goes by, so that the numbers of the media have no gaps.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaddingStream {
    media: usize,
    pt: Pt,
    ssrc: Ssrc,
}

impl Connection {
    /// A packet that carries the transport-wide number `seq` was sealed to `bytes` and leaves. Numbers that
    /// were handed out but not written into a packet are not to be recorded.
    #[inline]
    pub fn record_sent(&mut self, seq: u16, bytes: usize, now: Instant) {
        if self.measure == Some(Measure::Transport) {
            self.sent_log.record(seq, bytes, now);
        }
    }

    /// Who measures what the link carries; none if nothing was agreed that tells.
    pub fn measure(&self) -> Option<Measure> {
        self.measure
    }

    /// Whether the peer has told anything of its link yet. What was agreed is not always done.
    pub fn is_bandwidth_heard(&self) -> bool {
        self.bandwidth
            .as_ref()
            .is_some_and(|bandwidth| bandwidth.is_heard())
    }

    /// Packets so far that were recorded, or counted where the receiver measures.
    pub fn recorded(&self) -> u64 {
        self.sent_log.packets()
    }

    /// What the link to the peer carries; none if nothing was agreed that tells.
    pub fn bandwidth(&self) -> Option<Estimate> {
        self.bandwidth
            .as_ref()
            .map(|bandwidth| bandwidth.estimate())
    }

    /// The same, if it changed enough to be of interest since it was polled last.
    pub fn poll_bandwidth(&mut self) -> Option<Estimate> {
        self.bandwidth.as_mut()?.poll_estimate()
    }

    /// The bitrate that would be used if the link carried it. As long as that is more than the estimate,
    /// padding probes for it, also while nothing else is sent. Without a repair stream to send it by
    /// there are no probes.
    pub fn want_bandwidth(&mut self, wanted: DataRate, now: Instant) {
        if let Some(bandwidth) = self.bandwidth.as_mut().filter(|_| self.padding.is_some()) {
            bandwidth.want(wanted, now);
        }
    }

    /// Whether what is sent follows the estimate, up and down, as an encoder does.
    pub fn set_follows_bandwidth(&mut self, follows: bool) {
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.set_follows(follows);
        }
    }

    /// Who measures, and by which stream padding goes, is what was negotiated.
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
        // Where retransmissions have no stream of their own, they repeat packets as they were. So these
        // have no transport-wide numbers, and there is nothing to send padding by: nothing tells of them.
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

    /// Packets left; where the receiver measures they only count.
    #[inline]
    pub(super) fn count_sent(&mut self, packets: u64, bytes: u64) {
        if self.measure == Some(Measure::Receiver) {
            self.sent_log.count(packets, bytes);
        }
    }

    /// Writes and seals a packet of padding, if some is due.
    pub(super) fn write_padding(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let stream = self.padding?;
        if self.padding_due == 0 {
            let bandwidth = self.bandwidth.as_mut()?;
            self.padding_due = bandwidth.poll_padding(&self.sent_log, now)?.bytes;
        }
        let len = self.write_padding_packet(stream, now, buf);
        // What cannot be written now is not written later.
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
        let mid = self.media.get(stream.media)?.mid;
        let room = buf.len().checked_sub(AROUND)?;
        let padding = room.min(MAX_PADDING);
        let (header_len, len) = self.write_padding_to(
            (stream, mid.as_bytes()),
            (number, timestamp, transport_seq),
            padding,
            now,
            buf,
        )?;
        let sealed = self.transport.seal_rtp(number, header_len, len, buf).ok()?;
        self.record_sent(transport_seq, sealed, now);
        self.count_sent(1, sealed as u64);
        Some(sealed)
    }

    fn write_padding_to(
        &self,
        (stream, mid): (PaddingStream, &[u8]),
        (number, timestamp, transport_seq): (SeqNo, u32, u16),
        padding: usize,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<(usize, usize)> {
        let send_time = AbsSendTime::from_duration(self.clock.since_1900(now)).to_bytes();
        let transport_seq = TransportCc(transport_seq).to_bytes();
        let values: [(ExtensionKind, &[u8]); 3] = [
            (ExtensionKind::Mid, mid),
            (ExtensionKind::AbsSendTime, &send_time),
            (ExtensionKind::TransportCc, &transport_seq),
        ];
        let extensions = self.extensions();
        let extensions: SmallVec<[(u8, &[u8]); 3]> = values
            .into_iter()
            .filter_map(|(kind, value)| Some((extensions.id(kind)?, value)))
            .collect();
        let fields = Fields {
            marker: false,
            padding: true,
            pt: stream.pt,
            sequence: number.wire(),
            timestamp,
            ssrc: stream.ssrc,
        };
        let header_len = write_header(buf, &fields, extensions.iter().copied()).ok()?;
        let end = header_len + padding;
        header::write_padding(buf.get_mut(header_len..end)?).ok()?;
        Some((header_len, end))
    }
}
