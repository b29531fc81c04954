//! H.265 (RFC 7798): single NAL units, an aggregation packet for parameter sets, fragments for long
//! units.

use super::h264::{ParameterSets, units};
use super::{equal_parts, with_ends};
use crate::RtpError;
use crate::codec::h265::{AGGREGATION, FRAGMENT, RANDOM_ACCESS, SEQUENCE_PARAMETER_SET, nal_type};

const ACCESS_UNIT_DELIMITER: u8 = 35;
const FILLER: u8 = 38;
/// The bytes of a NAL unit's header, and of a payload's.
const HEADER_LEN: usize = 2;
/// The temporal id (plus 1) in a header's second byte. The bits above it are the layer.
const TEMPORAL_BITS: u8 = 0x07;

pub(super) fn packetize(
    access_unit: &[u8],
    sets: &ParameterSets,
    keyframe: bool,
    max: usize,
    payload: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8], bool),
) -> Result<(), RtpError> {
    let kinds = || {
        let units = units(access_unit, sets.length_size).filter_map(Result::ok);
        units.filter_map(|unit| unit.first().copied().map(nal_type))
    };
    let bare = !kinds().any(|kind| kind == SEQUENCE_PARAMETER_SET);
    if bare && (keyframe || kinds().any(|kind| RANDOM_ACCESS.contains(&kind))) {
        aggregate(&sets.units, max, payload, &mut emit);
    }
    let mut units = units(access_unit, sets.length_size)
        .filter(|unit| !matches!(unit, Ok(unit) if is_superfluous(unit)))
        .peekable();
    while let Some(unit) = units.next() {
        let unit = unit?;
        let ends = units.peek().is_none();
        if unit.len() <= max {
            emit(unit, ends);
        } else {
            fragment(unit, ends, max, payload, &mut emit);
        }
    }
    Ok(())
}

/// Emits one aggregation packet with all `sets`, or each alone if they do not fit.
fn aggregate(
    sets: &[Vec<u8>],
    max: usize,
    payload: &mut Vec<u8>,
    emit: &mut impl FnMut(&[u8], bool),
) {
    let sets = sets.iter().filter(|set| set.len() >= HEADER_LEN);
    let len: usize = sets.clone().map(|set| 2 + set.len()).sum();
    if sets.clone().count() > 1 && HEADER_LEN + len <= max {
        // The lowest layer and temporal id of its units (section 4.4.2).
        let lowest = sets.clone().filter_map(|set| set.get(1)).min();
        payload.clear();
        payload.extend_from_slice(&[
            AGGREGATION << 1,
            lowest.map_or(1, |byte| byte & TEMPORAL_BITS),
        ]);
        for set in sets {
            // It is shorter than `max`, which is shorter than a datagram.
            payload.extend_from_slice(&(set.len() as u16).to_be_bytes());
            payload.extend_from_slice(set);
        }
        emit(payload, false);
        return;
    }
    for set in sets {
        if set.len() <= max {
            emit(set, false);
        } else {
            fragment(set, false, max, payload, emit);
        }
    }
}

/// Emits the fragments of a unit. `ends` marks the last one of its access unit (section 4.4.3).
fn fragment(
    unit: &[u8],
    ends: bool,
    max: usize,
    payload: &mut Vec<u8>,
    emit: &mut impl FnMut(&[u8], bool),
) {
    let Some((&[first, second], body)) = unit.split_first_chunk() else {
        return;
    };
    with_ends(
        equal_parts(body, max - HEADER_LEN - 1),
        |part, begins, last| {
            let ends_of_unit = if begins { 0x80 } else { 0 } | if last { 0x40 } else { 0 };
            payload.clear();
            payload.extend_from_slice(&[
                first & 0x81 | FRAGMENT << 1,
                second,
                ends_of_unit | nal_type(first),
            ]);
            payload.extend_from_slice(part);
            emit(payload, ends && last);
        },
    );
}

/// Returns whether a unit has no content, or none that RTP lacks.
fn is_superfluous(unit: &[u8]) -> bool {
    match unit {
        [first, _, ..] => matches!(nal_type(*first), ACCESS_UNIT_DELIMITER | FILLER),
        _ => true,
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
    use crate::codec::h265;
    use crate::packetize::{Packetizer, PayloadFormat};

    fn payloads(unit: &[u8], keyframe: bool) -> Vec<(Vec<u8>, bool)> {
        let mut out = Vec::new();
        let sets = ParameterSets {
            length_size: 4,
            units: vec![
                vec![0x40, 1, 0x0c],
                vec![0x42, 1, 0x01],
                vec![0x44, 1, 0xc1],
            ],
        };
        Packetizer::new(PayloadFormat::H265(sets))
            .packetize(unit, keyframe, |payload, last| {
                out.push((payload.to_vec(), last));
            })
            .unwrap();
        out
    }

    fn access_unit(units: &[&[u8]]) -> Vec<u8> {
        let with_length = |unit: &&[u8]| [&(unit.len() as u32).to_be_bytes(), *unit].concat();
        units.iter().flat_map(with_length).collect()
    }

    #[test]
    fn a_keyframe_begins_with_its_parameter_sets() {
        let idr = [[0x26, 1].as_slice(), &[7; 3_000]].concat();
        let unit = access_unit(&[&[0x46, 1, 0x50], &idr]);
        let out = payloads(&unit, true);
        assert_eq!(h265::nal_types(&out[0].0).collect::<Vec<_>>(), [32, 33, 34]);
        assert_eq!(out[0].0[..2], [0x60, 1]);
        assert!(h265::is_keyframe(&out[1].0) && !h265::is_keyframe(&out[2].0));
        let body: Vec<u8> = out[1..]
            .iter()
            .flat_map(|(payload, _)| payload[3..].to_vec())
            .collect();
        assert_eq!(body, &idr[2..]);
        let marks: Vec<_> = out.iter().map(|(_, last)| *last).collect();
        assert_eq!(marks, [false, false, false, true]);
        let ends: Vec<_> = out[1..].iter().map(|(payload, _)| payload[2]).collect();
        assert_eq!(ends, [0x80 | 19, 19, 0x40 | 19]);
    }

    #[test]
    fn parameter_sets_in_the_stream_are_enough() {
        let unit = access_unit(&[&[0x42, 1, 9], &[0x26, 1, 3]]);
        let out = payloads(&unit, true);
        assert_eq!(out, [(vec![0x42, 1, 9], false), (vec![0x26, 1, 3], true)]);
    }
}
