//! A packet of a source, parsed once, shared by everybody that relays it.

use std::time::Instant;

use portunus_rtp::codec::{PictureId, Vp8, Vp9};
use portunus_rtp::extension::{
    DependencyDescriptor, TargetsPlace, TemplateStructure, VideoLayersAllocation,
};
use portunus_rtp::header::FIXED_HEADER_LEN;
use portunus_rtp::{
    ExtensionKind, ExtensionMap, ExtensionSet, Fields, Header, Pt, SeqNo, Ssrc, write_header,
};
use portunus_sdp::negotiated::Codec;

use super::Inspected;
use crate::{SentLayers, SharedClock};

/// Sizes of buffers, in bytes: audio, audio with redundancy, video, and the largest that are relayed.
const ROOMS: [usize; 4] = [256, 512, 1_280, 1_856];
/// Room for padding.
const PADDING: usize = 32;

/// A packet in the clear with what its headers say.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Header and payload.
    pub(crate) data: Vec<u8>,
    pub(crate) header: Header,
    pub(crate) seq: SeqNo,
    /// Simulcast encoding, 0 the lowest.
    pub(crate) encoding: u8,
    /// Changes with the sender's SSRC, where that makes timestamps and picture numbers jump.
    pub(crate) generation: u8,
    /// Of ingests: changes where its sender began anew, or another one took over. Numbers and timestamps go on, but what
    /// it refers to was never sent.
    pub(crate) stretch: u8,
    pub(crate) codec: Codec,
    /// It is encrypted end to end: of its payload anything can be read, and nothing is meant.
    pub(crate) is_opaque: bool,
    pub(crate) arrival: Instant,
    /// The clock of its timestamp, where several sources share it.
    pub(crate) clock: Option<SharedClock>,
    /// The numbers of the header extensions at the source.
    pub(crate) extensions: ExtensionMap,
    /// The extensions that it has and the server knows.
    pub(crate) carried: ExtensionSet,
    pub(crate) layers: Layers,
    /// Bytes of padding behind the payload (RFC 3550 section 5.1), ours; 0: none.
    pub(crate) padding: u8,
    /// VP8 and VP9: the numbers that have to stay continuous.
    pub(crate) ids: Option<PictureIds>,
    /// AV1 and VP9: the number of its frame in the dependency descriptor, if it has one.
    pub(crate) frame: Option<u16>,
    /// AV1: the decode targets, if there are several.
    pub(crate) targets: Option<Targets>,
    /// What its sender says of the layers that it sends.
    pub(crate) sent_layers: Option<SentLayers>,
}

/// Where in the layer structure a packet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Layers {
    /// It belongs to a keyframe.
    pub(crate) keyframe: bool,
    /// SVC spatial layer.
    pub(crate) spatial: u8,
    /// Temporal layer.
    pub(crate) temporal: u8,
    /// The stream has several spatial layers in one SSRC.
    pub(crate) svc: bool,
    /// From here on the temporal layer can be relayed without what was left out before.
    pub(crate) switching_point: bool,
    /// First packet of its frame (of its spatial layer).
    pub(crate) start: bool,
    /// Last packet of its frame (of its spatial layer).
    pub(crate) end: bool,
}

/// The decode targets of an AV1 stream in layers, as a packet's dependency descriptor tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Targets {
    /// Those that the sender sends, as a mask.
    pub(crate) active: u32,
    /// Those that need no layers above: by spatial and temporal layer.
    within: [[u32; 3]; 3],
    /// Where the descriptor tells them.
    pub(crate) place: TargetsPlace,
}

impl Targets {
    pub(crate) fn new(descriptor: &DependencyDescriptor, structure: &TemplateStructure) -> Self {
        let within =
            |spatial| [0, 1, 2].map(|temporal| structure.targets_within(spatial, temporal));
        Self {
            active: descriptor.active_targets,
            within: [0, 1, 2].map(within),
            place: descriptor.targets_place,
        }
    }

    /// Those that a receiver of the layers up to these has.
    #[inline]
    pub(crate) fn within(&self, spatial: u8, temporal: u8) -> u32 {
        let row = self.within.get(usize::from(spatial)).or(self.within.last());
        let mask = row.and_then(|row| row.get(usize::from(temporal)).or(row.last()));
        self.active & mask.copied().unwrap_or(u32::MAX)
    }
}

/// What is relayed of a stream in layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Part {
    /// The spatial layer that ends a picture; none without SVC.
    pub(crate) top: Option<u8>,
    /// A mask of the decode targets that the receiver has, which it is told; 0: what the source tells will do.
    pub(crate) targets: u32,
}

/// Picture id and TL0PICIDX of VP8 (RFC 7741 section 4.2) and VP9 (RFC 9628 section 4.2), or offsets of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PictureIds {
    pub(crate) picture: u16,
    pub(crate) tl0: u8,
    /// The picture id has 7 bits, else 15.
    pub(crate) is_short: bool,
}

impl PictureIds {
    pub(crate) fn new(picture: PictureId, tl0: Option<u8>) -> PictureIds {
        PictureIds {
            picture: picture.value(),
            tl0: tl0.unwrap_or(0),
            is_short: matches!(picture, PictureId::Short(_)),
        }
    }

    /// Those of a packet, moved by an offset.
    pub(crate) fn plus(self, offset: PictureIds) -> PictureIds {
        let mask = if self.is_short { 0x7f } else { 0x7fff };
        PictureIds {
            picture: self.picture.wrapping_add(offset.picture) & mask,
            tl0: self.tl0.wrapping_add(offset.tl0),
            ..self
        }
    }

    /// The offset from others to these.
    pub(crate) fn minus(self, other: PictureIds) -> PictureIds {
        PictureIds {
            picture: self.picture.wrapping_sub(other.picture) & 0x7fff,
            tl0: self.tl0.wrapping_sub(other.tl0),
            is_short: false,
        }
    }

    /// Those of a picture so many later, the next of the lowest temporal layer.
    pub(crate) fn after(self, pictures: u16) -> PictureIds {
        self.plus(PictureIds {
            picture: pictures,
            tl0: 1,
            is_short: false,
        })
    }

    /// Puts them into a payload that has such numbers, or into its start.
    pub(crate) fn write(self, codec: Codec, payload: &mut [u8]) {
        if codec == Codec::Vp9 {
            Vp9::renumber(payload, self.picture, self.tl0);
        } else if let Ok(descriptor) = Vp8::parse(payload) {
            descriptor.set_picture_id(payload, self.picture);
            descriptor.set_tl0_pic_idx(payload, self.tl0);
        }
    }
}

impl Packet {
    /// A packet to be filled.
    pub(crate) fn empty(now: Instant) -> Self {
        Self {
            data: Vec::new(),
            header: Header::default(),
            seq: SeqNo(0),
            encoding: 0,
            generation: 0,
            stretch: 0,
            codec: Codec::Opus,
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

    /// A message of a data channel, whose payload type says what it is.
    pub(crate) fn of_message(pt: Pt, message: &[u8], now: Instant) -> Option<Self> {
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

    /// Takes the bytes of a packet into the buffer that is there.
    pub(crate) fn fill(&mut self, data: &[u8]) {
        self.data.clear();
        // Sizes of a stream vary: with a few classes of buffers they soon grow no more.
        let needed = data.len() + PADDING;
        let class = ROOMS.into_iter().find(|room| needed <= *room);
        self.data.reserve(class.unwrap_or(needed));
        self.data.extend_from_slice(data);
        self.padding = 0;
    }

    /// Puts so many bytes of padding behind the payload, in place of the source's own.
    pub(crate) fn pad(&mut self, count: usize) {
        let Some(count) = u8::try_from(count).ok().filter(|count| *count > 0) else {
            return;
        };
        let end = self.header.header_len() + self.payload().len();
        self.data.truncate(end);
        self.data.resize(end + usize::from(count), 0);
        if let Some(last) = self.data.last_mut() {
            *last = count;
        }
        self.padding = count;
    }

    /// Says what was read in it.
    pub(crate) fn describe(&mut self, inspected: Inspected) {
        self.layers = inspected.layers;
        self.ids = inspected.ids;
        self.frame = inspected.frame;
        self.targets = inspected.targets;
    }

    /// Says how the source numbers the extensions of the header, which must be there already.
    pub(crate) fn set_extensions(&mut self, numbers: ExtensionMap) {
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
        // None of a sender that is paused.
        let temporal = layers.iter().map(|layer| layer.temporal_layers).max()?;
        let of_stream = |stream| layers.iter().filter(|layer| layer.stream == stream).count();
        let spatial = (0..allocation.streams).map(of_stream).max()?;
        Some(SentLayers {
            spatial: u8::try_from(spatial).ok()?,
            temporal,
        })
    }

    /// Whether it can be told that it is not of a keyframe, or that it is.
    pub(crate) fn tells_keyframes(&self) -> bool {
        !self.is_opaque || self.is_described_outside()
    }

    /// Whether what is known of a keyframe stands outside of what is encrypted end to end: in a descriptor of VP9 (RFC 9628
    /// section 4.2), in a header extension, or in the first ten bytes of a VP8 keyframe (RFC 6386 section 9.1), which most
    /// clients leave as they are.
    pub(crate) fn is_described_outside(&self) -> bool {
        let payload = self.payload();
        match self.codec {
            Codec::Vp9 => true,
            Codec::Vp8 => Vp8::parse(payload).is_ok_and(|vp8| vp8.keyframe_size(payload).is_some()),
            _ => self.frame.is_some(),
        }
    }

    /// The marker bit for a receiver that gets the spatial layers up to `top`; none without SVC.
    #[inline]
    pub(crate) fn marker(&self, top: Option<u8>) -> bool {
        let ends_picture = || self.layers.end && Some(self.layers.spatial) == top;
        self.header.marker || (top.is_some() && ends_picture())
    }

    /// The payload with the padding behind it.
    #[inline]
    pub(crate) fn padded_payload(&self) -> &[u8] {
        if self.padding == 0 {
            return self.payload();
        }
        self.data
            .get(self.header.header_len()..)
            .unwrap_or_default()
    }

    /// The payload.
    pub(crate) fn payload(&self) -> &[u8] {
        self.header.payload(&self.data)
    }
}
