//! Where packets of a stream are on the time line of its file.

use std::time::{Duration, Instant};

use portunus_files::opus::OpusTime;

/// So far the timestamps of a sender may be ahead of the time that has passed: more than delays and clocks come to.
const AHEAD: Duration = Duration::from_secs(5);

/// From RTP timestamps to the time since the first packet. Timestamps that jump back, or ahead of the time that passes, are
/// those of a sender that began anew: its packets go on where they came.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    timestamp: u32,
    at: OpusTime,
    /// When the first packet came, which is at 0.
    start: Instant,
}

impl Timeline {
    /// Where a packet begins, which is the next in order; `end` is where that is at the earliest if the sender began anew.
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

    /// Timestamps in ms with the ms at which they come; where they are in ms.
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
        // Not before what there is.
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
