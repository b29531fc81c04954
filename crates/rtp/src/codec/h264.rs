//! H.264 payloads (RFC 6184 section 5): the NAL units that start in them.

/// A slice of a picture from which decoding can start.
pub(crate) const IDR: u8 = 5;
/// A slice of another picture.
const SLICE: u8 = 1;
pub(crate) const SEQUENCE_PARAMETER_SET: u8 = 7;
pub(crate) const STAP_A: u8 = 24;
pub(crate) const FU_A: u8 = 28;
const FU_B: u8 = 29;

/// Returns the types of the NAL units that start in `payload`: one for a single unit or a first
/// fragment, several for an aggregation (STAP-A), none for a later fragment.
pub fn nal_types(payload: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let (head, rest) = match payload.split_first() {
        Some((first, rest)) => (first & 0x1f, rest),
        None => (0, payload),
    };
    let (single, aggregated) = match head {
        1..=23 => (Some(head), &[][..]),
        STAP_A => (None, rest),
        FU_A | FU_B => (
            rest.first()
                .filter(|fu| *fu & 0x80 != 0)
                .map(|fu| fu & 0x1f),
            &[][..],
        ),
        _ => (None, &[][..]),
    };
    single
        .into_iter()
        .chain(aggregated_units(aggregated).filter_map(|unit| Some(unit.first()? & 0x1f)))
}

/// Returns whether `payload` starts an IDR picture, or a sequence parameter set, which precedes
/// one.
pub fn is_keyframe(payload: &[u8]) -> bool {
    nal_types(payload).any(|kind| kind == IDR || kind == SEQUENCE_PARAMETER_SET)
}

/// Returns whether `payload` starts a picture of intra slices: an IDR picture, or a slice of type I
/// (ITU-T H.264 section 7.4.3) whose first macroblock is the picture's.
pub fn begins_intra_picture(payload: &[u8]) -> bool {
    let begins = |kind: u8, slice: &[u8]| match kind {
        IDR => true,
        SLICE => slice_is_intra(slice).unwrap_or(false),
        _ => false,
    };
    match payload {
        [head, rest @ ..] if head & 0x1f == STAP_A => {
            aggregated_units(rest).any(|unit| match unit.split_first() {
                Some((head, slice)) => begins(head & 0x1f, slice),
                None => false,
            })
        }
        [head, fu, slice @ ..] if head & 0x1f == FU_A => fu & 0x80 != 0 && begins(fu & 0x1f, slice),
        [head, slice @ ..] => begins(head & 0x1f, slice),
        [] => false,
    }
}

/// Reads the start of a slice header: the first macroblock's number and the slice's type.
pub(crate) fn slice_is_intra(slice: &[u8]) -> Option<bool> {
    let mut bits = slice
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let mut golomb = || {
        let zeros = bits.by_ref().take_while(|bit| *bit == 0).count();
        let mut value = 1u64;
        for _ in 0..zeros.min(32) {
            value = value << 1 | u64::from(bits.next()?);
        }
        Some(value - 1)
    };
    let first = golomb()?;
    let kind = golomb()?;
    Some(first == 0 && kind % 5 == 2)
}

/// Returns whether `payload` has a sequence parameter set, so that a decoder without any state can
/// start with it.
pub fn has_parameter_sets(payload: &[u8]) -> bool {
    nal_types(payload).any(|kind| kind == SEQUENCE_PARAMETER_SET)
}

/// Splits units that each follow their 16-bit size, also for H.265.
pub(super) fn aggregated_units(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (size, after) = rest.split_first_chunk()?;
        let (unit, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*size)))?;
        rest = after;
        Some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_units() {
        assert!(is_keyframe(&[0x65, 0x88]));
        assert!(is_keyframe(&[0x67, 0x42]) && has_parameter_sets(&[0x67, 0x42]));
        assert!(!is_keyframe(&[0x41, 0x9a]) && !has_parameter_sets(&[0x65, 0x88]));
        assert!(!is_keyframe(&[]));
    }

    #[test]
    fn intra_pictures_by_their_slices() {
        // First macroblock 0 (`1`), slice type 7 (`0001000`), all I; and 5 (`00110`), all P.
        let (intra, predicted) = (0b1000_1000, 0b1001_1000);
        for (payload, begins) in [
            (&[0x65, 0][..], true),
            (&[0x41, intra], true),
            (&[0x41, predicted], false),
            // First macroblock 1 (`010`), slice type 2 (`011`).
            (&[0x41, 0b0100_1100], false),
            (&[0x5c, 0x81, intra], true),
            (&[0x5c, 0x01, intra], false),
            (&[0x7c, 0x85, 0], true),
            (&[0x78, 0, 2, 0x68, 0xce, 0, 2, 0x41, intra], true),
            (&[0x67, 0x42], false),
            (&[0x41], false),
            (&[0x41, 0], false),
            (&[], false),
        ] {
            assert_eq!(begins_intra_picture(payload), begins, "{payload:x?}");
        }
    }

    #[test]
    fn aggregation_of_parameter_sets() {
        let payload = [0x78, 0, 3, 0x67, 0x42, 0xc0, 0, 2, 0x68, 0xce, 0, 1, 0x65];
        assert_eq!(nal_types(&payload).collect::<Vec<_>>(), [7, 8, 5]);
        assert!(is_keyframe(&payload) && has_parameter_sets(&payload));
        // An access unit delimiter, and a truncated unit.
        assert_eq!(
            nal_types(&[0x78, 0, 2, 9, 0x10, 0, 9, 0x67]).collect::<Vec<_>>(),
            [9]
        );
        // An empty unit is skipped.
        assert_eq!(
            nal_types(&[0x78, 0, 0, 0, 1, 0x68]).collect::<Vec<_>>(),
            [8]
        );
    }

    #[test]
    fn only_the_first_fragment_counts() {
        assert!(is_keyframe(&[0x7c, 0x85, 0x88]));
        assert!(!is_keyframe(&[0x7c, 0x05, 0x88]));
        assert!(!is_keyframe(&[0x7c, 0x45, 0x88]));
        assert!(!is_keyframe(&[0x7c, 0x81, 0x88]));
        assert!(!is_keyframe(&[0x7c]));
    }
}
