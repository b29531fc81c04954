//! Redundant audio (RFC 2198): packets that contain earlier ones, too.

use portunus_rtp::red::unpack;

/// A block of redundant audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block<'a> {
    /// The difference between the packet's timestamp and its own; 0 for the primary block.
    pub offset: u32,
    /// The number of blocks after it.
    pub after: u32,
    pub payload: &'a [u8],
}

/// Calls `each` for the blocks with the primary block's payload type, the oldest first and the
/// primary one last. Returns false without any call if the payload is invalid.
pub(super) fn blocks<'a>(payload: &'a [u8], mut each: impl FnMut(Block<'a>)) -> bool {
    let primary = unpack(payload).last();
    let Some(primary) = primary.filter(|primary| !primary.payload.is_empty()) else {
        return false;
    };
    for block in unpack(payload) {
        let is_older = block.pt == primary.pt && block.offset > 0 && !block.payload.is_empty();
        if block.after == 0 || is_older {
            each(Block {
                offset: block.offset,
                after: block.after as u32,
                payload: block.payload,
            });
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(payload: &[u8]) -> Option<Vec<Block<'_>>> {
        let mut found = Vec::new();
        blocks(payload, |block| found.push(block)).then_some(found)
    }

    #[test]
    fn blocks_come_oldest_first() {
        // Two redundant blocks of 3 and 2 bytes, 1920 and 960 earlier, and a primary one of 2
        // bytes.
        let packet = [
            0xef, 0x1e, 0x00, 3, 0xef, 0x0f, 0x00, 2, 0x6f, 1, 2, 3, 4, 5, 6, 7,
        ];
        let expected = vec![
            Block {
                offset: 1_920,
                after: 2,
                payload: &[1, 2, 3],
            },
            Block {
                offset: 960,
                after: 1,
                payload: &[4, 5],
            },
            Block {
                offset: 0,
                after: 0,
                payload: &[6, 7],
            },
        ];
        assert_eq!(all(&packet), Some(expected));
    }

    #[test]
    fn blocks_of_other_codecs_are_passed_over() {
        let packet = [0xe0, 0x0f, 0x00, 2, 0x6f, 4, 5, 6];
        assert_eq!(
            all(&packet),
            Some(vec![Block {
                offset: 0,
                after: 0,
                payload: &[6]
            }])
        );
    }

    #[test]
    fn what_is_cut_is_refused() {
        let packet = [0xef, 0x0f, 0x00, 2, 0x6f, 4, 5, 6];
        for len in 0..packet.len() {
            assert_eq!(
                all(packet.get(..len).unwrap_or_default()),
                None,
                "{len} bytes"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_borne(payload in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(blocks) = all(&payload) {
                prop_assert!(blocks.iter().map(|block| block.payload.len()).sum::<usize>() < payload.len());
                prop_assert_eq!(blocks.iter().filter(|block| block.offset == 0).count(), 1);
            }
        }
    }
}
