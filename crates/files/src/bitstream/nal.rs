//! NAL units behind lengths of four bytes, and sets of parameters among them.

/// The most parameter sets of a kind that are kept, and the most bytes of one: what is more would not fit the room that
/// a container's header has.
const MOST_SETS: usize = 8;
const MOST_BYTES: usize = 1_024;

/// The units of an access unit; what is malformed ends them.
pub(super) fn units(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (unit, after) = after.split_at_checked(length)?;
        rest = after;
        Some(unit)
    })
}

/// The sets that are in an access unit, without doubles; if there are none, those that were before. Nothing: there are
/// none, too many, or one is too long.
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
