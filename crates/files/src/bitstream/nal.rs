//! NAL units with lengths of four bytes, and the parameter sets among them.

/// The limits of parameter sets of a kind, and of the bytes of one. More would not fit the room of
/// a container's header.
const MOST_SETS: usize = 8;
const MOST_BYTES: usize = 1_024;

/// Returns the units of an access unit, up to a malformed one.
pub(super) fn units(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (unit, after) = after.split_at_checked(length)?;
        rest = after;
        Some(unit)
    })
}

/// Returns the parameter sets of an access unit without duplicates, or else the earlier ones.
/// Returns `None` if there are none, too many, or too long ones.
pub(super) fn sets<'a>(
    found: impl Iterator<Item = &'a [u8]>,
    before: Option<&Vec<Vec<u8>>>,
) -> Option<Vec<Vec<u8>>> {
    let mut sets: Vec<Vec<u8>> = Vec::new();
    for set in found {
        if sets.iter().any(|it| it == set) {
            continue;
        }
        if sets.len() == MOST_SETS || set.len() > MOST_BYTES {
            return None;
        }
        sets.push(set.to_vec());
    }
    if sets.is_empty() {
        sets = before?.clone();
    }
    (!sets.is_empty()).then_some(sets)
}
