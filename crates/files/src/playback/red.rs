//! Redundant audio (RFC 2198) in recordings.

/// The follow bit of a block's header.
const FOLLOWS: u8 = 0x80;

/// The length of a redundant block's header, and that of the primary one.
const BLOCK: usize = 4;
const PRIMARY: usize = 1;

/// Sets the payload type of all blocks to `pt`. Returns false if there is no primary block.
pub(super) fn set_payload_type(payload: &mut [u8], pt: u8) -> bool {
    let mut rest = payload;
    loop {
        let Some(first) = rest.first_mut() else {
            return false;
        };
        let follows = *first & FOLLOWS;
        *first = follows | (pt & !FOLLOWS);
        let len = if follows == 0 { PRIMARY } else { BLOCK };
        match rest.get_mut(len..) {
            Some(_) if follows == 0 => return true,
            Some(next) => rest = next,
            None => return false,
        }
    }
}

/// Returns the primary block, or `None` if the payload is malformed.
pub(super) fn primary(payload: &[u8]) -> Option<&[u8]> {
    let mut rest = payload;
    let mut redundant = 0_usize;
    while rest.first()? & FOLLOWS != 0 {
        let [_, _, high, low] = *rest.first_chunk::<BLOCK>()?;
        redundant += usize::from(u16::from_be_bytes([high & 0x03, low]));
        rest = rest.get(BLOCK..)?;
    }
    rest.get(PRIMARY..)?.get(redundant..)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn blocks_are_renumbered_and_taken_apart() {
        // 2 bytes of redundancy, 20 ms earlier.
        let mut payload = vec![0x80 | 109, 0x0f, 0x00, 0x02, 109, 1, 2, 3, 4, 5];
        assert!(set_payload_type(&mut payload, 111));
        assert_eq!((payload[0], payload[4]), (0x80 | 111, 111));
        assert_eq!(primary(&payload), Some(&[3, 4, 5][..]));
        assert_eq!(primary(&[111, 9]), Some(&[9][..]));
        for broken in [&[][..], &[0x80 | 111, 0, 0], &[0x80 | 111, 0, 0, 9, 111, 1]] {
            assert_eq!(primary(broken), None, "{broken:?}");
        }
        assert!(!set_payload_type(&mut [0x80 | 111, 0, 0], 111));
    }
}
