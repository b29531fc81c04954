//! Unwrapping of sequence numbers and timestamps, and detection of restarted streams.

use std::time::Duration;

use portunus_rtp::Header;

use crate::demux::Nanos;

/// A sequence number this far from the last one belongs to a restarted stream.
const FAR: i32 = 3_000;

/// Timestamps that deviate by more than this from the elapsed time, or go back by it, belong to a
/// restarted stream.
const JUMP: Nanos = 2_000_000_000;

/// The order of packets: stretches follow one another, and numbers rise within a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub stretch: u32,
    pub sequence: i64,
}

/// Unwraps the packets of a track in the order of their arrivals.
#[derive(Debug)]
pub(crate) struct Unwrap {
    rate: u32,
    stretch: u32,
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    ssrc: u32,
    sequence: i64,
    ticks: i64,
    arrival: Nanos,
}

impl Unwrap {
    /// Returns the state for timestamps of this clock rate.
    pub(crate) fn new(rate: u32) -> Self {
        Self {
            rate,
            stretch: 0,
            last: None,
        }
    }

    /// Returns the place of a packet in the order, and the time of its timestamp within its
    /// stretch.
    pub(crate) fn packet(&mut self, header: &Header, arrival: Duration) -> (Key, Nanos) {
        let arrival = Nanos::try_from(arrival.as_nanos()).unwrap_or(Nanos::MAX);
        let goes_on = self
            .last
            .and_then(|last| self.following(last, header, arrival));
        let next = goes_on.unwrap_or_else(|| {
            self.stretch = self.stretch.saturating_add(1);
            Last {
                ssrc: header.ssrc.0,
                sequence: header.sequence.into(),
                ticks: header.timestamp.into(),
                arrival,
            }
        });
        // Late packets do not delay the newest one.
        let newest = self
            .last
            .filter(|last| goes_on.is_some() && last.sequence > next.sequence);
        self.last = Some(newest.unwrap_or(next));
        let key = Key {
            stretch: self.stretch,
            sequence: next.sequence,
        };
        (key, self.time(next.ticks))
    }

    /// Returns the packet as the successor of `last`, if it can be.
    fn following(&self, last: Last, header: &Header, arrival: Nanos) -> Option<Last> {
        let steps = header.sequence.wrapping_sub(last.sequence as u16) as i16;
        let ticks = header.timestamp.wrapping_sub(last.ticks as u32) as i32;
        let (passed, came) = (
            self.time(ticks.into()),
            arrival.saturating_sub(last.arrival),
        );
        let is_same = last.ssrc == header.ssrc.0
            && i32::from(steps).abs() <= FAR
            && passed > -JUMP
            && passed.saturating_sub(came) < JUMP;
        is_same.then(|| Last {
            ssrc: last.ssrc,
            sequence: last.sequence.saturating_add(steps.into()),
            ticks: last.ticks.saturating_add(ticks.into()),
            arrival,
        })
    }

    fn time(&self, ticks: i64) -> Nanos {
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.rate.max(1));
        Nanos::try_from(nanos).unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portunus_rtp::Ssrc;

    fn header(sequence: u16, timestamp: u32, ssrc: u32) -> Header {
        let mut header = Header::default();
        (header.sequence, header.timestamp, header.ssrc) = (sequence, timestamp, Ssrc(ssrc));
        header
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn numbers_and_times_go_on_where_they_wrap() {
        let mut unwrap = Unwrap::new(8_000);
        let (first, start) = unwrap.packet(&header(65_534, u32::MAX - 159, 1), ms(0));
        let (late, _) = unwrap.packet(&header(65_533, u32::MAX - 319, 1), ms(5));
        let (next, time) = unwrap.packet(&header(1, 320, 1), ms(60));
        assert_eq!(late.sequence, first.sequence - 1);
        assert_eq!(next.sequence, first.sequence + 3);
        assert_eq!((next.stretch, time - start), (first.stretch, 60_000_000));
    }

    #[test]
    fn another_source_and_another_clock_begin_anew() {
        let mut unwrap = Unwrap::new(90_000);
        let mut stretch = |sequence, timestamp, ssrc, at| {
            unwrap
                .packet(&header(sequence, timestamp, ssrc), ms(at))
                .0
                .stretch
        };
        assert_eq!(stretch(10, 0, 1, 0), 1);
        assert_eq!(stretch(11, 0, 2, 10), 2);
        assert_eq!(stretch(20_000, 900, 2, 20), 3);
        assert_eq!(stretch(20_001, 1_000_000_000, 2, 30), 4);
        assert_eq!(stretch(20_002, 100, 2, 40), 5);
        // At least as much time passed as the timestamps say: the sender was delayed or paused.
        assert_eq!(stretch(20_003, 100 + 90_000 * 60, 2, 60_040), 5);
        assert_eq!(stretch(20_004, 190 + 90_000 * 60, 2, 90_000), 5);
    }
}
