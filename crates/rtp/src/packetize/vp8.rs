//! VP8 (RFC 7741): every payload has the extended descriptor with a picture id of 15 bits.

use super::{equal_parts, with_ends};

/// Flags, extension flags and picture id.
const DESCRIPTOR_LEN: usize = 4;

pub(super) fn packetize(
    frame: &[u8],
    picture_id: u16,
    max: usize,
    payload: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8], bool),
) {
    let [high, low] = picture_id.to_be_bytes();
    with_ends(
        equal_parts(frame, max - DESCRIPTOR_LEN),
        |part, first, last| {
            // X is always set, and S where the first partition starts. Later partitions are not
            // marked, as the RFC permits (section 4.2: all packets may belong to partition 0).
            let flags = if first { 0x90 } else { 0x80 };
            payload.clear();
            payload.extend_from_slice(&[flags, 0x80, 0x80 | high, low]);
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

    use crate::codec::{PictureId, Vp8};
    use crate::packetize::{Packetizer, PayloadFormat};

    #[test]
    fn frames_come_back_with_running_picture_ids() {
        let mut packetizer = Packetizer::new(PayloadFormat::Vp8);
        for id in 0..3_u16 {
            let frame: Vec<u8> = (0..3_000_u32).map(|byte| (byte * 2) as u8).collect();
            let mut whole = Vec::new();
            let mut packets = 0;
            packetizer
                .packetize(&frame, true, |payload, last| {
                    let descriptor = Vp8::parse(payload).unwrap();
                    assert_eq!(descriptor.picture_id, Some(PictureId::Long(id)));
                    assert_eq!(descriptor.starts_frame(), packets == 0);
                    assert_eq!(descriptor.is_keyframe(payload), packets == 0);
                    whole.extend_from_slice(&payload[descriptor.descriptor_len()..]);
                    packets += 1;
                    assert_eq!(last, packets == 3);
                })
                .unwrap();
            assert_eq!(whole, frame);
        }
    }
}
