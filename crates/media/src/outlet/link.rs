//! A stream that goes to another node: the end of an outlet.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_graph::{Packet, PictureIds, SourceFormat};
use portunus_rtc::streams::{Burst, NtpClock, SendStream, SenderClock, SenderFigures};
use portunus_rtp::rtcp::ReportBlock;
use portunus_rtp::{SeqNo, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::Sealer;

use super::{Content, Taken, write_head, write_packet};
use crate::node_link::{
    NodeLinkId, NodeLinkState, NodeLinkStatus, RelayCount, RelayOptions, payload_type, with_key,
};

/// A stream to another node. It writes datagrams, and has no socket.
#[derive(Debug)]
pub(crate) struct LinkOutlet {
    options: RelayOptions,
    stream: SendStream,
    /// The encoding and timestamp offset of the last packet.
    numbering: Option<(u8, u32)>,
    /// Its first packet has just been sent, so that a report should follow.
    pub(crate) is_new: bool,
    count: Arc<RelayCount>,
}

/// What sealing for a link needs.
pub(crate) struct LinkWay<'a> {
    sealer: &'a Sealer,
    number: u32,
    status: &'a NodeLinkStatus,
}

impl<'a> LinkWay<'a> {
    /// Returns the way over a link, if that has a key.
    pub(crate) fn new(link: &'a NodeLinkState) -> Option<Self> {
        let (sealer, number) = link.sealer()?;
        Some(Self {
            sealer,
            number,
            status: &link.status,
        })
    }
}

impl LinkOutlet {
    pub(crate) fn new(options: RelayOptions, count: Arc<RelayCount>) -> Self {
        Self {
            stream: SendStream::new(options.ssrc, None),
            options,
            numbering: None,
            is_new: false,
            count,
        }
    }

    pub(crate) fn link(&self) -> NodeLinkId {
        self.options.link
    }

    /// The worker of the other node that takes the stream.
    pub(crate) fn far(&self) -> u16 {
        self.options.far
    }

    pub(crate) fn ssrc(&self) -> Ssrc {
        self.options.ssrc
    }

    /// The options.
    #[cfg(feature = "testing")]
    pub(crate) fn options(&self) -> RelayOptions {
        self.options
    }

    /// Writes a packet. Returns its length.
    pub(crate) fn write(
        &mut self,
        packet: &Packet,
        taken: &Taken,
        way: &LinkWay<'_>,
        now: Instant,
        out: &mut [u8],
    ) -> Option<usize> {
        let sealed = self.seal(packet, taken, way, out)?;
        let offset = taken.sent.timestamp_offset;
        self.is_new |= self.numbering.is_none();
        self.numbering = Some((packet.encoding, offset));
        let mut burst = Burst::default();
        let timestamp = packet.header.timestamp.wrapping_add(offset);
        burst.add(taken.sent.out, timestamp, crossing(packet).2.len());
        self.stream.sent(&burst, now);
        way.status.sent_packets.fetch_add(1, Relaxed);
        Some(sealed)
    }

    /// Writes a packet again, exactly as before.
    pub(crate) fn write_again(
        &mut self,
        packet: &Packet,
        taken: &Taken,
        way: &LinkWay<'_>,
        out: &mut [u8],
    ) -> Option<usize> {
        let sealed = self.seal(packet, taken, way, out)?;
        self.stream.sent_again();
        way.status.retransmitted.fetch_add(1, Relaxed);
        Some(sealed)
    }

    fn seal(
        &self,
        packet: &Packet,
        taken: &Taken,
        way: &LinkWay<'_>,
        out: &mut [u8],
    ) -> Option<usize> {
        let (codec, content, tail) = crossing(packet);
        let to = (with_key(self.options.ssrc, way.number), payload_type(codec));
        let index = taken.sent.out;
        let is_renumbered = packet.ids.is_some() && taken.sent.ids_offset != PictureIds::default();
        let sealed = if is_renumbered {
            let (header_len, len) = write_packet(packet, taken, to, content, out)?;
            way.sealer.seal_rtp(index, header_len, len, out)
        } else {
            // It is encrypted from where it is, without a copy.
            let header_len = write_head(packet, taken, to, content, out)?;
            way.sealer
                .seal_rtp_with_tail(index, header_len, header_len, tail, out)
        };
        let sealed = sealed.ok()?;
        self.count.add(sealed);
        way.status.sent_bytes.fetch_add(sealed as u64, Relaxed);
        Some(sealed)
    }

    /// Takes a request for a packet. Returns its full number if it may leave again.
    pub(crate) fn requested(
        &mut self,
        wire: u16,
        round_trip: Duration,
        now: Instant,
    ) -> Option<SeqNo> {
        self.stream.nacked(wire, round_trip, now)
    }

    /// Takes the other node's report on the stream.
    pub(crate) fn reported(&mut self, block: &ReportBlock, now: Instant) {
        let lost = block.cumulative_lost.cast_unsigned();
        self.stream.receiver_report(
            lost,
            block.jitter,
            block.last_sr,
            block.delay_since_last_sr,
            now,
        );
    }

    /// Returns what a sender report on the stream has to say, if packets were sent since the last.
    pub(crate) fn report(
        &mut self,
        format: &SourceFormat,
        clocks: &[Option<SenderClock>],
        clock: &NtpClock,
        now: Instant,
    ) -> Option<SenderFigures> {
        let (encoding, offset) = self.numbering?;
        let known = clocks.get(usize::from(encoding)).copied().flatten();
        let known = known.map(|known| SenderClock {
            timestamp: known.timestamp.wrapping_add(offset),
            ..known
        });
        self.stream.report(known, format.clock_rate, clock, now)
    }
}

/// Returns what crosses of a packet: its codec, its content, and the bytes. Redundant audio crosses
/// as it is, so that receivers at the other node choose.
fn crossing(packet: &Packet) -> (Codec, Content, &[u8]) {
    if packet.is_redundant() {
        (Codec::Red, Content::Redundant, packet.whole_payload())
    } else {
        (packet.codec, Content::Padded, packet.padded_payload())
    }
}
