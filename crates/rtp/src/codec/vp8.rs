//! The VP8 payload descriptor (RFC 7741 section 4.2), and the start of keyframes.

use crate::RtpError;

/// A payload descriptor: its fields, and the places of those that a relay rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vp8 {
    /// No frame refers to this one, so it may be dropped (N).
    pub non_reference: bool,
    /// The payload starts a partition (S).
    pub starts_partition: bool,
    /// The partition's index, 0 to 7 (PID).
    pub partition: u8,
    /// The picture id, which wraps at 7 or 15 bits.
    pub picture_id: Option<PictureId>,
    /// The running number of frames of the lowest temporal layer (TL0PICIDX).
    pub tl0_pic_idx: Option<u8>,
    /// The temporal layer, 0 to 3 (TID).
    pub temporal: Option<u8>,
    /// The frame refers only to the lowest layer, so a receiver may switch up here (Y).
    pub layer_sync: bool,
    /// The running number of keyframes, 5 bits (KEYIDX).
    pub key_idx: Option<u8>,
    picture_id_at: u8,
    tl0_pic_idx_at: u8,
    len: u8,
}

/// The picture id of a VP8 or VP9 frame, in one of its two widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureId {
    /// 7 bits.
    Short(u8),
    /// 15 bits.
    Long(u16),
}

impl PictureId {
    /// Returns the number.
    pub const fn value(self) -> u16 {
        match self {
            PictureId::Short(id) => id as u16,
            PictureId::Long(id) => id,
        }
    }

    /// Returns the mask of the bits at which the number wraps.
    pub const fn mask(self) -> u16 {
        match self {
            PictureId::Short(_) => 0x7f,
            PictureId::Long(_) => 0x7fff,
        }
    }

    /// Reads the one or two bytes at the start of `bytes`.
    pub(super) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&first, rest) = bytes.split_first()?;
        if first & 0x80 == 0 {
            return Some((PictureId::Short(first), rest));
        }
        let (&second, rest) = rest.split_first()?;
        Some((
            PictureId::Long(u16::from_be_bytes([first & 0x7f, second])),
            rest,
        ))
    }

    /// Overwrites the picture id at `at` with `id`, in this one's width.
    pub(super) fn overwrite(self, payload: &mut [u8], at: u8, id: u16) {
        let [high, low] = (id & self.mask()).to_be_bytes();
        match (self, payload.get_mut(usize::from(at)..)) {
            (PictureId::Short(_), Some([byte, ..])) => *byte = low,
            (PictureId::Long(_), Some([first, second, ..])) => {
                *first = high | 0x80;
                *second = low;
            }
            _ => {}
        }
    }
}

impl Vp8 {
    /// Parses the start of a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, RtpError> {
        Self::read(payload).ok_or(RtpError::Truncated {
            expected: payload.len() + 1,
            actual: payload.len(),
        })
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (&first, mut rest) = payload.split_first()?;
        // At most six bytes are read.
        let at = |rest: &[u8]| (payload.len() - rest.len()) as u8;
        let mut this = Self {
            non_reference: first & 0x20 != 0,
            starts_partition: first & 0x10 != 0,
            partition: first & 0x07,
            picture_id: None,
            tl0_pic_idx: None,
            temporal: None,
            layer_sync: false,
            key_idx: None,
            picture_id_at: 0,
            tl0_pic_idx_at: 0,
            len: 0,
        };
        if first & 0x80 != 0 {
            let flags = *rest.split_off_first()?;
            if flags & 0x80 != 0 {
                this.picture_id_at = at(rest);
                let (picture_id, after) = PictureId::split(rest)?;
                this.picture_id = Some(picture_id);
                rest = after;
            }
            if flags & 0x40 != 0 {
                this.tl0_pic_idx_at = at(rest);
                this.tl0_pic_idx = Some(*rest.split_off_first()?);
            }
            if flags & 0x30 != 0 {
                let byte = *rest.split_off_first()?;
                this.temporal = (flags & 0x20 != 0).then_some(byte >> 6);
                this.layer_sync = flags & 0x20 != 0 && byte & 0x20 != 0;
                this.key_idx = (flags & 0x10 != 0).then_some(byte & 0x1f);
            }
        }
        this.len = at(rest);
        Some(this)
    }

    /// Returns the bytes of the descriptor.
    pub fn descriptor_len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns whether the payload starts a frame.
    pub fn starts_frame(&self) -> bool {
        self.starts_partition && self.partition == 0
    }

    /// Returns whether the payload starts a keyframe (section 4.3).
    pub fn is_keyframe(&self, payload: &[u8]) -> bool {
        self.starts_frame()
            && payload
                .get(self.descriptor_len())
                .is_some_and(|byte| byte & 1 == 0)
    }

    /// Returns width and height in pixels, if the payload starts a keyframe (RFC 6386 section 9.1).
    pub fn keyframe_size(&self, payload: &[u8]) -> Option<(u16, u16)> {
        let frame = payload
            .get(self.descriptor_len()..)
            .filter(|_| self.is_keyframe(payload))?;
        let [_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1] = *frame.first_chunk()? else {
            return None;
        };
        // The upper two bits are scaling, which the player applies.
        let pixels = |low, high| u16::from_le_bytes([low, high]) & 0x3fff;
        Some((pixels(w0, w1), pixels(h0, h1)))
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

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;
    use proptest::prelude::*;

    /// The first example of RFC 7741 section 4.6: the first packet of a keyframe.
    #[test]
    fn keyframe_with_short_picture_id() {
        let payload = [
            0x90, 0x80, 0x11, 0x10, 2, 0, 0x9d, 0x01, 0x2a, 0x80, 0x42, 0xe0, 0x01,
        ];
        let descriptor = Vp8::parse(&payload).unwrap();
        assert_eq!(descriptor.descriptor_len(), 3);
        assert_eq!(descriptor.picture_id, Some(PictureId::Short(0x11)));
        assert_eq!((descriptor.temporal, descriptor.tl0_pic_idx), (None, None));
        assert!(descriptor.is_keyframe(&payload));
        assert_eq!(descriptor.keyframe_size(&payload), Some((640, 480)));
        assert_eq!(descriptor.keyframe_size(&payload[..12]), None);
    }

    #[test]
    fn only_the_first_packet_of_a_keyframe_counts() {
        for payload in [[0x00, 0x10], [0x11, 0x10], [0x10, 0x11]] {
            assert!(
                !Vp8::parse(&payload).unwrap().is_keyframe(&payload),
                "{payload:?}"
            );
        }
        assert!(!Vp8::parse(&[0x10]).unwrap().is_keyframe(&[0x10]));
    }

    #[test]
    fn all_fields() {
        let mut payload = [0xb0, 0xf0, 0x92, 0x34, 0x56, 0b1010_0111, 0x01];
        let descriptor = Vp8::parse(&payload).unwrap();
        assert!(descriptor.non_reference && descriptor.starts_frame() && descriptor.layer_sync);
        assert_eq!(descriptor.picture_id, Some(PictureId::Long(0x1234)));
        assert_eq!(descriptor.tl0_pic_idx, Some(0x56));
        assert_eq!(
            (descriptor.temporal, descriptor.key_idx),
            (Some(2), Some(7))
        );
        assert_eq!(descriptor.descriptor_len(), 6);
        descriptor.set_picture_id(&mut payload, 0xffff);
        descriptor.set_tl0_pic_idx(&mut payload, 0xaa);
        assert_eq!(payload, [0xb0, 0xf0, 0xff, 0xff, 0xaa, 0b1010_0111, 0x01]);
        for len in 0..5 {
            assert!(Vp8::parse(&payload[..len]).is_err());
        }
    }

    #[test]
    fn key_index_without_layer() {
        let descriptor = Vp8::parse(&[0x80, 0x10, 0xff]).unwrap();
        assert_eq!((descriptor.temporal, descriptor.key_idx), (None, Some(31)));
        assert!(!descriptor.layer_sync);
    }

    proptest! {
        #[test]
        fn rewriting_keeps_everything_else(
            payload in proptest::collection::vec(any::<u8>(), 0..12), id: u16, idx: u8,
        ) {
            let Ok(before) = Vp8::parse(&payload) else { return Ok(()) };
            let mut edited = payload.clone();
            before.set_picture_id(&mut edited, id);
            before.set_tl0_pic_idx(&mut edited, idx);
            let after = Vp8::parse(&edited).unwrap();
            let picture_id = before.picture_id.map(|old| id & old.mask());
            prop_assert_eq!(after.picture_id.map(PictureId::value), picture_id);
            prop_assert_eq!(after.tl0_pic_idx, before.tl0_pic_idx.map(|_| idx));
            let (picture_id, tl0_pic_idx) = (before.picture_id, before.tl0_pic_idx);
            prop_assert_eq!(Vp8 { picture_id, tl0_pic_idx, ..after }, before);
            prop_assert_eq!(&edited[before.descriptor_len()..], &payload[before.descriptor_len()..]);
            let _ = before.keyframe_size(&payload);
        }
    }
}
