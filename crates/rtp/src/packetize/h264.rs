//! H.264 (RFC 6184, packetization mode 1): single NAL units, STAP-A for parameter sets, FU-A for
//! long units.

use super::{equal_parts, with_ends};
use crate::RtpError;

const IDR: u8 = 5;
const SEQUENCE_PARAMETER_SET: u8 = 7;
const ACCESS_UNIT_DELIMITER: u8 = 9;
const FILLER: u8 = 12;
const STAP_A: u8 = 24;
const FU_A: u8 = 28;
/// The nal_ref_idc bits of a NAL unit's header.
const REFERENCE_BITS: u8 = 0x60;

/// The form of NAL units in frames, and the parameter sets that are not in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterSets {
    /// The bytes of a NAL unit's length: 1, 2 or 4.
    pub length_size: u8,
    /// Video (of H.265), sequence and picture parameter sets, in this order. They are sent before
    /// each keyframe without any.
    pub units: Vec<Vec<u8>>,
}

pub(super) fn packetize(
    access_unit: &[u8],
    sets: &ParameterSets,
    keyframe: bool,
    max: usize,
    payload: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8], bool),
) -> Result<(), RtpError> {
    let kinds = || units(access_unit, sets.length_size).filter_map(Result::ok);
    let bare = !kinds().any(|unit| kind(unit) == SEQUENCE_PARAMETER_SET);
    if bare && (keyframe || kinds().any(|unit| kind(unit) == IDR)) {
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

/// Emits one STAP-A with all `sets`, or each alone if they do not fit.
fn aggregate(
    sets: &[Vec<u8>],
    max: usize,
    payload: &mut Vec<u8>,
    emit: &mut impl FnMut(&[u8], bool),
) {
    let len: usize = sets.iter().map(|set| 2 + set.len()).sum();
    if sets.len() > 1 && len < max {
        let references = sets.iter().filter_map(|set| set.first());
        let highest = references.map(|byte| byte & REFERENCE_BITS).max();
        payload.clear();
        payload.push(STAP_A | highest.unwrap_or(0));
        for set in sets {
            // It is shorter than `max`, which is shorter than a datagram.
            payload.extend_from_slice(&(set.len() as u16).to_be_bytes());
            payload.extend_from_slice(set);
        }
        emit(payload, false);
        return;
    }
    for set in sets.iter().filter(|set| !set.is_empty()) {
        if set.len() <= max {
            emit(set, false);
        } else {
            fragment(set, false, max, payload, emit);
        }
    }
}

/// Emits the FU-A packets of a unit. `ends` marks the last one of its access unit.
fn fragment(
    unit: &[u8],
    ends: bool,
    max: usize,
    payload: &mut Vec<u8>,
    emit: &mut impl FnMut(&[u8], bool),
) {
    let Some((&header, body)) = unit.split_first() else {
        return;
    };
    with_ends(equal_parts(body, max - 2), |part, first, last| {
        let ends_of_unit = if first { 0x80 } else { 0 } | if last { 0x40 } else { 0 };
        payload.clear();
        payload.extend_from_slice(&[(header & 0xe0) | FU_A, ends_of_unit | (header & 0x1f)]);
        payload.extend_from_slice(part);
        emit(payload, ends && last);
    });
}

/// Returns whether a unit has no content, or none that RTP lacks.
fn is_superfluous(unit: &[u8]) -> bool {
    unit.is_empty() || matches!(kind(unit), ACCESS_UNIT_DELIMITER | FILLER)
}

fn kind(unit: &[u8]) -> u8 {
    unit.first().map_or(0, |byte| byte & 0x1f)
}

/// Returns the units of an access unit. A length beyond the end is an error, and the last item.
pub(super) fn units(
    access_unit: &[u8],
    length_size: u8,
) -> impl Iterator<Item = Result<&[u8], RtpError>> {
    let mut rest = access_unit;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let actual = rest.len();
        let split = rest.split_at_checked(usize::from(length_size));
        let unit = split.and_then(|(length, after)| {
            let length = length
                .iter()
                .try_fold(0_usize, |sum, byte| {
                    Some(sum.checked_mul(256)? + usize::from(*byte))
                })
                .unwrap_or(usize::MAX);
            after.split_at_checked(length)
        });
        match unit {
            Some((unit, after)) if length_size > 0 => {
                rest = after;
                Some(Ok(unit))
            }
            _ => {
                rest = &[];
                let expected = actual + 1;
                Some(Err(RtpError::Truncated { expected, actual }))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;
    use crate::codec::h264;
    use crate::packetize::{Packetizer, PayloadFormat};

    fn packetizer() -> Packetizer {
        Packetizer::new(PayloadFormat::H264(ParameterSets {
            length_size: 4,
            units: vec![vec![0x67, 0x42, 0xc0, 0x1f], vec![0x68, 0xce, 0x3c]],
        }))
    }

    fn access_unit(units: &[&[u8]]) -> Vec<u8> {
        let with_length = |unit: &&[u8]| [&(unit.len() as u32).to_be_bytes(), *unit].concat();
        units.iter().flat_map(with_length).collect()
    }

    fn payloads(packetizer: &mut Packetizer, unit: &[u8], keyframe: bool) -> Vec<(Vec<u8>, bool)> {
        let mut out = Vec::new();
        let emit = |payload: &[u8], last| out.push((payload.to_vec(), last));
        packetizer.packetize(unit, keyframe, emit).unwrap();
        out
    }

    #[test]
    fn a_keyframe_begins_with_its_parameter_sets() {
        let idr = [[0x65].as_slice(), &[7; 3_000]].concat();
        let unit = access_unit(&[&[9, 0xf0], &idr]);
        let out = payloads(&mut packetizer(), &unit, true);
        assert_eq!(h264::nal_types(&out[0].0).collect::<Vec<_>>(), [7, 8]);
        assert_eq!(out[0].0[0], 0x78);
        assert!(h264::is_keyframe(&out[1].0) && !h264::is_keyframe(&out[2].0));
        let body: Vec<u8> = out[1..]
            .iter()
            .flat_map(|(payload, _)| payload[2..].to_vec())
            .collect();
        assert_eq!(body, &idr[1..]);
        let marks: Vec<_> = out.iter().map(|(_, last)| *last).collect();
        assert_eq!(marks, [false, false, false, true]);
        assert_eq!(
            (out[1].0[1], out[2].0[1], out[3].0[1]),
            (0x85, 0x05, 0x45),
            "start, middle, end"
        );
    }

    #[test]
    fn parameter_sets_in_the_stream_are_enough() {
        let unit = access_unit(&[&[0x67, 1], &[0x68, 2], &[0x65, 3]]);
        let out = payloads(&mut packetizer(), &unit, true);
        assert_eq!(out.len(), 3);
        assert_eq!(out[2], (vec![0x65, 3], true));
    }

    #[test]
    fn other_frames_are_sent_as_they_are() {
        let out = payloads(
            &mut packetizer(),
            &access_unit(&[&[0x41, 1], &[12, 0xff]]),
            false,
        );
        assert_eq!(out, [(vec![0x41, 1], true)]);
    }

    #[test]
    fn lengths_that_reach_too_far() {
        for unit in [&[0, 0, 0, 9, 0x41][..], &[0, 0], &[255, 255, 255, 255, 1]] {
            assert!(packetizer().packetize(unit, false, |_, _| {}).is_err());
        }
    }
}
