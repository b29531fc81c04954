//! VP9 (RFC 9628): the frames of a picture's layers. Several frames are followed by a superframe
//! index (VP9 bitstream specification, annex B).

use super::{Facts, Form};
use crate::codec::Vp9;

/// The most frames of an index.
const MOST_FRAMES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Vp9Form {
    /// The end of each frame. The last one may be open.
    ends: [usize; MOST_FRAMES],
    frames: usize,
    is_open: bool,
    keyframe: bool,
    refers: bool,
}

impl Form for Vp9Form {
    fn begins(&mut self, payload: &[u8], _after_gap: bool) -> bool {
        Vp9::parse(payload).is_ok_and(|descriptor| {
            let above = descriptor.layer.is_some_and(|layer| layer.inter_layer);
            descriptor.starts_frame && !above
        })
    }

    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let descriptor = Vp9::parse(payload).ok()?;
        let bytes = payload.get(descriptor.descriptor_len()..)?;
        if descriptor.starts_frame == self.is_open {
            return None;
        }
        if descriptor.starts_frame {
            if self.frames == 0 {
                self.keyframe = descriptor.is_keyframe();
            }
            self.frames += 1;
            self.refers |= !refreshes_nothing(bytes);
        }
        data.extend_from_slice(bytes);
        *self.ends.get_mut(self.frames.checked_sub(1)?)? = data.len();
        self.is_open = !descriptor.ends_frame;
        Some(())
    }

    fn finish(&mut self, data: &mut Vec<u8>) -> Option<Facts> {
        if self.is_open {
            return None;
        }
        let droppable = self.droppable() && !is_superframe(data);
        if self.frames > 1 {
            append_index(self.ends.get(..self.frames)?, data)?;
        }
        Some(Facts {
            keyframe: self.keyframe,
            droppable,
        })
    }

    fn droppable(&self) -> bool {
        self.frames > 0 && !self.refers
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Appends the index of frames that end at `ends`. Returns `None` if a frame is empty.
fn append_index(ends: &[usize], data: &mut Vec<u8>) -> Option<()> {
    /// The bytes of a size: four hold any accepted frame.
    const SIZE_LEN: u8 = 4;
    let marker = 0xc0 | (SIZE_LEN - 1) << 3 | (ends.len() as u8).wrapping_sub(1) & 7;
    data.push(marker);
    let mut begin = 0;
    for end in ends {
        let size = end.checked_sub(begin).filter(|size| *size > 0)?;
        data.extend_from_slice(&(size as u32).to_le_bytes());
        begin = *end;
    }
    data.push(marker);
    Some(())
}

/// Returns whether the frame ends with an index, so that it consists of several.
fn is_superframe(frame: &[u8]) -> bool {
    frame.last().is_some_and(|marker| marker & 0xe0 == 0xc0)
}

/// Returns whether the frame is stored in no reference slot (section 6.2 of the bitstream
/// specification).
fn refreshes_nothing(frame: &[u8]) -> bool {
    let read = |frame: &[u8]| {
        let start = u32::from_be_bytes(*frame.first_chunk()?);
        let mut left = 32;
        let mut bits = move |count: u32| {
            left -= count;
            start >> left & ((1 << count) - 1)
        };
        if bits(2) != 2 {
            return None;
        }
        let profile = bits(1) | bits(1) << 1;
        if profile == 3 {
            bits(1);
        }
        if bits(1) == 1 {
            // It shows an existing frame again.
            return Some(true);
        }
        let is_inter = bits(1) == 1;
        let is_shown = bits(1) == 1;
        let resilient = bits(1) == 1;
        let intra_only = !is_shown && bits(1) == 1;
        if !is_inter || intra_only {
            return Some(false);
        }
        if !resilient {
            bits(2);
        }
        Some(bits(8) == 0)
    };
    read(frame).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_nothing_refers_to() {
        // Marker 2, profile 0, no existing frame, inter, shown, not resilient, context 0, refresh
        // flags.
        let frame = |refresh: u8| {
            let start = 0b10_0001_1000_u32 << 22 | u32::from(refresh) << 14;
            start.to_be_bytes()
        };
        assert!(refreshes_nothing(&frame(0)));
        assert!(!refreshes_nothing(&frame(1)));
        assert!(!refreshes_nothing(&frame(0x80)));
        // A keyframe, an intra-only frame that is not shown, and a truncated one.
        assert!(!refreshes_nothing(&[0x82, 0x49, 0x83, 0x42]));
        assert!(!refreshes_nothing(&[0b1000_0100, 0b1000_0000, 0, 0]));
        assert!(!refreshes_nothing(&[0x86, 0]));
    }
}
