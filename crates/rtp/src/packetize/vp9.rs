//! VP9 (RFC 9628) without layers: picture ids of 15 bits, and no references listed, as for any
//! stream of one spatial and one temporal layer.

use super::{equal_parts, with_ends};

/// Flags and picture id.
const DESCRIPTOR_LEN: usize = 3;

pub(super) fn packetize(
    frame: &[u8],
    keyframe: bool,
    picture_id: u16,
    max: usize,
    payload: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8], bool),
) {
    let [high, low] = picture_id.to_be_bytes();
    with_ends(
        equal_parts(frame, max - DESCRIPTOR_LEN),
        |part, first, last| {
            // I is always set; P, B, E; and Z, since nothing above depends on it.
            let flags = 0x81
                | if keyframe { 0 } else { 0x40 }
                | if first { 0x08 } else { 0 }
                | if last { 0x04 } else { 0 };
            payload.clear();
            payload.extend_from_slice(&[flags, 0x80 | high, low]);
            payload.extend_from_slice(part);
            emit(payload, last);
        },
    );
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use crate::codec::{PictureId, Vp9};
    use crate::packetize::{Packetizer, PayloadFormat};

    #[test]
    fn frames_come_back() {
        let mut packetizer = Packetizer::new(PayloadFormat::Vp9);
        for (id, keyframe) in [(0, true), (1, false)] {
            let frame = vec![id as u8; 2_500];
            let mut whole = Vec::new();
            let mut packets = 0;
            packetizer
                .packetize(&frame, keyframe, |payload, last| {
                    let descriptor = Vp9::parse(payload).unwrap();
                    assert_eq!(descriptor.picture_id, Some(PictureId::Long(id)));
                    assert_eq!(descriptor.starts_frame, packets == 0);
                    assert_eq!(descriptor.ends_frame, last);
                    assert_eq!(descriptor.is_keyframe(), keyframe && packets == 0);
                    whole.extend_from_slice(&payload[descriptor.descriptor_len()..]);
                    packets += 1;
                })
                .unwrap();
            assert_eq!((whole, packets), (frame, 3));
        }
    }
}
