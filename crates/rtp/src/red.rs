//! Redundant audio (RFC 2198): a packet with some of the previous ones.

use crate::Pt;

/// The most redundant blocks accepted.
const MOST_BLOCKS: usize = 8;

/// A block of a packet of redundant audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedBlock<'a> {
    /// The payload type of its content.
    pub pt: Pt,
    /// The difference between its timestamp and the packet's. 0 for the primary block.
    pub offset: u32,
    /// The number of blocks after it. 0 for the primary block, which is the content of the packet
    /// itself.
    pub after: usize,
    /// The payload of a separate packet. It may be empty.
    pub payload: &'a [u8],
}

/// Returns the blocks of a payload, the oldest first and the primary one last. Empty if it is
/// malformed, or has more than eight redundant blocks.
pub fn unpack(payload: &[u8]) -> impl Iterator<Item = RedBlock<'_>> {
    let (headers, mut rest) = split_headers(payload).unwrap_or_default();
    headers.into_iter().flatten().map(move |header| {
        let len = header.len.unwrap_or(rest.len());
        // The lengths have been summed up before.
        let payload = rest.split_off(..len).unwrap_or_default();
        RedBlock {
            pt: header.pt,
            offset: header.offset,
            after: header.after,
            payload,
        }
    })
}

/// Returns the length of the block headers of a payload. `None` if they are cut off, or are more than
/// those of eight redundant blocks and the primary one.
pub fn headers_len(payload: &[u8]) -> Option<usize> {
    let mut at = 0;
    for _ in 0..=MOST_BLOCKS {
        if payload.get(at)? & 0x80 == 0 {
            return Some(at + 1);
        }
        at += 4;
    }
    None
}

/// Sets the payload type of each block, given the block headers.
pub fn set_payload_types(headers: &mut [u8], pt: Pt) {
    for first in headers.iter_mut().step_by(4) {
        *first = *first & 0x80 | pt.0 & 0x7f;
    }
}

#[derive(Debug, Clone, Copy)]
struct BlockHeader {
    pt: Pt,
    offset: u32,
    after: usize,
    /// `None` means all the rest.
    len: Option<usize>,
}

type Headers = [Option<BlockHeader>; MOST_BLOCKS + 1];

/// Splits off the headers from the blocks after them.
fn split_headers(payload: &[u8]) -> Option<(Headers, &[u8])> {
    let mut headers = Headers::default();
    let mut rest = payload;
    let mut redundant = 0;
    let mut count = 0;
    loop {
        let first = *rest.first()?;
        let pt = Pt(first & 0x7f);
        let place = headers.get_mut(count)?;
        if first & 0x80 == 0 {
            rest = rest.get(1..)?;
            *place = Some(BlockHeader {
                pt,
                offset: 0,
                after: 0,
                len: None,
            });
            break;
        }
        // F = 1, payload type, timestamp offset of 14 bits, length of 10 (section 3).
        let &[_, high, middle, low] = rest.split_off(..4)? else {
            return None;
        };
        let len = (usize::from(middle & 3) << 8) | usize::from(low);
        redundant += len;
        *place = Some(BlockHeader {
            pt,
            offset: (u32::from(high) << 6) | (u32::from(middle) >> 2),
            after: 0,
            len: Some(len),
        });
        count += 1;
    }
    for (index, header) in headers.iter_mut().flatten().enumerate() {
        header.after = count - index;
    }
    (redundant <= rest.len()).then_some((headers, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

    use super::*;
    use proptest::prelude::*;

    fn all(payload: &[u8]) -> Vec<(u8, u32, usize, &[u8])> {
        unpack(payload)
            .map(|block| (block.pt.0, block.offset, block.after, block.payload))
            .collect()
    }

    #[test]
    fn blocks_come_oldest_first() {
        // Two redundant blocks of 3 and 2 bytes, 1920 and 960 before; a primary one of 2 bytes.
        let packet = [
            0xef, 0x1e, 0x00, 3, 0xef, 0x0f, 0x00, 2, 0x6f, 1, 2, 3, 4, 5, 6, 7,
        ];
        let expected = [
            (111, 1_920, 2, &[1, 2, 3][..]),
            (111, 960, 1, &[4, 5]),
            (111, 0, 0, &[6, 7]),
        ];
        assert_eq!(all(&packet), expected);
    }

    #[test]
    fn a_primary_block_alone() {
        assert_eq!(all(&[0x6f, 1]), [(111, 0, 0, &[1][..])]);
        assert_eq!(all(&[0x6f]), [(111, 0, 0, &[][..])]);
    }

    #[test]
    fn payload_types_are_set_in_all_headers() {
        let mut packet = [0xef, 0x0f, 0x00, 2, 0x6f, 4, 5, 6];
        let len = headers_len(&packet).unwrap_or_default();
        assert_eq!(len, 5);
        set_payload_types(&mut packet[..len], Pt(96));
        assert_eq!(packet, [0xe0, 0x0f, 0x00, 2, 0x60, 4, 5, 6]);
        assert_eq!(headers_len(&[0xef, 0, 0, 0]), None);
        assert_eq!(headers_len(&[0xef; 64]), None);
    }

    #[test]
    fn what_is_cut_is_refused() {
        let packet = [0xef, 0x0f, 0x00, 2, 0x6f, 4, 5];
        for len in 0..packet.len() {
            assert_eq!(all(&packet[..len]), [], "{len}");
        }
        assert_eq!(all(&packet).len(), 2);
        assert_eq!(all(&[0xef; 64]), []);
    }

    proptest! {
        #[test]
        fn blocks_are_the_end_of_the_payload(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let blocks: Vec<u8> = unpack(&payload).flat_map(|block| block.payload.to_vec()).collect();
            prop_assert!(payload.ends_with(&blocks));
            prop_assert!(unpack(&payload).count() <= MOST_BLOCKS + 1);
        }
    }
}
