//! Taps: packets of a source, handed to a consumer on the control plane by a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use portunus_rtc::streams::SenderClock;
use portunus_rtp::extension::{AbsCaptureTime, VideoOrientation};
use portunus_rtp::{ExtensionKind, ExtensionMap, Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::Codec;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};

use super::{Encodings, Taken, write_packet};
use crate::DataPayload;
use crate::graph::{ENCODINGS, Packet, level};

/// How a source is tapped.
#[derive(Debug, Clone)]
pub struct TapOptions {
    /// Packets that may wait for the consumer; at least 1. Of those that find no room, the newest are dropped.
    pub capacity: usize,
    /// Which simulcast encodings it takes.
    pub encodings: Encodings,
    /// Whether it tells of sender reports too ([`Tapped::Report`]).
    pub reports: bool,
    /// A bound on the bytes that may wait, shared with other taps.
    pub room: Option<Arc<TapRoom>>,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self {
            // Two seconds of 10 Mbit/s.
            capacity: 2_048,
            encodings: Encodings::Best,
            reports: false,
            room: None,
        }
    }
}

/// Bytes that the consumers of many taps may hold together. A packet or message has its place from when it is handed over until its
/// consumer lets go of it.
#[derive(Debug)]
pub struct TapRoom {
    limit: usize,
    held: AtomicUsize,
}

impl TapRoom {
    /// Room for so many bytes.
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

    /// A place for so many bytes, if there is one.
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed);
        let place = Place {
            room: Arc::clone(self),
            bytes,
        };
        (held.saturating_add(bytes) <= self.limit).then_some(place)
    }
}

/// What a packet or message takes of a [`TapRoom`].
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

    /// Appends what is there now, up to `limit` of it; false once the tap has ended and all is taken. For a thread that looks
    /// by its own clock: nobody is woken.
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
    /// What a sender report said, if the tap asks for reports ([`TapOptions::reports`]). What was known before comes ahead of
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

/// How the timestamps of a stream relate to its sender's clock (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TappedReport {
    /// When the server received the report.
    pub arrival: Instant,
    /// The stream, as [`TappedPacket::stream`] names it.
    pub stream: u32,
    /// The sender's clock: seconds since 1900 as 32.32 bits.
    pub ntp: u64,
    /// The timestamp at that time, as [`TappedPacket::source_timestamp`] counts.
    pub timestamp: u32,
    /// The last round trip to the sender, if it is known.
    pub round_trip: Option<Duration>,
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
    /// Its drop gives the room back.
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

    /// Which stream of the source it is of: another number after a change of the encoding, of the sender's SSRC, or of the
    /// sender. [`TappedPacket::source_timestamp`] is one count within a stream.
    pub fn stream(&self) -> u32 {
        stream(&self.packet)
    }

    /// Its timestamp at the source, in units of the codec's clock rate. Those of one stream are by one clock, whatever was
    /// left out.
    pub fn source_timestamp(&self) -> u32 {
        self.packet.header.timestamp
    }

    /// Whether it ends a picture of the layers that the tap takes, or begins sound after silence.
    pub fn marker(&self) -> bool {
        self.packet.marker(self.taken.sent.part.top)
    }

    /// Whether its payload is encrypted end to end, so that nothing can be read of it.
    pub fn is_opaque(&self) -> bool {
        self.packet.is_opaque
    }

    /// When its media was captured, by the clock of its sender: seconds since 1900 as 32.32 bits; none if it does not say.
    pub fn capture_time(&self) -> Option<u64> {
        let time = AbsCaptureTime::parse(self.extension(ExtensionKind::AbsCaptureTime)?)?;
        let offset = time.clock_offset.unwrap_or(0);
        Some(time.timestamp.wrapping_add_signed(offset))
    }

    /// How its picture has to be turned, if it says.
    pub fn orientation(&self) -> Option<VideoOrientation> {
        VideoOrientation::parse(self.extension(ExtensionKind::VideoOrientation)?)
    }

    fn extension(&self, kind: ExtensionKind) -> Option<&[u8]> {
        let id = self.packet.extensions.id(kind)?;
        self.packet.header.extension(&self.packet.data, id)
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

/// The number of a packet's stream.
fn stream(packet: &Packet) -> u32 {
    u32::from_be_bytes([0, packet.encoding, packet.generation, packet.stretch])
}

/// A message of a data source.
#[derive(Debug)]
pub struct TappedMessage {
    /// When the server received it.
    pub arrival: Instant,
    /// The label of the channel that it came by.
    pub label: String,
    /// What it says.
    pub payload: DataPayload,
    /// Its drop gives the room back.
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

    /// The bytes that it holds.
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
    /// Something was dropped, and no keyframe has been asked for since.
    torn: bool,
    room: Option<Arc<TapRoom>>,
    /// If it tells of reports: by encoding, the stream of the last packet and the report that was told last.
    told: Option<[Told; ENCODINGS]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Told {
    stream: Option<u32>,
    ntp: Option<u64>,
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
        room: options.room.clone(),
        told: options.reports.then(Default::default),
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
    /// Hands over what is new of a source's reports, before packets that have come.
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
                // One that finds no room is told with the next packets.
                if self.queue.try_send(Tapped::Report(report)).is_ok() {
                    told.ntp = Some(clock.ntp);
                }
            }
        }
        self.told = Some(told);
    }

    /// Hands over a packet, if there is room for it.
    pub(crate) fn hand_packet(&mut self, mut packet: TappedPacket) -> Handed {
        if let Some(room) = &self.room {
            packet.place = room.take(packet.packet.data.len());
            if packet.place.is_none() {
                return self.lose();
            }
        }
        self.hand(Tapped::Packet(packet))
    }

    /// Hands over a message, if there is room for it.
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
