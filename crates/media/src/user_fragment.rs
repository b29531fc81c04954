//! Names the worker of a peer in its user fragment, if all workers share a port.
//!
//! The user fragment is all that a check from an unknown address says of its peer. So it ends with
//! the number of the worker, in two characters of those that SDP permits (`ice-char`, RFC 8839
//! section 5.4). The part before keeps all its randomness.

/// The characters, in the order of their values.
const CHARS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BITS: u32 = 6;

/// Appends the number of `worker`, 0 to 4,095.
pub(crate) fn with_worker(ufrag: &str, worker: u16) -> String {
    let digit = |shift: u32| {
        let place = usize::from(worker >> shift) % CHARS.len();
        CHARS.get(place).copied().map(char::from)
    };
    ufrag.chars().chain(digit(BITS)).chain(digit(0)).collect()
}

/// Returns the number at the end of a user fragment, which anybody may have written, or `None` if
/// there is no number.
pub(crate) fn worker_of(ufrag: &str) -> Option<u16> {
    let (_, [high, low]) = ufrag.as_bytes().split_last_chunk::<2>()?;
    let digit = |char: &u8| u16::try_from(CHARS.iter().position(|known| known == char)?).ok();
    Some((digit(high)? << BITS) | digit(low)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_worker_has_two_characters_of_its_own_behind_what_was_there() {
        for worker in 0..4_096 {
            let ufrag = with_worker("aB3x", worker);
            assert_eq!(worker_of(&ufrag), Some(worker));
            assert!(ufrag.starts_with("aB3x") && ufrag.len() == 6, "{ufrag}");
            let is_ice_char = |char: char| char.is_ascii_alphanumeric() || "+/".contains(char);
            assert!(ufrag.chars().all(is_ice_char), "{ufrag}");
        }
    }

    #[test]
    fn what_ends_otherwise_names_no_worker() {
        for ufrag in ["", "A", "A-", "-A", "ab\u{e9}", "abc "] {
            assert_eq!(worker_of(ufrag), None, "{ufrag:?}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(ufrag in ".{0,20}") {
            prop_assert!(worker_of(&ufrag).is_none_or(|worker| worker < 4_096));
        }
    }
}
