//! The positions of packets on the timeline of their file.

use std::time::{Duration, Instant};

use portunus_files::opus::OpusTime;

/// The most by which timestamps may be ahead of the elapsed time. It exceeds all delays and clock
/// drifts.
const AHEAD: Duration = Duration::from_secs(5);

/// Converts RTP timestamps to the time since the first packet. Timestamps that jump back, or far
/// ahead of the elapsed time, mean that the sender has restarted: its packets continue at their
/// arrival.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    timestamp: u32,
    at: OpusTime,
    /// The arrival of the first packet, which is at 0.
    start: Instant,
}

impl Timeline {
    /// Returns the start of the next packet. `end` is the earliest start if the sender has
    /// restarted.
    pub(crate) fn place(&mut self, timestamp: u32, arrival: Instant, end: OpusTime) -> OpusTime {
        let last = self.last.get_or_insert(Last {
            timestamp,
            at: OpusTime(0),
            start: arrival,
        });
        let passed = OpusTime::from(arrival.saturating_duration_since(last.start));
        let step = timestamp.wrapping_sub(last.timestamp);
        let at = last.at.plus(OpusTime(step.into()));
        let goes_on = step.cast_signed() >= 0 && at <= passed.plus(AHEAD.into());
        last.at = if goes_on { at } else { passed.max(end) };
        last.timestamp = timestamp;
        last.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the positions in ms of packets with these timestamps and arrivals in ms.
    fn place(packets: &[(u32, u64)]) -> Vec<u64> {
        let start = Instant::now();
        let mut timeline = Timeline::default();
        let mut end = OpusTime(0);
        let place = |(timestamp, at): &(u32, u64)| {
            let arrival = start + Duration::from_millis(*at);
            let timestamp = (timestamp * 48).wrapping_sub(1_000);
            let placed = timeline.place(timestamp, arrival, end);
            end = end.max(placed.plus(OpusTime(960)));
            placed.0 / 48
        };
        packets.iter().map(place).collect()
    }

    #[test]
    fn delays_and_losses_change_nothing() {
        let packets = [
            (0, 0),
            (20, 90),
            (40, 91),
            (4_000, 3_990),
            (4_020, 9_000),
            (9_000, 9_001),
        ];
        assert_eq!(place(&packets), [0, 20, 40, 4_000, 4_020, 9_000]);
    }

    #[test]
    fn a_sender_that_begins_anew_goes_on_where_it_comes() {
        let packets = [(0, 0), (60_000, 20), (60_020, 40), (7, 1_000), (27, 1_020)];
        assert_eq!(place(&packets), [0, 20, 40, 1_000, 1_020]);
        // Never before the end so far.
        assert_eq!(place(&[(5_000, 0), (5_100, 1), (0, 2)]), [0, 100, 120]);
    }

    #[test]
    fn a_file_is_not_longer_than_the_time_that_passes() {
        let hostile: Vec<_> = (0..1_000).map(|n| (n * 4_900, u64::from(n))).collect();
        let placed = place(&hostile);
        assert!(
            placed.iter().all(|at| *at <= 1_000 * 20 + 5_000),
            "{placed:?}"
        );
    }
}
