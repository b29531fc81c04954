//! The encodings and layers of a source, and the position of a packet in them.

use portunus_rtp::codec::{PictureId, Vp8, Vp9};
use portunus_rtp::extension::{DependencyDescriptor, TargetsPlace, TemplateStructure};
use portunus_sdp::negotiated::Codec;

/// The maximum number of simulcast encodings of a source.
pub const ENCODINGS: usize = 3;

/// The position of a packet in the layer structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// It belongs to a keyframe.
    pub keyframe: bool,
    /// SVC spatial layer.
    pub spatial: u8,
    /// Temporal layer.
    pub temporal: u8,
    /// The stream has several spatial layers in one SSRC.
    pub svc: bool,
    /// From this packet on, the temporal layer can be relayed even if earlier packets of it were
    /// dropped.
    pub switching_point: bool,
    /// First packet of its frame (of its spatial layer).
    pub start: bool,
    /// Last packet of its frame (of its spatial layer).
    pub end: bool,
}

/// The decode targets of an AV1 stream with layers, from the dependency descriptor of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Targets {
    /// A mask of the targets that the sender sends.
    pub active: u32,
    /// Masks of the targets that need no higher layers, by spatial and temporal layer.
    within: [[u32; 3]; 3],
    /// The position of the mask in the descriptor.
    pub place: TargetsPlace,
}

impl Targets {
    /// Reads the targets of a descriptor and the structure that it refers to.
    pub fn new(descriptor: &DependencyDescriptor, structure: &TemplateStructure) -> Self {
        let within =
            |spatial| [0, 1, 2].map(|temporal| structure.targets_within(spatial, temporal));
        Self {
            active: descriptor.active_targets,
            within: [0, 1, 2].map(within),
            place: descriptor.targets_place,
        }
    }

    /// Returns the targets of a receiver that gets the layers up to these.
    #[inline]
    pub fn within(&self, spatial: u8, temporal: u8) -> u32 {
        let row = self.within.get(usize::from(spatial)).or(self.within.last());
        let mask = row.and_then(|row| row.get(usize::from(temporal)).or(row.last()));
        self.active & mask.copied().unwrap_or(u32::MAX)
    }
}

/// The layers of a stream that are relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// The spatial layer that ends a picture. `None` without SVC.
    pub top: Option<u8>,
    /// The mask of decode targets to write for the receiver. 0 leaves the source's mask as it is.
    pub targets: u32,
}

/// Picture id and TL0PICIDX of VP8 (RFC 7741 section 4.2) and VP9 (RFC 9628 section 4.2), or
/// offsets of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PictureIds {
    /// The picture id.
    pub picture: u16,
    /// TL0PICIDX.
    pub tl0: u8,
    /// The picture id has 7 bits, else 15.
    pub is_short: bool,
}

impl PictureIds {
    /// Returns the numbers of a packet.
    pub fn new(picture: PictureId, tl0: Option<u8>) -> PictureIds {
        PictureIds {
            picture: picture.value(),
            tl0: tl0.unwrap_or(0),
            is_short: matches!(picture, PictureId::Short(_)),
        }
    }

    /// Adds an offset to the numbers of a packet.
    #[inline]
    pub fn plus(self, offset: PictureIds) -> PictureIds {
        let mask = if self.is_short { 0x7f } else { 0x7fff };
        PictureIds {
            picture: self.picture.wrapping_add(offset.picture) & mask,
            tl0: self.tl0.wrapping_add(offset.tl0),
            ..self
        }
    }

    /// Returns the offset from `other` to these numbers.
    #[inline]
    pub fn minus(self, other: PictureIds) -> PictureIds {
        PictureIds {
            picture: self.picture.wrapping_sub(other.picture) & 0x7fff,
            tl0: self.tl0.wrapping_sub(other.tl0),
            is_short: false,
        }
    }

    /// Returns the numbers of a picture that comes `pictures` later and is of the lowest temporal
    /// layer.
    pub fn after(self, pictures: u16) -> PictureIds {
        self.plus(PictureIds {
            picture: pictures,
            tl0: 1,
            is_short: false,
        })
    }

    /// Writes the numbers into a payload that has such numbers, or into its start.
    #[inline]
    pub fn write(self, codec: Codec, payload: &mut [u8]) {
        if codec == Codec::Vp9 {
            Vp9::renumber(payload, self.picture, self.tl0);
        } else if let Ok(descriptor) = Vp8::parse(payload) {
            descriptor.set_picture_id(payload, self.picture);
            descriptor.set_tl0_pic_idx(payload, self.tl0);
        }
    }
}

/// What a packet says of its layers and its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inspected {
    /// Its position in the layer structure.
    pub layers: Layers,
    /// The picture numbers of VP8 and VP9.
    pub ids: Option<PictureIds>,
    /// The frame number of the dependency descriptor.
    pub frame: Option<u16>,
    /// The decode targets of the dependency descriptor.
    pub targets: Option<Targets>,
}

impl From<Layers> for Inspected {
    fn from(layers: Layers) -> Self {
        Inspected {
            layers,
            ..Inspected::default()
        }
    }
}
