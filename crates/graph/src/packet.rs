//! A packet of a source, parsed once and shared by all that relay it.

use std::time::Instant;

use portunus_rtp::codec::Vp8;
use portunus_rtp::extension::VideoLayersAllocation;
use portunus_rtp::header::FIXED_HEADER_LEN;
use portunus_rtp::{
    ExtensionKind, ExtensionMap, ExtensionSet, Fields, Header, Pt, SeqNo, Ssrc, red, write_header,
};
use portunus_sdp::negotiated::Codec;

use crate::{Inspected, Layers, PictureIds, SentLayers, SharedClock, Targets};

/// The sizes of buffers in bytes: audio, audio with redundancy, video, and the largest packets.
const ROOMS: [usize; 4] = [256, 512, 1_280, 1_856];
/// Space for padding, in bytes.
const PADDING: usize = 32;

/// A decrypted packet, and what its headers say.
#[derive(Debug)]
pub struct Packet {
    /// Header and payload.
    pub data: Vec<u8>,
    /// The parsed header.
    pub header: Header,
    /// The extended sequence number at the source.
    pub seq: SeqNo,
    /// Simulcast encoding, 0 the lowest.
    pub encoding: u8,
    /// Changes with the sender's SSRC if timestamps and picture numbers jump with it.
    pub generation: u8,
    /// Of ingests: changes when the sender restarted or was replaced. Numbers and timestamps go on,
    /// but the pictures that the packet refers to were never sent.
    pub stretch: u8,
    /// The codec of the payload, without redundancy.
    pub codec: Codec,
    /// Redundant audio (RFC 2198): the bytes before the packet's own audio. 0 means none.
    pub(crate) redundancy: u16,
    /// The payload is encrypted end to end, so nothing in it can be relied on.
    pub is_opaque: bool,
    /// When it arrived.
    pub arrival: Instant,
    /// The clock of its timestamp, if several sources share it.
    pub clock: Option<SharedClock>,
    /// The ids of the header extensions at the source.
    pub extensions: ExtensionMap,
    /// The extensions in the packet that the server knows.
    pub carried: ExtensionSet,
    /// Its position in the layer structure.
    pub layers: Layers,
    /// Bytes of our own padding behind the payload (RFC 3550 section 5.1). 0 means none.
    pub padding: u8,
    /// VP8 and VP9: the numbers that have to stay continuous.
    pub ids: Option<PictureIds>,
    /// AV1 and VP9: the frame number in the dependency descriptor, if there is one.
    pub frame: Option<u16>,
    /// AV1: the decode targets, if there are several.
    pub targets: Option<Targets>,
    /// The number of layers that the sender says it sends.
    pub sent_layers: Option<SentLayers>,
}

impl Packet {
    /// Returns an empty packet, to be filled.
    pub fn empty(now: Instant) -> Self {
        Self {
            data: Vec::new(),
            header: Header::default(),
            seq: SeqNo(0),
            encoding: 0,
            generation: 0,
            stretch: 0,
            codec: Codec::Opus,
            redundancy: 0,
            is_opaque: false,
            arrival: now,
            clock: None,
            extensions: ExtensionMap::default(),
            carried: ExtensionSet::EMPTY,
            layers: Layers::default(),
            padding: 0,
            ids: None,
            frame: None,
            targets: None,
            sent_layers: None,
        }
    }

    /// Returns a packet with a message of a data channel. The payload type tells text from bytes.
    pub fn of_message(pt: Pt, message: &[u8], now: Instant) -> Option<Self> {
        let fields = Fields {
            marker: true,
            padding: false,
            pt,
            sequence: 0,
            timestamp: 0,
            ssrc: Ssrc(0),
        };
        let mut packet = Self::empty(now);
        packet.data.reserve_exact(FIXED_HEADER_LEN + message.len());
        packet.data.resize(FIXED_HEADER_LEN, 0);
        write_header(&mut packet.data, &fields, []).ok()?;
        packet.data.extend_from_slice(message);
        packet.header = Header::parse(&packet.data).ok()?;
        Some(packet)
    }

    /// Copies the bytes of a packet into the buffer.
    #[inline]
    pub fn fill(&mut self, data: &[u8]) {
        self.data.clear();
        // Packet sizes of a stream vary. With a few classes of buffers, they soon stop growing.
        let needed = data.len() + PADDING;
        let class = ROOMS.into_iter().find(|room| needed <= *room);
        self.data.reserve(class.unwrap_or(needed));
        self.data.extend_from_slice(data);
        (self.padding, self.redundancy) = (0, 0);
    }

    /// Appends `count` bytes of padding to the payload, in place of the source's own padding.
    #[inline]
    pub fn pad(&mut self, count: usize) {
        let Some(count) = u8::try_from(count).ok().filter(|count| *count > 0) else {
            return;
        };
        let end = self.header.header_len() + self.whole_payload().len();
        self.data.truncate(end);
        self.data.resize(end + usize::from(count), 0);
        if let Some(last) = self.data.last_mut() {
            *last = count;
        }
        self.padding = count;
    }

    /// Sets the codec. The audio in redundant audio (RFC 2198) has to be Opus. The header and
    /// `is_opaque` must be set before: blocks that are encrypted end to end cannot be told apart.
    #[inline]
    pub fn set_codec(&mut self, codec: Codec) {
        self.codec = codec;
        if codec != Codec::Red || self.is_opaque {
            return;
        }
        let payload = self.header.payload(&self.data);
        let own = red::unpack(payload).last();
        let before = own.map(|own| payload.len().saturating_sub(own.payload.len()));
        if let Some(before) = before.and_then(|before| u16::try_from(before).ok()) {
            (self.codec, self.redundancy) = (Codec::Opus, before);
        }
    }

    /// Whether it has redundant audio in front of its own.
    #[inline]
    pub fn is_redundant(&self) -> bool {
        self.redundancy > 0
    }

    /// Sets what the inspector has read.
    #[inline]
    pub fn describe(&mut self, inspected: Inspected) {
        self.layers = inspected.layers;
        self.ids = inspected.ids;
        self.frame = inspected.frame;
        self.targets = inspected.targets;
    }

    /// Sets the ids of the header extensions at the source, and reads them. The header must be set
    /// before.
    pub fn set_extensions(&mut self, numbers: ExtensionMap) {
        self.extensions = numbers;
        let kinds = self.header.extensions(&self.data);
        self.carried = kinds.filter_map(|(id, _)| numbers.kind(id)).collect();
        self.sent_layers = self.read_sent_layers();
    }

    fn read_sent_layers(&self) -> Option<SentLayers> {
        let id = self.extensions.id(ExtensionKind::VideoLayersAllocation)?;
        let value = self.header.extension(&self.data, id)?;
        let allocation = VideoLayersAllocation::parse(value).ok()?;
        let layers = allocation.layers();
        // A paused sender lists no layers.
        let temporal = layers.iter().map(|layer| layer.temporal_layers).max()?;
        let of_stream = |stream| layers.iter().filter(|layer| layer.stream == stream).count();
        let spatial = (0..allocation.streams).map(of_stream).max()?;
        Some(SentLayers {
            spatial: u8::try_from(spatial).ok()?,
            temporal,
        })
    }

    /// Whether it can be recognized whether the packet belongs to a keyframe.
    #[inline]
    pub fn shows_keyframes(&self) -> bool {
        !self.is_opaque || self.is_described_outside()
    }

    /// Whether keyframes can be recognized outside of the end-to-end encryption: by a descriptor of
    /// VP9 (RFC 9628 section 4.2), a header extension, or the first ten bytes of a VP8 keyframe
    /// (RFC 6386 section 9.1), which most clients leave in the clear.
    pub fn is_described_outside(&self) -> bool {
        let payload = self.payload();
        match self.codec {
            Codec::Vp9 => true,
            Codec::Vp8 => Vp8::parse(payload).is_ok_and(|vp8| vp8.keyframe_size(payload).is_some()),
            _ => self.frame.is_some(),
        }
    }

    /// The marker bit for a receiver that gets the spatial layers up to `top`. `None` means no SVC.
    #[inline]
    pub fn marker(&self, top: Option<u8>) -> bool {
        let ends_picture = || self.layers.end && Some(self.layers.spatial) == top;
        self.header.marker || (top.is_some() && ends_picture())
    }

    /// The payload and the padding behind it, without redundancy.
    #[inline]
    pub fn padded_payload(&self) -> &[u8] {
        if self.padding == 0 {
            return self.payload();
        }
        let start = self.header.header_len() + usize::from(self.redundancy);
        self.data.get(start..).unwrap_or_default()
    }

    /// The payload without padding and redundancy.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let whole = self.whole_payload();
        whole
            .get(usize::from(self.redundancy)..)
            .unwrap_or_default()
    }

    /// The payload with redundancy, but without padding.
    #[inline]
    pub fn whole_payload(&self) -> &[u8] {
        self.header.payload(&self.data)
    }
}
