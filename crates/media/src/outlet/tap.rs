//! Taps: pass packets of a source to a consumer on the control plane, by a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use portunus_graph::{ENCODINGS, Packet, level};
use portunus_rtc::streams::SenderClock;
use portunus_rtp::extension::{AbsCaptureTime, VideoOrientation};
use portunus_rtp::{ExtensionKind, ExtensionMap, Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::Codec;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};

use super::{Content, Encodings, Taken, write_packet};
use crate::DataPayload;

/// The options of a tap.
#[derive(Debug, Clone)]
pub struct TapOptions {
    /// The maximum number of packets that wait for the consumer, at least 1. Further ones are
    /// dropped.
    pub capacity: usize,
    /// The simulcast encodings to take.
    pub encodings: Encodings,
    /// Whether sender reports are passed on, too ([`Tapped::Report`]).
    pub reports: bool,
    /// A limit of the bytes that wait, shared with other taps.
    pub room: Option<Arc<TapRoom>>,
    /// Whether a tap of messages begins with the last message of before, if the source
    /// [keeps](crate::ingest::DataIngest::keep_last) it.
    pub from_last: bool,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self {
            // Two seconds of 10 Mbit/s.
            capacity: 2_048,
            encodings: Encodings::Best,
            reports: false,
            room: None,
            from_last: false,
        }
    }
}

/// The bytes that the consumers of many taps may hold together. A packet or message counts until
/// its consumer drops it.
#[derive(Debug)]
pub struct TapRoom {
    limit: usize,
    held: AtomicUsize,
}

impl TapRoom {
    /// Returns a limit of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            held: AtomicUsize::new(0),
        })
    }

    /// The bytes that are held.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes a place for `bytes` bytes, if there is one.
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed);
        let place = Place {
            room: Arc::clone(self),
            bytes,
        };
        (held.saturating_add(bytes) <= self.limit).then_some(place)
    }
}

/// The place of a packet or message in a [`TapRoom`].
#[derive(Debug)]
struct Place {
    room: Arc<TapRoom>,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The consumer's end of a tap. Dropping it ends the tap.
#[derive(Debug)]
pub struct Tap {
    queue: mpsc::Receiver<Tapped>,
    dropped: Arc<AtomicU64>,
}

impl Tap {
    /// Waits for the next packet or message. Returns `None` once the tap has ended and is empty.
    pub async fn recv(&mut self) -> Option<Tapped> {
        self.queue.recv().await
    }

    /// Waits for packets, and appends up to `limit` of them. Returns their number, or 0 once the
    /// tap has ended. For consumers that write files: one wake-up serves many packets.
    pub async fn recv_many(&mut self, into: &mut Vec<Tapped>, limit: usize) -> usize {
        self.queue.recv_many(into, limit).await
    }

    /// Returns the next packet or message, if there is one.
    pub fn try_recv(&mut self) -> Option<Tapped> {
        self.queue.try_recv().ok()
    }

    /// Appends up to `limit` packets without waiting. Returns false once the tap has ended and is
    /// empty. For threads that poll: no packet wakes them.
    pub fn drain(&mut self, into: &mut Vec<Tapped>, limit: usize) -> bool {
        for _ in 0..limit {
            match self.queue.try_recv() {
                Ok(tapped) => into.push(tapped),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    /// As [`Tap::recv_many`], for a thread outside of the runtime.
    pub fn blocking_recv_many(&mut self, into: &mut Vec<Tapped>, limit: usize) -> usize {
        self.queue.blocking_recv_many(into, limit)
    }

    /// Packets that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// An item of a tap.
#[derive(Debug)]
pub enum Tapped {
    /// A packet of an audio or video source.
    Packet(TappedPacket),
    /// A message of a data source.
    Message(TappedMessage),
    /// A sender report, if the tap asks for them ([`TapOptions::reports`]). A known report precedes
    /// the first packet of its encoding.
    Report(TappedReport),
}

impl Tapped {
    /// When the server received it.
    pub fn arrival(&self) -> Instant {
        match self {
            Tapped::Packet(packet) => packet.arrival(),
            Tapped::Message(message) => message.arrival,
            Tapped::Report(report) => report.arrival,
        }
    }
}

/// The relation of the timestamps of a stream to its sender's clock (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TappedReport {
    /// When the server received the report.
    pub arrival: Instant,
    /// The stream, see [`TappedPacket::stream`].
    pub stream: u32,
    /// The sender's clock: seconds since 1900 as 32.32 bits.
    pub ntp: u64,
    /// The timestamp at that time, see [`TappedPacket::source_timestamp`].
    pub timestamp: u32,
    /// The last round trip to the sender, if it is known.
    pub round_trip: Option<Duration>,
}

/// An RTP packet of a source, which is shared with all that relay it. Keeping thousands of packets
/// for seconds makes workers allocate.
///
/// All packets of a tap are one stream, over changes of the simulcast encoding, dropped layers and
/// closed gates: one SSRC, sequence numbers and VP8 picture ids without gaps except for lost
/// packets, and timestamps that follow time. VP9 picture ids stay continuous over changes of the
/// encoding, with gaps for dropped pictures.
#[derive(Debug)]
pub struct TappedPacket {
    packet: Arc<Packet>,
    taken: Taken,
    /// Frees the place when dropped.
    place: Option<Place>,
}

impl TappedPacket {
    pub(crate) fn new(packet: Arc<Packet>, taken: Taken) -> Self {
        Self {
            packet,
            taken,
            place: None,
        }
    }

    /// When the server received it.
    pub fn arrival(&self) -> Instant {
        self.packet.arrival
    }

    /// The codec.
    pub fn codec(&self) -> Codec {
        match self.packet.is_redundant() {
            true => Codec::Red,
            false => self.packet.codec,
        }
    }

    /// Whether it belongs to a keyframe. Always false for audio.
    pub fn is_keyframe(&self) -> bool {
        self.packet.layers.keyframe
    }

    #[expect(
        clippy::misnamed_getters,
        reason = "the number in the tap's stream, and not at the source"
    )]
    /// The extended sequence number in the stream of the tap. Late packets come out of order.
    pub fn seq(&self) -> SeqNo {
        self.taken.sent.out
    }

    /// The timestamp in the stream of the tap, in units of the codec's clock rate.
    pub fn timestamp(&self) -> u32 {
        let offset = self.taken.sent.timestamp_offset;
        self.packet.header.timestamp.wrapping_add(offset)
    }

    /// The SSRC of the stream, which is that of its first packet at the source.
    pub fn ssrc(&self) -> Ssrc {
        self.taken.ssrc
    }

    /// The simulcast encoding, 0 the lowest.
    pub fn encoding(&self) -> u8 {
        self.packet.encoding
    }

    /// The stream of the source. The number changes with the encoding, the sender's SSRC, and the
    /// sender. [`TappedPacket::source_timestamp`] counts continuously within a stream.
    pub fn stream(&self) -> u32 {
        stream(&self.packet)
    }

    /// The timestamp at the source, in units of the codec's clock rate. Timestamps of one stream
    /// use one clock, whatever was dropped.
    pub fn source_timestamp(&self) -> u32 {
        self.packet.header.timestamp
    }

    /// Whether it ends a picture of the selected layers, or starts sound after silence.
    pub fn marker(&self) -> bool {
        self.packet.marker(self.taken.sent.part.top)
    }

    /// Whether its payload is encrypted end to end.
    pub fn is_opaque(&self) -> bool {
        self.packet.is_opaque
    }

    /// When its media was captured, by the sender's clock: seconds since 1900 as 32.32 bits. `None`
    /// if the packet does not say.
    pub fn capture_time(&self) -> Option<u64> {
        let time = AbsCaptureTime::parse(self.extension(ExtensionKind::AbsCaptureTime)?)?;
        let offset = time.clock_offset.unwrap_or(0);
        Some(time.timestamp.wrapping_add_signed(offset))
    }

    /// The rotation of its picture, if the packet says.
    pub fn orientation(&self) -> Option<VideoOrientation> {
        VideoOrientation::parse(self.extension(ExtensionKind::VideoOrientation)?)
    }

    fn extension(&self, kind: ExtensionKind) -> Option<&[u8]> {
        let id = self.packet.extensions.id(kind)?;
        self.packet.header.extension(&self.packet.data, id)
    }

    /// The audio level that its sender reports (RFC 6464), in -dBov: 0 is the loudest, 127 is
    /// silence.
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

    /// The ids of the header extensions, which are unchanged in the packet.
    pub fn extensions(&self) -> &ExtensionMap {
        &self.packet.extensions
    }

    /// The unchanged payload: picture ids of VP8 and VP9 are those of the source.
    pub fn payload(&self) -> &[u8] {
        self.packet.whole_payload()
    }

    /// Writes the RTP packet into `out`, in place of its content: a header with the numbers of the
    /// tap's stream, optionally another payload type, and the payload without padding. An invalid
    /// packet leaves `out` empty.
    pub fn write_to(&self, pt: Option<Pt>, out: &mut Vec<u8>) {
        let pt = pt.unwrap_or(self.packet.header.pt);
        out.clear();
        // A dependency descriptor may make the header longer, but less than twice as long.
        let header_len = self.packet.header.header_len();
        out.resize(self.packet.data.len() + header_len, 0);
        let to = (self.taken.ssrc, pt);
        let written = write_packet(&self.packet, &self.taken, to, Content::Redundant, out);
        out.truncate(written.map_or(0, |(_, len)| len));
    }
}

/// Returns the number of a packet's stream.
fn stream(packet: &Packet) -> u32 {
    u32::from_be_bytes([0, packet.encoding, packet.generation, packet.stretch])
}

/// A message of a data source.
#[derive(Debug)]
pub struct TappedMessage {
    /// When the server received it.
    pub arrival: Instant,
    /// The label of its data channel.
    pub label: String,
    /// The content.
    pub payload: DataPayload,
    /// Frees the place when dropped.
    place: Option<Place>,
}

impl TappedMessage {
    pub(crate) fn new(arrival: Instant, label: String, payload: DataPayload) -> Self {
        Self {
            arrival,
            label,
            payload,
            place: None,
        }
    }

    /// The number of bytes that it holds.
    fn held(&self) -> usize {
        let payload = match &self.payload {
            DataPayload::Text(text) => text.len(),
            DataPayload::Binary(bytes) => bytes.len(),
        };
        size_of::<Tapped>() + self.label.len() + payload
    }
}

/// The worker's end of a tap.
#[derive(Debug)]
pub(crate) struct TapInput {
    queue: mpsc::Sender<Tapped>,
    dropped: Arc<AtomicU64>,
    /// Packets were dropped, and no keyframe has been requested since.
    torn: bool,
    room: Option<Arc<TapRoom>>,
    pub(crate) from_last: bool,
    /// If reports are passed on: the stream of the last packet and the last report, by encoding.
    told: Option<[ReportState; ENCODINGS]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ReportState {
    stream: Option<u32>,
    ntp: Option<u64>,
}

/// The outcome of passing on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handed {
    Queued,
    /// As `Queued`, and packets before it were dropped.
    AfterGap,
    Dropped,
    /// The consumer is gone.
    Ended,
}

/// Returns both ends of a tap.
pub(crate) fn channel(options: &TapOptions) -> (TapInput, Tap) {
    let (sender, receiver) = mpsc::channel(options.capacity.clamp(1, MAX_CAPACITY));
    let dropped = Arc::new(AtomicU64::new(0));
    let input = TapInput {
        queue: sender,
        dropped: Arc::clone(&dropped),
        torn: false,
        room: options.room.clone(),
        from_last: options.from_last,
        told: options.reports.then(Default::default),
    };
    let tap = Tap {
        queue: receiver,
        dropped,
    };
    (input, tap)
}

/// The maximum capacity.
const MAX_CAPACITY: usize = 65_536;

impl TapInput {
    /// Passes on new reports of a source, ahead of its packets.
    pub(crate) fn report(
        &mut self,
        packets: &[Arc<Packet>],
        clocks: &[Option<SenderClock>; ENCODINGS],
        round_trip: Option<Duration>,
    ) {
        let Some(mut told) = self.told else {
            return;
        };
        for packet in packets {
            if let Some(told) = told.get_mut(usize::from(packet.encoding)) {
                told.stream = Some(stream(packet));
            }
        }
        for (told, clock) in told.iter_mut().zip(clocks) {
            if let (Some(clock), Some(stream)) = (clock, told.stream)
                && told.ntp != Some(clock.ntp)
            {
                let report = TappedReport {
                    arrival: clock.at,
                    stream,
                    ntp: clock.ntp,
                    timestamp: clock.timestamp,
                    round_trip,
                };
                // A report that was dropped is passed on with the next packets.
                if self.queue.try_send(Tapped::Report(report)).is_ok() {
                    told.ntp = Some(clock.ntp);
                }
            }
        }
        self.told = Some(told);
    }

    /// Passes on a packet, if there is room for it.
    pub(crate) fn hand_packet(&mut self, mut packet: TappedPacket) -> Handed {
        if let Some(room) = &self.room {
            packet.place = room.take(packet.packet.data.len());
            if packet.place.is_none() {
                return self.lose();
            }
        }
        self.hand(Tapped::Packet(packet))
    }

    /// Passes on a message, if there is room for it.
    pub(crate) fn hand_message(&mut self, mut message: TappedMessage) -> Handed {
        if let Some(room) = &self.room {
            message.place = room.take(message.held());
            if message.place.is_none() {
                return self.lose();
            }
        }
        self.hand(Tapped::Message(message))
    }

    pub(crate) fn hand(&mut self, tapped: Tapped) -> Handed {
        match self.queue.try_send(tapped) {
            Ok(()) if std::mem::take(&mut self.torn) => Handed::AfterGap,
            Ok(()) => Handed::Queued,
            Err(TrySendError::Full(_)) => self.lose(),
            Err(TrySendError::Closed(_)) => Handed::Ended,
        }
    }

    fn lose(&mut self) -> Handed {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.torn = true;
        Handed::Dropped
    }
}
