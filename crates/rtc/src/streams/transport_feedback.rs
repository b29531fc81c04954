//! When packets arrived, for transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions).

use std::time::Instant;

/// Arrivals kept until the next feedback; at 100 ms that is 30,000 packets/s of one peer.
const MAX_ARRIVALS: usize = 3_000;

/// The arrivals since the last feedback.
#[derive(Debug, Default)]
pub struct ArrivalLog {
    arrivals: Vec<(u64, Instant)>,
    highest: Option<u64>,
    feedback_count: u8,
    /// Arrivals that found no room.
    dropped: u64,
}

impl ArrivalLog {
    /// A packet with transport sequence number `wire` arrived.
    pub fn record(&mut self, wire: u16, now: Instant) {
        let extended = match self.highest {
            Some(highest) => portunus_rtp::SeqNo(highest).nearest(wire).0,
            None => u64::from(wire),
        };
        self.highest = self.highest.max(Some(extended));
        if self.arrivals.len() < MAX_ARRIVALS {
            self.arrivals.push((extended, now));
        } else {
            self.dropped += 1;
        }
    }

    /// Whether there is something to report.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// The arrivals in order of their numbers, each number once; the log is to be cleared after use.
    pub fn sorted(&mut self) -> &[(u64, Instant)] {
        self.arrivals.sort_unstable_by_key(|(seq, _)| *seq);
        self.arrivals.dedup_by_key(|(seq, _)| *seq);
        &self.arrivals
    }

    /// The number of the next feedback packet (8 bits).
    pub fn next_feedback(&mut self) -> u8 {
        let count = self.feedback_count;
        self.feedback_count = count.wrapping_add(1);
        count
    }

    /// Forgets what was reported.
    pub fn clear(&mut self) {
        self.arrivals.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_sorted_over_the_wrap_and_told_once() {
        let now = Instant::now();
        let mut log = ArrivalLog::default();
        for wire in [65_534, 0, 65_535, 0, 1] {
            log.record(wire, now);
        }
        let seqs: Vec<u64> = log.sorted().iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, [65_534, 65_535, 65_536, 65_537]);
    }
}
