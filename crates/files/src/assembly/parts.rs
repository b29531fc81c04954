//! The changes that end a part.

use crate::bitstream::{Picture, Setup};

/// The change of a track's pictures at a keyframe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// No relevant change.
    None,
    /// A change within the file.
    Inside,
    /// A change that needs another part.
    Part,
}

/// Compares the setups of a track before and after.
pub(super) fn change(
    before: (&Setup, Option<Picture>),
    after: (&Setup, Option<Picture>),
    split_on_size: bool,
) -> Change {
    let has_size_changed = before.1 != after.1;
    let needs_part = match (before.0, after.0) {
        (Setup::Vp8, Setup::Vp8) => split_on_size && has_size_changed,
        (before @ Setup::Vp9 { .. }, after @ Setup::Vp9 { .. }) => {
            before != after || split_on_size && has_size_changed
        }
        (
            Setup::Av1 {
                sequence_header: before_header,
                config: before,
            },
            Setup::Av1 {
                sequence_header: header,
                config: after,
            },
        ) => {
            before != after && !is_level(before, after) || split_on_size && before_header != header
        }
        (Setup::H264 { sps: before, .. }, Setup::H264 { sps: after, .. }) => {
            // NAL unit header, profile, constraints.
            has_size_changed || head(before, 3) != head(after, 3)
        }
        (Setup::H265 { sps: before, .. }, Setup::H265 { sps: after, .. }) => {
            // A header of two bytes, layers, profile.
            has_size_changed || head(before, 4) != head(after, 4)
        }
        (before, after) => before != after,
    };
    match (needs_part, has_size_changed) {
        (true, _) => Change::Part,
        (false, true) => Change::Inside,
        (false, false) => Change::None,
    }
}

/// Whether two configurations of AV1 differ in the level only, which depends on the size (AV1 in
/// ISO-BMFF section 2.3.3).
fn is_level(before: &[u8; 4], after: &[u8; 4]) -> bool {
    let [_, before_profile, before_rest, before_delay] = before;
    let [_, profile, rest, delay] = after;
    // The tier is the highest bit of the third byte, and depends on the level, too.
    before_profile >> 5 == profile >> 5
        && before_rest & 0x7f == rest & 0x7f
        && before_delay == delay
}

fn head(sets: &[Vec<u8>], len: usize) -> &[u8] {
    sets.first()
        .and_then(|set| set.get(..len))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32) -> Option<Picture> {
        Some(Picture { width, height: 180 })
    }

    fn h264(profile: u8, rest: u8) -> Setup {
        Setup::H264 {
            sps: vec![vec![0x67, profile, 0, rest, 1]],
            pps: vec![vec![0x68, rest]],
        }
    }

    fn av1(level: u8, rest: u8) -> Setup {
        Setup::Av1 {
            sequence_header: vec![0x0a, 1, level],
            config: [0x81, level, rest, 0],
        }
    }

    #[test]
    fn pictures_of_another_size() {
        for (before, after, split, expected) in [
            (Setup::Vp8, Setup::Vp8, false, Change::Inside),
            (Setup::Vp8, Setup::Vp8, true, Change::Part),
            (av1(4, 12), av1(5, 12), false, Change::Inside),
            (av1(4, 12), av1(5, 12), true, Change::Part),
            (av1(4, 12), av1(4, 0x4c), false, Change::Part),
            (h264(66, 1), h264(66, 2), false, Change::Part),
            (h264(66, 1), Setup::Vp8, false, Change::Part),
        ] {
            let (one, two) = ((&before, picture(320)), (&after, picture(640)));
            assert_eq!(change(one, two, split), expected, "{before:?} {after:?}");
            assert_eq!(change(one, one, split), Change::None);
        }
    }

    #[test]
    fn other_sets_of_the_same_kind_go_on() {
        let size = picture(320);
        let same = change((&h264(66, 1), size), (&h264(66, 2), size), true);
        assert_eq!(same, Change::None);
        let other = change((&h264(66, 1), size), (&h264(100, 1), size), false);
        assert_eq!(other, Change::Part);
    }
}
