//! The places of packets on a timeline without jumps.
//!
//! All times are in samples of 48 kHz since the first packet came, independent of the codec's
//! clock.

use std::time::Instant;

/// The samples of the timeline in a second and in a ms.
pub(super) const SECOND: i64 = 48_000;
pub(super) const MS: i64 = 48;

/// A greater difference between the sender's time and ours is a jump.
const JUMP: i64 = SECOND;
/// The greatest misordering of packets. Older ones belong to another stream (RFC 3550 appendix
/// A.1).
const MOST_MISORDERED: i64 = 100;
/// The greatest number of packets lost in a row. Later ones belong to another stream.
const MOST_LOST: i64 = 3_000;

/// The place of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number in the order of sending.
    pub seq: i64,
    /// The sender's time of its first sample.
    pub media: i64,
    /// Its arrival by our clock.
    pub arrival: i64,
    /// Whether another stream starts here, whose codec has a new state.
    pub anew: bool,
}

/// Assigns places to packets.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    epoch: Option<Instant>,
    last: Option<Last>,
    /// The number after that of a packet that did not fit. If it comes next, there is another
    /// stream.
    suspect: Option<u64>,
}

/// The packet that is furthest in the order of sending.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Its own sequence number.
    sent_seq: u64,
    timestamp: u32,
    /// Its number on the timeline.
    seq: i64,
    media: i64,
}

impl Timeline {
    /// Returns our time.
    pub(super) fn time(&self, now: Instant) -> i64 {
        let Some(epoch) = self.epoch else { return 0 };
        let micros = now.saturating_duration_since(epoch).as_micros();
        i64::try_from(micros).unwrap_or(i64::MAX).saturating_mul(6) / 125
    }

    /// Returns the place of a packet. `scale` is the number of samples of 48 kHz per timestamp
    /// step, and `least` the recent least transit. Returns `None` if it does not fit, unless it is
    /// the second one in a row.
    pub(super) fn place(
        &mut self,
        sent_seq: u64,
        timestamp: u32,
        scale: u32,
        arrival: Instant,
        least: i64,
    ) -> Option<Place> {
        self.epoch.get_or_insert(arrival);
        let arrival = self.time(arrival);
        let Some(last) = self.last else {
            self.last = Some(Last {
                sent_seq,
                timestamp,
                seq: 0,
                media: arrival,
            });
            return Some(Place {
                seq: 0,
                media: arrival,
                arrival,
                anew: true,
            });
        };
        let ahead =
            i64::try_from(i128::from(sent_seq) - i128::from(last.sent_seq)).unwrap_or(i64::MAX);
        let fits = (-MOST_MISORDERED..=MOST_LOST).contains(&ahead);
        let anew = !fits && self.suspect == Some(sent_seq);
        self.suspect = None;
        // The time at which it would have come with the least transit.
        let in_time = |after: i64| (arrival - least).max(after);
        if anew {
            let place = Place {
                seq: last.seq + 1,
                media: in_time(last.media + MS),
                arrival,
                anew,
            };
            self.last = Some(Last {
                sent_seq,
                timestamp,
                seq: place.seq,
                media: place.media,
            });
            return Some(place);
        }
        if !fits {
            self.suspect = Some(sent_seq.wrapping_add(1));
            return None;
        }
        let step =
            i64::from(timestamp.wrapping_sub(last.timestamp).cast_signed()) * i64::from(scale);
        let mut place = Place {
            seq: last.seq + ahead,
            media: last.media + step,
            arrival,
            anew,
        };
        let waited = arrival - place.media - least;
        if ahead > 0 {
            if waited.abs() > JUMP || step <= 0 {
                place.media = in_time(last.media + MS);
            }
            self.last = Some(Last {
                sent_seq,
                timestamp,
                seq: place.seq,
                media: place.media,
            });
        } else if waited.abs() > 2 * JUMP {
            return None;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::time::Duration;

    use super::*;

    struct Sender {
        timeline: Timeline,
        epoch: Instant,
    }

    impl Sender {
        fn new() -> Self {
            Self {
                timeline: Timeline::default(),
                epoch: Instant::now(),
            }
        }

        fn place(&mut self, seq: u64, timestamp: u32, ms: u64) -> Option<Place> {
            self.timeline
                .place(seq, timestamp, 1, self.epoch + Duration::from_millis(ms), 0)
        }
    }

    #[test]
    fn times_follow_the_senders_clock_over_its_wrap() {
        let mut sender = Sender::new();
        assert_eq!(sender.place(65_535, u32::MAX - 959, 0).unwrap().media, 0);
        assert_eq!(
            sender.place(65_536, 0, 21).unwrap(),
            Place {
                seq: 1,
                media: 960,
                arrival: 21 * MS,
                anew: false
            }
        );
        let early = sender.place(65_534, u32::MAX - 1_919, 22).unwrap();
        assert_eq!((early.seq, early.media), (-1, -960), "out of order");
    }

    #[test]
    fn a_jump_of_the_senders_clock_is_none_of_ours() {
        let mut sender = Sender::new();
        sender.place(0, 1_000, 0);
        let jumped = sender.place(1, 700_000_000, 20).unwrap();
        assert_eq!((jumped.seq, jumped.media), (1, 960));
        assert_eq!(sender.place(2, 700_000_960, 40).unwrap().media, 1_920);
        // The sender's clock stood still during silence.
        assert_eq!(
            sender.place(3, 700_001_920, 60_000).unwrap().media,
            60 * SECOND
        );
        // A timestamp that does not change.
        assert!(sender.place(4, 700_001_920, 60_020).unwrap().media > 60 * SECOND);
    }

    #[test]
    fn another_stream_is_taken_at_its_second_packet() {
        let mut sender = Sender::new();
        sender.place(50_000, 0, 0);
        sender.place(50_001, 960, 20);
        assert_eq!(sender.place(7, 5_555, 40), None);
        let second = sender.place(8, 6_515, 60).unwrap();
        assert_eq!((second.seq, second.media, second.anew), (2, 2_880, true));
        assert_eq!(
            sender.place(50_002, 1_920, 61),
            None,
            "what is left of the first"
        );
        assert_eq!(sender.place(9, 7_475, 80).unwrap().media, 3_840);
    }
}
