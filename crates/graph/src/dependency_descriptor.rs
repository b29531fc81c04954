//! Dependency descriptors with other numbers for a receiver.

use portunus_rtp::ExtensionKind;
use portunus_rtp::extension::MandatoryFields;

use super::{Packet, Sent};

/// A dependency descriptor with another frame number, or another mask of decode targets.
#[derive(Debug)]
pub struct RewrittenDescriptor {
    value: [u8; Self::MAX],
    len: usize,
}

impl RewrittenDescriptor {
    /// The longest value of a header extension (RFC 8285 section 4.3).
    const MAX: usize = 255;

    /// Returns the changed descriptor, or `None` if it stays as it is.
    #[inline]
    pub fn of(packet: &Packet, sent: &Sent) -> Option<Self> {
        let (offset, mask) = (sent.frame_offset, sent.part.targets);
        let frame = packet.frame.filter(|_| offset != 0);
        let targets = packet.targets.filter(|_| mask != 0);
        if frame.is_none() && targets.is_none() {
            return None;
        }
        let id = packet.extensions.id(ExtensionKind::DependencyDescriptor)?;
        let original = packet.header.extension(&packet.data, id)?;
        let mut value = [0; Self::MAX];
        // A descriptor that would become too long keeps its mask.
        let with_mask =
            targets.and_then(|targets| targets.place.write(original, mask, &mut value).ok());
        let len = match with_mask {
            Some(len) => len,
            None => {
                value.get_mut(..original.len())?.copy_from_slice(original);
                original.len()
            }
        };
        if let Some(frame) = frame {
            MandatoryFields::set_frame_number(&mut value, frame.wrapping_add(offset));
        }
        Some(Self { value, len })
    }

    /// The value of the header extension.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.value.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use std::time::Instant;

    use portunus_rtp::extension::DependencyReader;
    use portunus_rtp::{ExtensionMap, Fields, Header, Pt, Ssrc, write_header};
    use portunus_sdp::negotiated::Codec;

    use super::*;
    use crate::RouteOptions;
    use crate::{Inspector, Numbering, Selection, Selector, SourceKey};

    const SOURCE: SourceKey = SourceKey(3);
    /// Frame 1 of AV1 with a structure of two temporal layers and decode targets.
    const KEYFRAME: &[u8] = &[0xc0, 0, 1, 0x80, 0x01, 0x7a, 0x14, 0x00];

    /// A stream from its source to one sink, as far as layers and descriptors go.
    struct Stream {
        inspector: Inspector,
        selector: Selector,
        numbering: Numbering,
        receiver: DependencyReader,
        options: RouteOptions,
        sequence: u16,
    }

    impl Stream {
        /// Relays a packet with this descriptor, and returns what was sent of it: its record, and
        /// the descriptor's mask of decode targets with whether that is in it.
        fn relay(&mut self, descriptor: &[u8]) -> Option<(Sent, u32, bool)> {
            let mut extensions = ExtensionMap::default();
            extensions.set(ExtensionKind::DependencyDescriptor, 5);
            let fields = Fields {
                marker: true,
                padding: false,
                pt: Pt(98),
                sequence: self.sequence,
                timestamp: 2,
                ssrc: Ssrc(3),
            };
            self.sequence += 1;
            let mut data = vec![0; 64];
            let len = write_header(&mut data, &fields, [(5, descriptor)]).unwrap();
            data.truncate(len);
            data.extend_from_slice(&[0x10, 0x30]);
            let mut packet = Packet::empty(Instant::now());
            packet.header = Header::parse(&data).unwrap();
            packet.seq = portunus_rtp::SeqNo(fields.sequence.into());
            packet.codec = Codec::Av1;
            let header = &packet.header;
            let inspected = self
                .inspector
                .inspect(Codec::Av1, header, &data, &extensions);
            packet.describe(inspected);
            packet.data = data;
            packet.set_extensions(extensions);
            let Selection::Forward(part) = self.selector.select(&packet, 1, &self.options) else {
                self.numbering.skip(SOURCE, &packet);
                return None;
            };
            let sent = self.numbering.forward(SOURCE, &packet, 90_000, part)?;
            assert_eq!(self.numbering.sent(sent.out), Some(sent), "for repeats");
            let rewritten = RewrittenDescriptor::of(&packet, &sent);
            let value = rewritten
                .as_ref()
                .map_or(descriptor, RewrittenDescriptor::bytes);
            let told = self.receiver.read(value).unwrap();
            Some((sent, told.active_targets, told.targets_place.is_told))
        }
    }

    #[test]
    fn receivers_are_told_which_decode_targets_they_get() {
        let mut stream = Stream {
            inspector: Inspector::default(),
            selector: Selector::default(),
            numbering: Numbering::starting_after(0),
            receiver: DependencyReader::new(),
            options: RouteOptions::default(),
            sequence: 1,
        };
        let mask = |stream: &mut Stream, descriptor: &[u8]| {
            let (_, mask, is_told) = stream.relay(descriptor)?;
            Some((mask, is_told))
        };
        let (lower, upper) = ([0xc0, 0, 2], [0xc1, 0, 3]);
        assert_eq!(mask(&mut stream, KEYFRAME), Some((0b11, false)));
        assert_eq!(mask(&mut stream, &upper), Some((0b11, false)));

        stream.options.temporal = 0;
        assert_eq!(mask(&mut stream, &lower), Some((0b01, true)));
        assert_eq!(mask(&mut stream, &upper), None, "left out");
        assert_eq!(mask(&mut stream, KEYFRAME), Some((0b01, true)));
        assert_eq!(mask(&mut stream, &lower), Some((0b01, true)));

        // Up again without a keyframe: what was told before is to be taken back.
        stream.options.temporal = 2;
        assert_eq!(mask(&mut stream, &upper), Some((0b11, true)));
        assert_eq!(mask(&mut stream, &lower), Some((0b11, true)));
        assert_eq!(mask(&mut stream, KEYFRAME), Some((0b11, false)));
        assert_eq!(mask(&mut stream, &upper), Some((0b11, false)));
    }
}
