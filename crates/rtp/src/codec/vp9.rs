//! The VP9 payload descriptor (RFC 9628 section 4.2).

use super::vp8::PictureId;
use crate::RtpError;

/// A payload descriptor: its fields, and the places of those that a relay rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vp9 {
    /// The picture id, which is the same for all spatial layers of a picture (I).
    pub picture_id: Option<PictureId>,
    /// The frame is predicted from earlier pictures (P).
    pub inter_picture: bool,
    /// References are listed per frame (F) rather than in the scalability structure.
    pub flexible: bool,
    /// The payload starts a frame, which is a spatial layer of a picture (B).
    pub starts_frame: bool,
    /// The payload ends a frame (E).
    pub ends_frame: bool,
    /// No higher spatial layer is predicted from the frame (Z).
    pub not_reference_for_upper: bool,
    /// The layer, if there are layers (L).
    pub layer: Option<Vp9Layer>,
    /// The running number of pictures of the lowest temporal layer (TL0PICIDX; not in flexible
    /// mode).
    pub tl0_pic_idx: Option<u8>,
    picture_id_at: u8,
    tl0_pic_idx_at: u8,
    structure_at: Option<u8>,
    len: u16,
}

/// The layers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vp9Layer {
    /// The temporal layer, 0 to 7 (TID).
    pub temporal: u8,
    /// A receiver may switch up to this temporal layer from here on (U).
    pub switching_up: bool,
    /// The spatial layer, 0 to 7 (SID).
    pub spatial: u8,
    /// The frame is predicted from the spatial layer below (D).
    pub inter_layer: bool,
}

/// The layers of a stream (V).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalabilityStructure {
    /// The number of spatial layers, 1 to 8.
    pub spatial_layers: u8,
    /// Width and height in pixels of each spatial layer, if present.
    pub sizes: Option<[(u16, u16); 8]>,
    /// The number of pictures in a group. 0 if absent.
    pub group_len: u8,
    /// The number of temporal layers in the group, 1 to 8. 0 if absent.
    pub temporal_layers: u8,
}

impl Vp9 {
    /// Parses the start of a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, RtpError> {
        let truncated = RtpError::Truncated {
            expected: payload.len() + 1,
            actual: payload.len(),
        };
        Self::read(payload).ok_or(truncated)?
    }

    fn read(payload: &[u8]) -> Option<Result<Self, RtpError>> {
        let (mut this, mut rest) = Self::read_numbers(payload)?;
        // At most nine bytes precede the structure, and it takes at most 34 + 255 * 4.
        let at = |rest: &[u8]| (payload.len() - rest.len()) as u16;
        if this.flexible && this.inter_picture {
            // One to three references. The lowest bit says whether another follows.
            for more in [true, true, false] {
                if *rest.split_off_first()? & 1 == 0 {
                    break;
                }
                if !more {
                    return Some(Err(RtpError::Invalid("number of references")));
                }
            }
        }
        if payload.first()? & 0x02 != 0 {
            this.structure_at = Some(at(rest) as u8);
            (_, rest) = ScalabilityStructure::split(rest)?;
        }
        this.len = at(rest);
        Some(Ok(this))
    }

    /// Reads the fields before references and structure. Returns the rest too.
    fn read_numbers(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (&flags, mut rest) = payload.split_first()?;
        // At most five bytes are read.
        let at = |rest: &[u8]| (payload.len() - rest.len()) as u8;
        let mut this = Self {
            picture_id: None,
            inter_picture: flags & 0x40 != 0,
            flexible: flags & 0x10 != 0,
            starts_frame: flags & 0x08 != 0,
            ends_frame: flags & 0x04 != 0,
            not_reference_for_upper: flags & 0x01 != 0,
            layer: None,
            tl0_pic_idx: None,
            picture_id_at: 0,
            tl0_pic_idx_at: 0,
            structure_at: None,
            len: 0,
        };
        if flags & 0x80 != 0 {
            this.picture_id_at = at(rest);
            let (picture_id, after) = PictureId::split(rest)?;
            this.picture_id = Some(picture_id);
            rest = after;
        }
        if flags & 0x20 != 0 {
            let byte = *rest.split_off_first()?;
            this.layer = Some(Vp9Layer {
                temporal: byte >> 5,
                switching_up: byte & 0x10 != 0,
                spatial: (byte >> 1) & 7,
                inter_layer: byte & 1 != 0,
            });
            if !this.flexible {
                this.tl0_pic_idx_at = at(rest);
                this.tl0_pic_idx = Some(*rest.split_off_first()?);
            }
        }
        Some((this, rest))
    }

    /// Returns the bytes of the descriptor.
    pub fn descriptor_len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns the spatial layer, or 0 without layers.
    pub fn spatial(&self) -> u8 {
        self.layer.map_or(0, |layer| layer.spatial)
    }

    /// Returns the temporal layer, or 0 without layers.
    pub fn temporal(&self) -> u8 {
        self.layer.map_or(0, |layer| layer.temporal)
    }

    /// Returns whether the payload starts a keyframe: the lowest spatial layer of a picture without
    /// references.
    pub fn is_keyframe(&self) -> bool {
        let predicted = self
            .layer
            .is_some_and(|layer| layer.inter_layer || layer.spatial > 0);
        self.starts_frame && !self.inter_picture && !predicted
    }

    /// Returns the layers of the stream, if the payload has them.
    pub fn scalability_structure(&self, payload: &[u8]) -> Option<ScalabilityStructure> {
        let structure = payload.get(usize::from(self.structure_at?)..)?;
        ScalabilityStructure::split(structure).map(|(structure, _)| structure)
    }

    /// Sets both numbers like [`Self::set_picture_id`] and [`Self::set_tl0_pic_idx`]. The rest of
    /// the descriptor, which may be long, need not be present.
    pub fn renumber(payload: &mut [u8], picture_id: u16, tl0_pic_idx: u8) {
        if let Some((descriptor, _)) = Self::read_numbers(payload) {
            descriptor.set_picture_id(payload, picture_id);
            descriptor.set_tl0_pic_idx(payload, tl0_pic_idx);
        }
    }

    /// Sets the picture id in the payload, in its width. Does nothing without one.
    pub fn set_picture_id(&self, payload: &mut [u8], id: u16) {
        if let Some(picture_id) = self.picture_id {
            picture_id.overwrite(payload, self.picture_id_at, id);
        }
    }

    /// Sets TL0PICIDX in the payload. Does nothing without one.
    pub fn set_tl0_pic_idx(&self, payload: &mut [u8], idx: u8) {
        if self.tl0_pic_idx.is_some()
            && let Some(byte) = payload.get_mut(usize::from(self.tl0_pic_idx_at))
        {
            *byte = idx;
        }
    }
}

impl ScalabilityStructure {
    /// Reads the structure at the start of `bytes` (section 4.2.1).
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&head, mut rest) = bytes.split_first()?;
        let spatial_layers = (head >> 5) + 1;
        let mut sizes = None;
        if head & 0x10 != 0 {
            let mut told = [(0, 0); 8];
            for size in told.iter_mut().take(usize::from(spatial_layers)) {
                let (&[w0, w1, h0, h1], after) = rest.split_first_chunk()?;
                *size = (u16::from_be_bytes([w0, w1]), u16::from_be_bytes([h0, h1]));
                rest = after;
            }
            sizes = Some(told);
        }
        let (mut group_len, mut temporal_layers) = (0, 0);
        if head & 0x08 != 0 {
            group_len = *rest.split_off_first()?;
            for _ in 0..group_len {
                let picture = *rest.split_off_first()?;
                temporal_layers = temporal_layers.max((picture >> 5) + 1);
                let references = usize::from((picture >> 2) & 3);
                rest = rest.get(references..)?;
            }
        }
        Some((
            Self {
                spatial_layers,
                sizes,
                group_len,
                temporal_layers,
            },
            rest,
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn svc_keyframe_with_structure() {
        let payload = [
            0b1010_1010,
            0x81,
            0x02,
            0b0001_0000,
            0x07, // picture 258, T0 U S0, TL0PICIDX 7
            0b0011_1000,
            1,
            64,
            0,
            180,
            2,
            128,
            1,
            104, // two spatial layers with sizes
            2,
            0b0000_0100,
            2,
            0b0011_1000,
            1,
            2, // two pictures, T0 and T1
            0x82,
        ];
        let descriptor = Vp9::parse(&payload).unwrap();
        assert_eq!(descriptor.picture_id, Some(PictureId::Long(258)));
        assert_eq!(descriptor.tl0_pic_idx, Some(7));
        assert!(descriptor.is_keyframe());
        assert_eq!(descriptor.descriptor_len(), payload.len() - 1);
        let structure = descriptor.scalability_structure(&payload).unwrap();
        assert_eq!(structure.spatial_layers, 2);
        assert_eq!(structure.sizes.unwrap()[..2], [(320, 180), (640, 360)]);
        assert_eq!((structure.group_len, structure.temporal_layers), (2, 2));
        for len in 0..descriptor.descriptor_len() {
            assert!(Vp9::parse(&payload[..len]).is_err());
        }
    }

    #[test]
    fn upper_layers_are_no_keyframes() {
        // S1 of a keyframe, predicted from S0; S0 of a later picture; a later packet.
        for flags_and_layer in [
            [0b0010_1000, 0x03],
            [0b0110_1000, 0x00],
            [0b0010_0000, 0x00],
        ] {
            let payload = [flags_and_layer[0], flags_and_layer[1], 0];
            assert!(!Vp9::parse(&payload).unwrap().is_keyframe());
        }
    }

    #[test]
    fn flexible_mode_has_references_and_no_tl0_pic_idx() {
        let payload = [0b1111_1101, 0x05, 0b0101_0101, 0x03, 0x05, 0x06, 0xff];
        let descriptor = Vp9::parse(&payload).unwrap();
        assert_eq!(descriptor.descriptor_len(), 6);
        assert_eq!((descriptor.temporal(), descriptor.spatial()), (2, 2));
        let layer = descriptor.layer.unwrap();
        assert!(layer.switching_up && layer.inter_layer && descriptor.not_reference_for_upper);
        assert_eq!(descriptor.tl0_pic_idx, None);
        let four = [0b1111_1100, 0x05, 0, 0x03, 0x05, 0x07, 0x02];
        assert_eq!(
            Vp9::parse(&four),
            Err(RtpError::Invalid("number of references"))
        );
    }

    #[test]
    fn no_layers() {
        let descriptor = Vp9::parse(&[0b1000_1100, 0x05]).unwrap();
        assert!(descriptor.is_keyframe());
        assert_eq!(
            (
                descriptor.layer,
                descriptor.spatial(),
                descriptor.temporal()
            ),
            (None, 0, 0)
        );
    }

    /// RFC 9628 section 4.2, figures 2 and 3, with a truncated structure.
    #[test]
    fn numbers_are_rewritten_in_their_width_and_nothing_else() {
        let renumbered = |payload: &[u8], id, idx| {
            let mut payload = payload.to_vec();
            Vp9::renumber(&mut payload, id, idx);
            payload
        };
        // Not flexible, with I, L and V.
        let long = [0b1010_1010, 0x81, 0x02, 0x10, 0x07];
        assert_eq!(
            renumbered(&long, 0x1bbf, 0xff),
            [0b1010_1010, 0x9b, 0xbf, 0x10, 0xff]
        );
        let short = [0b1010_1010, 0x02, 0x10, 0x07];
        assert_eq!(
            renumbered(&short, 0x1bbf, 0xff),
            [0b1010_1010, 0x3f, 0x10, 0xff]
        );
        // Flexible, with I, P and L: after the layer come references, which stay.
        let flexible = [0b1111_1100, 0x81, 0x02, 0x10, 0x07, 0x02];
        assert_eq!(
            renumbered(&flexible, 0x1234, 0xff),
            [0b1111_1100, 0x92, 0x34, 0x10, 0x07, 0x02]
        );
        // Without I, without L, and too short for its flags.
        assert_eq!(renumbered(&[0x2c, 0x10, 7], 9, 8), [0x2c, 0x10, 8]);
        assert_eq!(renumbered(&[0x8c, 0x05, 7], 9, 8), [0x8c, 0x09, 7]);
        assert_eq!(
            renumbered(&[0xac, 0x85, 7, 0x10], 9, 8),
            [0xac, 0x85, 7, 0x10]
        );
        assert_eq!(renumbered(&[], 9, 8), []);
    }

    proptest! {
        #[test]
        fn rewriting_keeps_everything_else(
            payload in proptest::collection::vec(any::<u8>(), 0..40), id: u16, idx: u8,
        ) {
            let Ok(before) = Vp9::parse(&payload) else { return Ok(()) };
            let mut edited = payload.clone();
            before.set_picture_id(&mut edited, id);
            before.set_tl0_pic_idx(&mut edited, idx);
            let after = Vp9::parse(&edited).unwrap();
            let picture_id = before.picture_id.map(|old| id & old.mask());
            prop_assert_eq!(after.picture_id.map(PictureId::value), picture_id);
            prop_assert_eq!(after.tl0_pic_idx, before.tl0_pic_idx.map(|_| idx));
            let (picture_id, tl0_pic_idx) = (before.picture_id, before.tl0_pic_idx);
            prop_assert_eq!(Vp9 { picture_id, tl0_pic_idx, ..after }, before);
            let structure = before.scalability_structure(&payload);
            prop_assert_eq!(structure, after.scalability_structure(&edited));
            // The same without the rest of the descriptor.
            let mut start = payload.clone();
            start.truncate(5);
            Vp9::renumber(&mut start, id, idx);
            start.extend_from_slice(payload.get(5..).unwrap_or_default());
            prop_assert_eq!(start, edited);
        }
    }
}
