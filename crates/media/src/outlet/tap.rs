//! Taps: packets of a source, handed to a consumer on the control plane by a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use portunus_rtp::{ExtensionMap, Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::Codec;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Encodings, Taken, write_packet};
use crate::DataPayload;
use crate::graph::{Packet, level};

/// How a source is tapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapOptions {
    /// Packets that may wait for the consumer; at least 1. Of those that find no room, the newest are dropped.
    pub capacity: usize,
    /// Which simulcast encodings it takes.
    pub encodings: Encodings,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self {
            // Two seconds of 10 Mbit/s.
            capacity: 2_048,
            encodings: Encodings::Best,
        }
    }
}

/// The consumer's end of a tap. To drop it ends the tap.
#[derive(Debug)]
pub struct Tap {
    queue: mpsc::Receiver<Tapped>,
    dropped: Arc<AtomicU64>,
}

impl Tap {
    /// The next packet or message; none once the tap has ended and all is taken.
    pub async fn recv(&mut self) -> Option<Tapped> {
        self.queue.recv().await
    }

    /// Appends what is there, up to `limit` of it, and waits if that is nothing; returns how many, and 0 once
    /// the tap has ended. For a consumer that writes files: a wake-up for many packets.
    pub async fn recv_many(&mut self, into: &mut Vec<Tapped>, limit: usize) -> usize {
        self.queue.recv_many(into, limit).await
    }

    /// What is there now, if anything.
    pub fn try_recv(&mut self) -> Option<Tapped> {
        self.queue.try_recv().ok()
    }

    /// As [`Tap::recv_many`], for a thread outside the runtime.
    pub fn blocking_recv_many(&mut self, into: &mut Vec<Tapped>, limit: usize) -> usize {
        self.queue.blocking_recv_many(into, limit)
    }

    /// What found the queue full so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// What comes out of a tap.
#[derive(Debug)]
pub enum Tapped {
    /// A packet of an audio or video source.
    Packet(TappedPacket),
    /// A message of a data source.
    Message(TappedMessage),
}

impl Tapped {
    /// When the server received it.
    pub fn arrival(&self) -> Instant {
        match self {
            Tapped::Packet(packet) => packet.arrival(),
            Tapped::Message(message) => message.arrival,
        }
    }
}

/// An RTP packet of a source. It is shared with all that relay it: to keep thousands of them for seconds makes
/// workers allocate.
///
/// Over changes of the simulcast encoding, left-out layers and closed gates, all packets of a tap are one stream:
/// one SSRC, sequence numbers and VP8 picture ids without gaps but for lost packets, timestamps that go on by the
/// time that passed. VP9 picture ids go on over changes of the encoding; those of left-out pictures stay gaps.
#[derive(Debug)]
pub struct TappedPacket {
    packet: Arc<Packet>,
    taken: Taken,
}

impl TappedPacket {
    pub(crate) fn new(packet: Arc<Packet>, taken: Taken) -> Self {
        Self { packet, taken }
    }

    /// When the server received it.
    pub fn arrival(&self) -> Instant {
        self.packet.arrival
    }

    /// What it holds.
    pub fn codec(&self) -> Codec {
        self.packet.codec
    }

    /// Whether it belongs to a keyframe. Always false for audio.
    pub fn is_keyframe(&self) -> bool {
        self.packet.layers.keyframe
    }

    #[expect(
        clippy::misnamed_getters,
        reason = "the number in the tap's stream, and not at the source"
    )]
    /// Its extended sequence number in the stream of the tap. Late packets come late here too.
    pub fn seq(&self) -> SeqNo {
        self.taken.sent.out
    }

    /// Its timestamp in the stream of the tap, in units of the codec's clock rate.
    pub fn timestamp(&self) -> u32 {
        let offset = self.taken.sent.timestamp_offset;
        self.packet.header.timestamp.wrapping_add(offset)
    }

    /// The stream's SSRC: that of its first packet at the source.
    pub fn ssrc(&self) -> Ssrc {
        self.taken.ssrc
    }

    /// The simulcast encoding that it is of, 0 the lowest.
    pub fn encoding(&self) -> u8 {
        self.packet.encoding
    }

    /// How loud its sender says that it is (RFC 6464), in -dBov: 0 the loudest, 127 silence.
    pub fn level(&self) -> Option<u8> {
        level(
            &self.packet.header,
            &self.packet.data,
            &self.packet.extensions,
        )
    }

    /// The payload type at the source.
    pub fn pt(&self) -> Pt {
        self.packet.header.pt
    }

    /// How the source numbers the header extensions, which are in the packet as they came.
    pub fn extensions(&self) -> &ExtensionMap {
        &self.packet.extensions
    }

    /// The payload as it came: picture ids of VP8 and VP9 are those of the source.
    pub fn payload(&self) -> &[u8] {
        self.packet.payload()
    }

    /// Writes the RTP packet in place of what `out` holds: the header with its extensions and the numbers of the
    /// tap's stream, with another payload type if one is given, and the payload without padding. `out` is left empty if
    /// that is no packet.
    pub fn write_to(&self, pt: Option<Pt>, out: &mut Vec<u8>) {
        let pt = pt.unwrap_or(self.packet.header.pt);
        out.clear();
        // A dependency descriptor may make the header longer, but not twice as long.
        let header_len = self.packet.header.header_len();
        out.resize(self.packet.data.len() + header_len, 0);
        let to = (self.taken.ssrc, pt);
        let written = write_packet(&self.packet, &self.taken, to, false, out);
        out.truncate(written.map_or(0, |(_, len)| len));
    }
}

/// A message of a data source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TappedMessage {
    /// When the server received it.
    pub arrival: Instant,
    /// The label of the channel that it came by.
    pub label: String,
    /// What it says.
    pub payload: DataPayload,
}

/// The worker's end of a tap.
#[derive(Debug)]
pub(crate) struct TapInput {
    queue: mpsc::Sender<Tapped>,
    dropped: Arc<AtomicU64>,
    /// Something was dropped, and no keyframe has been asked for since.
    torn: bool,
}

/// What became of a packet that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handed {
    Queued,
    /// As before, and it is the first after some that were dropped.
    AfterGap,
    Dropped,
    /// The consumer is gone.
    Ended,
}

/// Both ends of a tap.
pub(crate) fn channel(options: &TapOptions) -> (TapInput, Tap) {
    let (sender, receiver) = mpsc::channel(options.capacity.clamp(1, MAX_CAPACITY));
    let dropped = Arc::new(AtomicU64::new(0));
    let input = TapInput {
        queue: sender,
        dropped: Arc::clone(&dropped),
        torn: false,
    };
    let tap = Tap {
        queue: receiver,
        dropped,
    };
    (input, tap)
}

/// Packets that may wait at most.
const MAX_CAPACITY: usize = 65_536;

impl TapInput {
    pub(crate) fn hand(&mut self, tapped: Tapped) -> Handed {
        match self.queue.try_send(tapped) {
            Ok(()) if std::mem::take(&mut self.torn) => Handed::AfterGap,
            Ok(()) => Handed::Queued,
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.torn = true;
                Handed::Dropped
            }
            Err(TrySendError::Closed(_)) => Handed::Ended,
        }
    }
}
