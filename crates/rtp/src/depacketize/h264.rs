//! H.264 (RFC 6184, packetization modes 0 and 1): single NAL units, STAP-A and FU-A. Packets with
//! decoding order numbers are not accepted.

use super::nal::{Units, aggregated};
use super::{Facts, Form};
use crate::codec::h264::{FU_A, IDR, SEQUENCE_PARAMETER_SET, STAP_A, slice_is_intra};

const SLICE: u8 = 1;
/// The first of three partitions of a slice.
const PARTITION_A: u8 = 2;
const SUPPLEMENTAL: u8 = 6;
const ACCESS_UNIT_DELIMITER: u8 = 9;
const FILLER: u8 = 12;
const REFERENCE_BITS: u8 = 0x60;

#[derive(Debug, Default)]
pub(super) struct H264Form {
    units: Units,
    /// Whether the stream has had parameter sets, so that keyframes bring theirs.
    has_sets: bool,
    /// Whether packets before the frame are missing.
    after_gap: bool,
    facts: UnitFacts,
}

/// The properties of a frame, from its units.
#[derive(Debug, Default)]
struct UnitFacts {
    has_slice: bool,
    has_idr: bool,
    has_sequence: bool,
    /// Whether the first slice is intra.
    intra: bool,
    /// Whether other pictures refer to a unit.
    refers: bool,
}

impl Form for H264Form {
    fn begins(&mut self, payload: &[u8], after_gap: bool) -> bool {
        self.after_gap = after_gap;
        match first_unit(payload) {
            // Without a gap, nothing can be missing before it.
            Some(_) if !after_gap => true,
            Some((SLICE | PARTITION_A | IDR, body)) => is_first_slice(body),
            Some((kind, _)) => matches!(
                kind,
                SUPPLEMENTAL | SEQUENCE_PARAMETER_SET | ACCESS_UNIT_DELIMITER
            ),
            None => false,
        }
    }

    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let (&head, rest) = payload.split_first()?;
        match head & 0x1f {
            1..=23 => self.push(payload, data),
            STAP_A => aggregated(rest).try_for_each(|unit| match unit? {
                [] => Some(()),
                unit => self.push(unit, data),
            }),
            FU_A => {
                let (&fu, part) = rest.split_first()?;
                if fu & 0x80 != 0 {
                    let header = head & 0xe0 | fu & 0x1f;
                    self.facts.note(header, part);
                    self.units.begin(&[header], data)?;
                }
                self.units.go_on(part, fu & 0x40 != 0, data)
            }
            _ => None,
        }
    }

    fn may_end(&self) -> bool {
        self.facts.has_slice
    }

    fn finish(&mut self, _data: &mut Vec<u8>) -> Option<Facts> {
        let facts = &self.facts;
        self.has_sets |= facts.has_sequence;
        let keyframe = facts.has_idr || facts.has_sequence && facts.intra;
        // Its parameter sets were in the missing packets.
        let lacks_sets = facts.has_idr && self.has_sets && !facts.has_sequence && self.after_gap;
        let whole = facts.has_slice && !self.units.is_open() && !lacks_sets;
        whole.then_some(Facts {
            keyframe,
            droppable: !facts.refers,
        })
    }

    fn droppable(&self) -> bool {
        self.facts.has_slice && !self.facts.refers
    }

    fn clear(&mut self) {
        self.units = Units::default();
        self.facts = UnitFacts::default();
    }
}

impl H264Form {
    fn push(&mut self, unit: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let (&header, body) = unit.split_first()?;
        match header & 0x1f {
            ACCESS_UNIT_DELIMITER | FILLER => return (!self.units.is_open()).then_some(()),
            STAP_A.. => return None,
            _ => {}
        }
        self.facts.note(header, body);
        self.units.push(unit, data)
    }
}

impl UnitFacts {
    /// Takes a unit: its header, and the available part of its body.
    fn note(&mut self, header: u8, body: &[u8]) {
        let kind = header & 0x1f;
        self.has_sequence |= kind == SEQUENCE_PARAMETER_SET;
        if (SLICE..=IDR).contains(&kind) {
            if !self.has_slice {
                self.intra = slice_is_intra(body).unwrap_or(false);
            }
            self.has_slice = true;
            self.has_idr |= kind == IDR;
            self.refers |= header & REFERENCE_BITS != 0;
        }
    }
}

/// Returns the type of the first unit that starts in the payload, and the available part of its
/// body.
fn first_unit(payload: &[u8]) -> Option<(u8, &[u8])> {
    let (&head, rest) = payload.split_first()?;
    match head & 0x1f {
        STAP_A => {
            let mut units = aggregated(rest).flatten();
            let (header, body) = units.find_map(|unit| unit.split_first())?;
            Some((header & 0x1f, body))
        }
        FU_A => match rest {
            [fu, body @ ..] if fu & 0x80 != 0 => Some((fu & 0x1f, body)),
            _ => None,
        },
        kind => Some((kind, rest)),
    }
}

/// Returns whether a slice starts a picture: `first_mb_in_slice` is 0.
fn is_first_slice(body: &[u8]) -> bool {
    body.first().is_some_and(|byte| byte & 0x80 != 0)
}
