//! The nonces of the last data packets of a room.

use std::collections::VecDeque;

/// The most nonces that are kept.
const MAX_NONCES: usize = 256;

/// The number of a data packet by which repeats of it are known.
pub(crate) type Nonce = [u8; 16];

/// The last nonces, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Nonces(VecDeque<Nonce>);

impl Nonces {
    /// Notes a nonce. Returns whether it is a repeated one.
    pub(super) fn is_repeated(&mut self, nonce: Nonce) -> bool {
        if self.0.contains(&nonce) {
            return true;
        }
        if self.0.len() >= MAX_NONCES {
            self.0.pop_front();
        }
        self.0.push_back(nonce);
        false
    }
}

/// Returns a nonce, or `None` if the bytes are none.
pub(crate) fn nonce(bytes: &[u8]) -> Option<Nonce> {
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_nonces_are_known() {
        let mut nonces = Nonces::default();
        for (_, number) in (0..=MAX_NONCES).zip(0_u128..) {
            assert!(!nonces.is_repeated(number.to_be_bytes()));
            assert!(nonces.is_repeated(number.to_be_bytes()));
        }
        assert_eq!(nonces.0.len(), MAX_NONCES);
        assert!(nonces.is_repeated(1_u128.to_be_bytes()));
        assert!(!nonces.is_repeated(0_u128.to_be_bytes()));
    }

    #[test]
    fn a_nonce_has_16_bytes() {
        assert_eq!(nonce(&[7; 16]), Some([7; 16]));
        for length in [0, 15, 17] {
            assert_eq!(nonce(&vec![7; length]), None);
        }
    }
}
