//! Packets of a frame that differ by a few bytes are padded to one size, so that each viewer's run of
//! them leaves as one message (UDP_SEGMENT joins datagrams of equal size only).

use super::Packet;

/// Sizes are rounded up to a multiple of this: a block of AES.
const BLOCK: usize = 16;
/// Smaller payloads gain little, relative to the padding.
const SMALLEST: usize = 256;
/// The largest payload with padding: with headers and tag it stays below common MTUs.
const LARGEST: usize = 1_376;
/// Points at which padding starts; it ends at none.
const START: u8 = 32;
const MOST: u8 = 64;

/// Watches how the packets of an encoding's frames differ in size. libwebrtc, for one, cuts a frame into
/// parts that differ by a byte.
#[derive(Debug, Default)]
pub(crate) struct Evenness {
    /// Timestamp and payload size of the last packet.
    last: Option<(u32, usize)>,
    points: u8,
    pads: bool,
}

impl Evenness {
    /// Looks at a packet, and pads it if those before were almost equal.
    pub(crate) fn even_out(&mut self, packet: &mut Packet) {
        let (timestamp, len) = (packet.header.timestamp, packet.payload().len());
        if let Some((of, before)) = self.last.replace((timestamp, len))
            && of == timestamp
        {
            self.points = match len.abs_diff(before) {
                0 => self.points.saturating_sub(1),
                1..BLOCK => (self.points + 8).min(MOST),
                _ => self.points,
            };
            self.pads = self.points >= START || (self.pads && self.points > 0);
        }
        if self.pads && (SMALLEST..=LARGEST).contains(&len) {
            packet.pad(len.next_multiple_of(BLOCK) - len);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use portunus_rtp::header::{Fields, Header, write_header};

    use super::*;

    fn packet(timestamp: u32, payload: usize) -> Packet {
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Default::default(),
            sequence: 1,
            timestamp,
            ssrc: Default::default(),
        };
        let mut data = vec![7; 12 + payload];
        write_header(&mut data, &fields, []).unwrap();
        let mut packet = Packet::empty(Instant::now());
        packet.fill(&data);
        packet.header = Header::parse(&data).unwrap();
        packet
    }

    /// Feeds frames and returns the padded sizes of the last one.
    fn run(evenness: &mut Evenness, frames: u32, sizes: &[usize]) -> Vec<usize> {
        let mut last = Vec::new();
        for frame in 0..frames {
            last = sizes
                .iter()
                .map(|size| {
                    let mut packet = packet(frame, *size);
                    evenness.even_out(&mut packet);
                    assert_eq!(packet.payload().len(), *size, "padding is no payload");
                    packet.padded_payload().len()
                })
                .collect();
        }
        last
    }

    #[test]
    fn almost_equal_sizes_become_equal() {
        let mut evenness = Evenness::default();
        let sizes = run(
            &mut evenness,
            30,
            &[1_001, 1_001, 1_001, 1_002, 1_002, 1_002],
        );
        assert_eq!(sizes, [1_008; 6]);
        let sizes = run(&mut evenness, 30, &[1_001; 6]);
        assert_eq!(sizes, [1_001; 6], "what is equal is left alone");
    }

    #[test]
    fn a_short_last_packet_is_no_reason_to_pad() {
        let mut evenness = Evenness::default();
        let sizes = run(&mut evenness, 30, &[1_200, 1_200, 1_200, 431]);
        assert_eq!(sizes, [1_200, 1_200, 1_200, 431]);
    }

    #[test]
    fn padding_ends_with_its_count() {
        let mut packet = packet(0, 300);
        packet.pad(4);
        let padded = packet.padded_payload();
        assert_eq!(padded.get(300..), Some(&[0, 0, 0, 4][..]));
        packet.pad(0);
        assert_eq!(packet.padding, 4, "nothing to add");
    }
}
