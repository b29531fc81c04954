//! H.265 payloads (RFC 7798 section 4.4): the NAL units that start in them.

use std::ops::RangeInclusive;

use super::h264::aggregated_units;

/// Slices of pictures from which decoding can start: BLA, IDR, CRA (ITU-T H.265 table 7-1).
pub(crate) const RANDOM_ACCESS: RangeInclusive<u8> = 16..=21;
pub(crate) const VIDEO_PARAMETER_SET: u8 = 32;
pub(crate) const SEQUENCE_PARAMETER_SET: u8 = 33;
pub(crate) const AGGREGATION: u8 = 48;
pub(crate) const FRAGMENT: u8 = 49;
const PACI: u8 = 50;

/// Returns the types of the NAL units that start in `payload`: one for a single unit or a first
/// fragment, several for an aggregation, none for a later fragment.
///
/// Decoding order numbers (`sprop-max-don-diff` above 0) are not supported: no browser sends them.
pub fn nal_types(payload: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let (head, rest) = match payload.split_first_chunk::<2>() {
        Some((&[first, _], rest)) => (Some(nal_type(first)), rest),
        None => (None, payload),
    };
    let (single, aggregated) = match head {
        Some(AGGREGATION) => (None, rest),
        Some(FRAGMENT) => (
            rest.first()
                .filter(|fu| *fu & 0x80 != 0)
                .map(|fu| fu & 0x3f),
            &[][..],
        ),
        Some(PACI..) | None => (None, &[][..]),
        single => (single, &[][..]),
    };
    let aggregated = aggregated_units(aggregated).filter_map(|unit| unit.first().copied());
    single.into_iter().chain(aggregated.map(nal_type))
}

/// Returns whether `payload` starts a random access picture, or a parameter set that precedes one.
pub fn is_keyframe(payload: &[u8]) -> bool {
    nal_types(payload).any(|kind| RANDOM_ACCESS.contains(&kind) || is_parameter_set(kind))
}

/// Returns whether `payload` has a video or sequence parameter set, so that a decoder without any
/// state can start with it.
pub fn has_parameter_sets(payload: &[u8]) -> bool {
    nal_types(payload).any(is_parameter_set)
}

pub(crate) fn nal_type(first_byte: u8) -> u8 {
    (first_byte >> 1) & 0x3f
}

fn is_parameter_set(kind: u8) -> bool {
    kind == VIDEO_PARAMETER_SET || kind == SEQUENCE_PARAMETER_SET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_units() {
        for kind in [16, 19, 20, 21, 32, 33] {
            assert!(is_keyframe(&[kind << 1, 1, 0]), "{kind}");
        }
        for kind in [0, 1, 9, 22, 34, 35, 39, 50, 63] {
            assert!(!is_keyframe(&[kind << 1, 1, 0]), "{kind}");
        }
        assert!(has_parameter_sets(&[0x40, 1]) && !has_parameter_sets(&[0x26, 1]));
        assert!(!is_keyframe(&[0x26]));
    }

    #[test]
    fn aggregation() {
        let payload = [0x60, 1, 0, 3, 0x40, 1, 0, 0, 3, 0x42, 1, 0, 0, 2, 0x44, 1];
        assert_eq!(nal_types(&payload).collect::<Vec<_>>(), [32, 33, 34]);
        assert!(is_keyframe(&payload));
        assert_eq!(nal_types(&[0x60, 1, 0, 9, 0x40]).count(), 0);
    }

    #[test]
    fn only_the_first_fragment_counts() {
        assert!(is_keyframe(&[0x62, 1, 0x80 | 19, 0]));
        assert!(!is_keyframe(&[0x62, 1, 19, 0]));
        assert!(!is_keyframe(&[0x62, 1, 0x80 | 1, 0]));
        assert!(!is_keyframe(&[0x62, 1]));
    }
}
