//! AV1 (RTP Payload Format For AV1, section 4): OBUs get their sizes back.

use super::{Facts, Form, MAX_FRAME};
use crate::codec::Av1;
use crate::codec::av1::{read_leb128, write_leb128};

const SEQUENCE_HEADER: u8 = 1;
const TEMPORAL_DELIMITER: u8 = 2;
const FRAME_HEADER: u8 = 3;
const METADATA: u8 = 5;
const FRAME: u8 = 6;
const TILE_LIST: u8 = 8;
const PADDING: u8 = 15;
const HAS_SIZE: u8 = 0x02;
const HAS_EXTENSION: u8 = 0x04;
const SPATIAL_BITS: u8 = 0x18;

#[derive(Debug, Default)]
pub(super) struct Av1Form {
    /// The OBU whose end has not arrived.
    obu: Vec<u8>,
    is_open: bool,
    has_sequence: bool,
    /// Whether the first frame is a shown keyframe, once it has arrived.
    keyframe: Option<bool>,
}

impl Form for Av1Form {
    /// Nothing marks the first packet of a temporal unit. After a gap, the first OBU has to be one
    /// that can come first, of the lowest spatial layer. For a keyframe, which follows a sequence
    /// header, this is certain.
    fn begins(&mut self, payload: &[u8], after_gap: bool) -> bool {
        let Ok(header) = Av1::parse(payload) else {
            return false;
        };
        let can_be_first = |obu: &[u8]| match *obu {
            [first, extension, ..] if first & HAS_EXTENSION != 0 => {
                extension & SPATIAL_BITS == 0 && comes_first(first)
            }
            [first, ..] => comes_first(first),
            [] => false,
        };
        let first = header.elements(payload).find(|obu| !obu.is_empty());
        !header.continues && (!after_gap || first.is_some_and(can_be_first))
    }

    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let header = Av1::parse(payload).ok()?;
        if header.continues != self.is_open {
            return None;
        }
        let mut rest = payload.get(1..)?;
        let mut index = 0;
        while !rest.is_empty() {
            // A packet without a count may have any number of empty OBUs.
            index = u8::saturating_add(index, 1);
            let len = match header.elements {
                count if count > 0 && index == count => rest.len(),
                _ => usize::try_from(read_leb128(&mut rest)?).ok()?,
            };
            self.obu.extend_from_slice(rest.split_off(..len)?);
            if self.obu.len() > MAX_FRAME {
                return None;
            }
            self.is_open = rest.is_empty() && header.to_be_continued;
            if !self.is_open {
                self.push_obu(data)?;
            }
        }
        (self.is_open == header.to_be_continued && index >= header.elements).then_some(())
    }

    fn finish(&mut self, _data: &mut Vec<u8>) -> Option<Facts> {
        (!self.is_open).then_some(Facts {
            keyframe: self.has_sequence && self.keyframe == Some(true),
            droppable: false,
        })
    }

    fn droppable(&self) -> bool {
        false
    }

    fn clear(&mut self) {
        self.obu.clear();
        *self = Self {
            obu: std::mem::take(&mut self.obu),
            ..Self::default()
        };
    }
}

impl Av1Form {
    /// Appends the complete OBU with its size.
    fn push_obu(&mut self, data: &mut Vec<u8>) -> Option<()> {
        let mut rest = self.obu.as_slice();
        if rest.is_empty() {
            return Some(());
        }
        let first = *rest.split_off_first()?;
        let extension = match first & HAS_EXTENSION != 0 {
            true => Some(*rest.split_off_first()?),
            false => None,
        };
        let len = match first & HAS_SIZE != 0 {
            true => usize::try_from(read_leb128(&mut rest)?).ok()?,
            false => rest.len(),
        };
        let body = rest.get(..len)?;
        let kind = first >> 3 & 0x0f;
        match kind {
            SEQUENCE_HEADER => self.has_sequence = true,
            FRAME_HEADER | FRAME => {
                // The frame is not an existing one, its type is key (0), and it is shown.
                let start = body.first().copied().unwrap_or(0xff);
                self.keyframe.get_or_insert(start & 0xf0 == 0x10);
            }
            _ => {}
        }
        if !matches!(kind, TEMPORAL_DELIMITER | TILE_LIST | PADDING) {
            data.push(first | HAS_SIZE);
            data.extend(extension);
            write_leb128(len, data);
            data.extend_from_slice(body);
        }
        self.obu.clear();
        Some(())
    }
}

/// Returns whether an OBU with this header can start a temporal unit.
fn comes_first(header: u8) -> bool {
    matches!(
        header >> 3 & 0x0f,
        SEQUENCE_HEADER | TEMPORAL_DELIMITER | FRAME_HEADER | METADATA | FRAME
    )
}
