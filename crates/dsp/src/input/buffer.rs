//! The jitter buffer: packets in the order of sending.

use std::collections::VecDeque;

/// The limit of waiting packets: half a second of packets of 2.5 ms.
const MOST_PACKETS: usize = 200;
/// The limit of bytes in all waiting packets.
const MOST_BYTES: usize = 64 * 1024;
/// The granularity of the buffers' capacities.
const ROUNDED: usize = 128;
/// The number of spare buffers, and their greatest capacity.
const MOST_SPARE: usize = 16;
const LONGEST_SPARE: usize = 512;

/// A packet that waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Its number in the order of sending.
    pub seq: i64,
    /// Its start and its length, in samples of 48 kHz.
    pub media: i64,
    pub len: i64,
    /// The length of the audio before it that its FEC contains.
    pub fec: i64,
    pub level: Option<u8>,
    /// Whether it contains no audio.
    pub dtx: bool,
    /// Whether it may be relayed unchanged.
    pub relayable: bool,
    /// Whether it came as redundant audio of a later packet.
    pub redundant: bool,
    /// Whether the stream restarts with it.
    pub anew: bool,
    pub payload: Vec<u8>,
}

impl Waiting {
    pub(super) fn end(&self) -> i64 {
        self.media + self.len
    }
}

/// The result of inserting a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    Yes,
    /// It exists already.
    Duplicate,
    /// It does not fit its neighbours.
    Misfit,
    /// There are too many.
    Full,
}

/// Packets in the order of sending. Past packets may be kept at the front, to prepare a decoder.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    packets: VecDeque<Waiting>,
    past: usize,
    bytes: usize,
    /// The buffers of packets that are gone.
    spare: Vec<Vec<u8>>,
}

impl Buffer {
    /// Inserts a packet. `packet.payload` is filled from `payload`.
    pub(super) fn insert(&mut self, mut packet: Waiting, payload: &[u8]) -> Inserted {
        let place = self
            .packets
            .partition_point(|waiting| waiting.seq < packet.seq);
        if self
            .packets
            .get(place)
            .is_some_and(|after| after.seq == packet.seq)
        {
            return Inserted::Duplicate;
        }
        let fits_before = place
            .checked_sub(1)
            .and_then(|before| self.packets.get(before))
            .is_none_or(|before| before.media < packet.media);
        let fits_after = self
            .packets
            .get(place)
            .is_none_or(|after| after.media > packet.media);
        if place < self.past || !fits_before || !fits_after {
            return Inserted::Misfit;
        }
        if self.packets.len() >= MOST_PACKETS || self.bytes + payload.len() > MOST_BYTES {
            return Inserted::Full;
        }
        packet.payload = self.spare.pop().unwrap_or_default();
        if packet.payload.capacity() < payload.len() {
            // Rounded up, so that buffers can be reused.
            packet
                .payload
                .reserve_exact(payload.len().next_multiple_of(ROUNDED));
        }
        packet.payload.extend_from_slice(payload);
        self.bytes += payload.len();
        self.packets.insert(place, packet);
        Inserted::Yes
    }

    /// Returns the first packet that is not past.
    pub(super) fn front(&self) -> Option<&Waiting> {
        self.packets.get(self.past)
    }

    /// Returns the packets that are not past.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.packets.iter().skip(self.past)
    }

    /// Returns the past packets that lead without a gap to the first that is not past, the oldest
    /// first.
    pub(super) fn before(&self) -> impl Iterator<Item = &Waiting> {
        let mut next = self.front().map(|front| front.seq);
        let contiguous = self
            .packets
            .iter()
            .take(self.past)
            .rev()
            .take_while(|packet| {
                let follows = next.is_some_and(|next| packet.seq + 1 == next) && !packet.dtx;
                next = Some(packet.seq);
                follows
            });
        let count = contiguous.count();
        self.packets.iter().take(self.past).skip(self.past - count)
    }

    /// Returns the past packets, the oldest first.
    pub(super) fn past(&self) -> impl Iterator<Item = &Waiting> {
        self.packets.iter().take(self.past)
    }

    /// Moves the first packet to the past. The last `keep` past packets are kept.
    pub(super) fn pass(&mut self, keep: usize) {
        self.past = (self.past + 1).min(self.packets.len());
        self.forget(keep);
    }

    /// Drops all but the last `keep` past packets.
    pub(super) fn forget(&mut self, keep: usize) {
        while self.past > keep {
            self.past -= 1;
            self.drop_front();
        }
    }

    fn drop_front(&mut self) {
        let Some(mut packet) = self.packets.pop_front() else {
            return;
        };
        self.bytes -= packet.payload.len();
        packet.payload.clear();
        if self.spare.len() < MOST_SPARE && packet.payload.capacity() <= LONGEST_SPARE {
            self.spare.push(packet.payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(seq: i64) -> Waiting {
        Waiting {
            seq,
            media: seq * 960,
            len: 960,
            ..Waiting::default()
        }
    }

    #[test]
    fn packets_wait_in_order_once() {
        let mut buffer = Buffer::default();
        for seq in [3, 1, 2, 5] {
            assert_eq!(buffer.insert(packet(seq), &[1, 2]), Inserted::Yes);
        }
        assert_eq!(buffer.insert(packet(2), &[]), Inserted::Duplicate);
        assert_eq!(
            buffer.insert(
                Waiting {
                    media: 960,
                    ..packet(4)
                },
                &[]
            ),
            Inserted::Misfit
        );
        assert_eq!(
            buffer
                .waiting()
                .map(|packet| packet.seq)
                .collect::<Vec<_>>(),
            [1, 2, 3, 5]
        );
        for _ in 0..3 {
            buffer.pass(2);
        }
        assert_eq!(buffer.front().map(|packet| packet.seq), Some(5));
        assert_eq!(buffer.before().count(), 0, "4 is missing");
        assert_eq!(buffer.insert(packet(4), &[]), Inserted::Yes);
        assert_eq!(
            buffer.before().map(|packet| packet.seq).collect::<Vec<_>>(),
            [2, 3]
        );
        assert_eq!(buffer.insert(packet(1), &[]), Inserted::Misfit, "past");
    }

    #[test]
    fn packets_and_bytes_are_bounded() {
        let mut buffer = Buffer::default();
        let taken = (0..1_000)
            .filter(|seq| buffer.insert(packet(*seq), &[0; 10]) == Inserted::Yes)
            .count();
        assert_eq!(taken, MOST_PACKETS);
        let mut buffer = Buffer::default();
        let taken = (0..1_000)
            .filter(|seq| buffer.insert(packet(*seq), &[0; 1_400]) == Inserted::Yes)
            .count();
        assert_eq!(taken, MOST_BYTES / 1_400);
    }

    proptest! {
        #[test]
        fn order_and_count_of_bytes_hold(steps in prop::collection::vec((-20_i64..20, 0_usize..30, any::<bool>()), 0..200)) {
            let mut buffer = Buffer::default();
            for (seq, len, pass) in steps {
                buffer.insert(packet(seq), &vec![0; len]);
                if pass {
                    buffer.pass(2);
                }
                prop_assert!(buffer.packets.iter().zip(buffer.packets.iter().skip(1)).all(|(a, b)| a.seq < b.seq));
                prop_assert_eq!(buffer.bytes, buffer.packets.iter().map(|packet| packet.payload.len()).sum::<usize>());
                prop_assert!(buffer.past <= 2 && buffer.past <= buffer.packets.len());
            }
        }
    }
}
