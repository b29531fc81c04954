//! H.265 (RFC 7798): single NAL units, aggregation packets and fragments, without decoding order
//! numbers, which no WebRTC sender uses.

use super::nal::{Units, aggregated};
use super::{Facts, Form};
use crate::codec::h265::{
    AGGREGATION, FRAGMENT, RANDOM_ACCESS, SEQUENCE_PARAMETER_SET, VIDEO_PARAMETER_SET, nal_type,
};

const ACCESS_UNIT_DELIMITER: u8 = 35;
const FILLER: u8 = 38;
/// Supplemental enhancement information before a picture.
const SUPPLEMENTAL: u8 = 39;

#[derive(Debug, Default)]
pub(super) struct H265Form {
    units: Units,
    /// Whether the stream has had parameter sets, so that keyframes bring theirs.
    has_sets: bool,
    /// Whether packets before the frame are missing.
    after_gap: bool,
    has_slice: bool,
    has_sequence: bool,
    keyframe: bool,
}

impl Form for H265Form {
    fn begins(&mut self, payload: &[u8], after_gap: bool) -> bool {
        self.after_gap = after_gap;
        match first_unit(payload) {
            // Without a gap, nothing can be missing before it.
            Some(_) if !after_gap => true,
            Some((kind, body)) if is_slice(kind) => is_first_slice(body),
            Some((kind, _)) => matches!(
                kind,
                VIDEO_PARAMETER_SET | ACCESS_UNIT_DELIMITER | SUPPLEMENTAL
            ),
            None => false,
        }
    }

    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let (&[first, second], rest) = payload.split_first_chunk()?;
        match nal_type(first) {
            AGGREGATION => aggregated(rest).try_for_each(|unit| match unit? {
                [] => Some(()),
                unit => self.push(unit, data),
            }),
            FRAGMENT => {
                let (&fu, part) = rest.split_first()?;
                if fu & 0x80 != 0 {
                    let kind = fu & 0x3f;
                    self.note(kind);
                    self.units
                        .begin(&[first & 0x81 | kind << 1, second], data)?;
                }
                self.units.go_on(part, fu & 0x40 != 0, data)
            }
            _ => self.push(payload, data),
        }
    }

    fn may_end(&self) -> bool {
        self.has_slice
    }

    fn finish(&mut self, _data: &mut Vec<u8>) -> Option<Facts> {
        self.has_sets |= self.has_sequence;
        // Its parameter sets were in the missing packets.
        let lacks_sets = self.keyframe && self.has_sets && !self.has_sequence && self.after_gap;
        let whole = self.has_slice && !self.units.is_open() && !lacks_sets;
        whole.then_some(Facts {
            keyframe: self.keyframe,
            droppable: false,
        })
    }

    /// Higher temporal layers may refer to pictures to which their own layer does not.
    fn droppable(&self) -> bool {
        false
    }

    fn clear(&mut self) {
        *self = Self {
            has_sets: self.has_sets,
            ..Self::default()
        };
    }
}

impl H265Form {
    fn push(&mut self, unit: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let &[first, _] = unit.first_chunk()?;
        match nal_type(first) {
            ACCESS_UNIT_DELIMITER | FILLER => return (!self.units.is_open()).then_some(()),
            AGGREGATION.. => return None,
            kind => self.note(kind),
        }
        self.units.push(unit, data)
    }

    fn note(&mut self, kind: u8) {
        self.has_sequence |= kind == SEQUENCE_PARAMETER_SET;
        self.has_slice |= is_slice(kind);
        self.keyframe |= RANDOM_ACCESS.contains(&kind);
    }
}

/// Returns the type of the first unit that starts in the payload, and the available part of its
/// body.
fn first_unit(payload: &[u8]) -> Option<(u8, &[u8])> {
    let (&[first, _], rest) = payload.split_first_chunk()?;
    match nal_type(first) {
        AGGREGATION => {
            let mut units = aggregated(rest).flatten();
            let (&[first, _], body) = units.find_map(|unit| unit.split_first_chunk())?;
            Some((nal_type(first), body))
        }
        FRAGMENT => match rest {
            [fu, body @ ..] if fu & 0x80 != 0 => Some((fu & 0x3f, body)),
            _ => None,
        },
        kind => Some((kind, rest)),
    }
}

fn is_slice(kind: u8) -> bool {
    kind < VIDEO_PARAMETER_SET
}

/// Returns whether a slice segment starts a picture: `first_slice_segment_in_pic_flag`.
fn is_first_slice(body: &[u8]) -> bool {
    body.first().is_some_and(|byte| byte & 0x80 != 0)
}
