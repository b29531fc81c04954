//! Pads packets of a frame that differ by a few bytes to one size.
//!
//! The kernel joins datagrams of equal size only (UDP_SEGMENT), so each viewer's run of equal
//! packets leaves as one message. A core that is behind has several frames for a viewer at once.
//! Then a frame is padded to the size of the frame before it, if the difference is small.

use super::Packet;

/// Sizes are rounded up to a multiple of this, the block size of AES.
const BLOCK: usize = 16;
/// Smaller payloads are not padded, because they gain little.
const SMALLEST: usize = 256;
/// Larger payloads are not padded: with headers and tag, packets must stay below common MTUs.
const LARGEST: usize = 1_376;
/// The share of its size, as a fraction, by which a payload may be padded to that of a waiting
/// frame.
const PART: usize = 8;
/// Points for an uneven frame, those at which padding starts, and the maximum. Each even frame
/// takes one point, and padding ends at zero.
const POINTS: u8 = 8;
const START: u8 = 32;
const MOST: u8 = 64;

/// Tracks how the packets of an encoding's frames differ in size. libwebrtc, for example, cuts a
/// frame into packets that differ by one byte.
#[derive(Debug, Default)]
pub struct Evenness {
    frame: Option<Frame>,
    points: u8,
    pads: bool,
}

/// The state of the newest frame.
#[derive(Debug, Clone, Copy)]
struct Frame {
    timestamp: u32,
    /// The payload size of the last packet, and the size that it was padded to.
    last: usize,
    padded: usize,
    packets: usize,
    /// It is padded to the size of a waiting frame.
    joins: bool,
    /// Two adjacent packets were almost equal in size.
    uneven: bool,
}

impl Evenness {
    /// Pads a packet if the frames before were uneven. `waits` says that an earlier frame has not
    /// left yet.
    #[inline]
    pub fn even_out(&mut self, packet: &mut Packet, waits: bool) {
        let (timestamp, len) = (packet.header.timestamp, packet.payload().len());
        // One byte more than needed: the next packet may be that much longer.
        let target = (len + 1).next_multiple_of(BLOCK);
        let frame = match &mut self.frame {
            Some(frame) if frame.timestamp == timestamp => {
                frame.uneven |= (1..BLOCK).contains(&len.abs_diff(frame.last));
                frame.packets += 1;
                let most = if frame.joins {
                    len / PART
                } else {
                    2 * BLOCK - 1
                };
                let fits = (len..=len + most).contains(&frame.padded);
                frame.padded = if fits { frame.padded } else { target };
                frame.last = len;
                frame
            }
            other => {
                let before = other.filter(|_| waits).map_or(target, |frame| frame.padded);
                let most = (len + len / PART).min(LARGEST);
                let joins = waits && (target..=most).contains(&before);
                let ended = other.replace(Frame {
                    timestamp,
                    last: len,
                    padded: if joins { before } else { target },
                    packets: 1,
                    joins,
                    uneven: false,
                });
                self.points = match ended {
                    Some(frame) if frame.uneven => (self.points + POINTS).min(MOST),
                    Some(frame) if frame.packets > 1 => self.points.saturating_sub(1),
                    _ => self.points,
                };
                self.pads = self.points >= START || (self.pads && self.points > 0);
                let Some(frame) = other else {
                    return;
                };
                frame
            }
        };
        if self.pads && (SMALLEST..=LARGEST).contains(&len) {
            packet.pad(frame.padded - len);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
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
                    evenness.even_out(&mut packet, false);
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
        let frame = [1_001, 1_001, 1_001, 1_002, 1_002, 1_002];
        assert_eq!(run(&mut evenness, 30, &frame), [1_008; 6]);
    }

    #[test]
    fn sizes_around_a_multiple_of_a_block_become_equal() {
        for size in 1_000..1_033 {
            let mut evenness = Evenness::default();
            let longer = run(&mut evenness, 30, &[size, size, size + 1]);
            assert_eq!(longer, [longer[0]; 3]);
            assert!(longer[0] <= size + BLOCK, "{size}: {longer:?}");
            let shorter = run(&mut evenness, 30, &[size + 1, size, size]);
            assert_eq!(shorter, [shorter[0]; 3]);
        }
    }

    #[test]
    fn even_frames_between_do_not_end_it_but_many_do() {
        let mut evenness = Evenness::default();
        run(&mut evenness, 30, &[1_001, 1_002]);
        assert_eq!(run(&mut evenness, 10, &[1_001; 3]), [1_008; 3]);
        assert_eq!(run(&mut evenness, 100, &[1_001; 3]), [1_001; 3]);
    }

    #[test]
    fn frames_that_wait_together_become_equal_if_they_nearly_are() {
        let sizes = |waits: bool, size: usize| {
            let mut evenness = Evenness::default();
            run(&mut evenness, 30, &[1_150, 1_151]);
            let mut next = [packet(100, size), packet(100, size + 1), packet(100, 300)];
            next.each_mut().map(|packet| {
                evenness.even_out(packet, waits);
                packet.padded_payload().len()
            })
        };
        assert_eq!(sizes(true, 1_060), [1_152, 1_152, 304]);
        assert_eq!(sizes(false, 1_060), [1_072, 1_072, 304]);
        assert_eq!(
            sizes(true, 1_000),
            [1_008, 1_008, 304],
            "more than an eighth"
        );
        assert_eq!(sizes(true, 1_170), [1_184, 1_184, 304], "it is larger");
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
