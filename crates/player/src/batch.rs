//! Batches of packets, read ahead of their time.

use std::ops::Range;
use std::time::Duration;

use portunus_files::{FileError, Play, Sent};

/// The duration that is read at once.
const AHEAD: Duration = Duration::from_millis(250);

/// The bytes that are read at once, for files with large frames.
const AHEAD_BYTES: usize = 1 << 20;

/// A damaged file that loops starts again if it played at least this long before the damage.
const WORTHWHILE: Duration = Duration::from_secs(1);

/// A batch of packets.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) error: Option<FileError>,
    /// Whether it is the last one.
    pub(crate) ends: bool,
}

#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) track: usize,
    pub(crate) at: Duration,
    pub(crate) presented: Duration,
    pub(crate) sequence: u16,
    pub(crate) timestamp: u32,
    range: Range<usize>,
}

impl Batch {
    /// Fills `self` with the packets at `position` of the file, to be sent right after the last
    /// packet. It blocks.
    pub(crate) fn read_at(
        mut file: Box<dyn Play>,
        sent: &Sent,
        position: Duration,
        mut batch: Self,
    ) -> (Box<dyn Play>, Self) {
        match file.seek_behind(sent, position) {
            Ok(()) => Self::read(file, batch),
            Err(error) => {
                batch.packets.clear();
                batch.ends = file.seek_behind(sent, Duration::ZERO).is_err();
                batch.error = Some(error);
                (file, batch)
            }
        }
    }

    /// Fills `self` with the next packets. It blocks.
    pub(crate) fn read(mut file: Box<dyn Play>, mut batch: Self) -> (Box<dyn Play>, Self) {
        batch.bytes.clear();
        batch.packets.clear();
        batch.error = None;
        batch.ends = false;
        let mut until = None;
        while batch.bytes.len() < AHEAD_BYTES {
            match file.next() {
                Some(Ok(packet)) => {
                    let from = batch.bytes.len();
                    batch.bytes.extend_from_slice(packet.bytes);
                    batch.packets.push(Packet {
                        track: packet.track,
                        at: packet.at,
                        presented: packet.presented,
                        sequence: sequence(packet.bytes),
                        timestamp: timestamp(packet.bytes),
                        range: from..batch.bytes.len(),
                    });
                    if packet.at >= *until.get_or_insert(packet.at + AHEAD) {
                        break;
                    }
                }
                Some(Err(error)) => {
                    batch.error = Some(error);
                    batch.ends = !file.is_looping()
                        || file.played() < WORTHWHILE
                        || file.seek(Duration::ZERO).is_err();
                    break;
                }
                None => {
                    batch.ends = true;
                    break;
                }
            }
        }
        (file, batch)
    }

    /// Returns a packet of this batch with this RTP timestamp. A message stays as it is.
    pub(crate) fn stamped(&mut self, packet: usize, timestamp: Option<u32>) -> Option<&[u8]> {
        let range = self.packets.get(packet)?.range.clone();
        let bytes = self.bytes.get_mut(range)?;
        if let Some((timestamp, field)) = timestamp.zip(bytes.get_mut(4..8)) {
            field.copy_from_slice(&timestamp.to_be_bytes());
        }
        Some(bytes)
    }
}

/// Returns the sequence number of an RTP packet.
fn sequence(packet: &[u8]) -> u16 {
    let bytes = packet.get(2..4).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// Returns the timestamp of an RTP packet.
fn timestamp(packet: &[u8]) -> u32 {
    let bytes = packet.get(4..8).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use portunus_files::{MediaFile, OpenOptions};

    use super::*;

    fn tone(seconds: usize, looping: bool) -> Box<dyn Play> {
        let options = OpenOptions {
            looping,
            ..OpenOptions::default()
        };
        let samples = std::io::Cursor::new(vec![0xd5; seconds * 8_000]);
        Box::new(MediaFile::from_reader(samples, "alaw", &options).unwrap())
    }

    #[test]
    fn batches_are_bounded_and_follow_one_another() {
        let (mut file, mut batch) = Batch::read(tone(1, true), Batch::default());
        let mut expected = Duration::ZERO;
        for _ in 0..20 {
            assert!((12..=14).contains(&batch.packets.len()));
            for packet in &batch.packets {
                assert_eq!(packet.at, expected);
                assert_eq!(batch.bytes[packet.range.clone()].len(), 172);
                expected += Duration::from_millis(20);
            }
            (file, batch) = Batch::read(file, batch);
        }
    }

    #[test]
    fn the_last_batch_says_so() {
        let (file, batch) = Batch::read(tone(1, false), Batch::default());
        assert!(!batch.ends);
        let rest = (0..4).fold((file, batch), |(file, batch), _| Batch::read(file, batch));
        assert!(rest.1.ends && rest.1.error.is_none());
    }

    #[test]
    fn a_batch_after_a_seek_follows_what_was_sent() {
        let (file, batch) = Batch::read(tone(10, true), Batch::default());
        let mut sent = file.nothing_sent();
        let (gone, first) = (&batch.packets[..4], batch.packets[0].sequence);
        for packet in gone {
            sent.add(packet.track, packet.sequence, packet.at, packet.presented);
        }
        let start = batch.packets[0].timestamp;
        // Two batches more than were sent, as while playing.
        let (file, batch) = Batch::read(file, batch);
        let (file, batch) = Batch::read(file, batch);
        let (_, batch) = Batch::read_at(file, &sent, Duration::from_secs(5), batch);
        let next = &batch.packets[0];
        assert_eq!(next.sequence, first.wrapping_add(4));
        assert_eq!(next.timestamp.wrapping_sub(start), 4 * 160);
        assert_eq!(next.at, Duration::from_millis(80));
    }
}
