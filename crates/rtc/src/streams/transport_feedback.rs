//! Arrival times of packets, for transport-wide feedback
//! (draft-holmer-rmcat-transport-wide-cc-extensions).

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

/// The most arrivals kept until the next feedback: 30,000 packets/s of one peer at 100 ms.
const MAX_ARRIVALS: usize = 3_000;

/// The arrivals since the last feedback.
#[derive(Debug)]
pub struct ArrivalLog {
    epoch: Instant,
    arrivals: Vec<(u64, Duration)>,
    /// The arrivals of the last feedback. A late packet reports them again.
    told: Vec<(u64, Duration)>,
    /// The same with wire numbers, in order.
    sorted: Vec<(u16, Duration)>,
    highest: Option<u64>,
    /// The first number that the next feedback reports on.
    base: Option<u64>,
    /// The first number that the last feedback should have reported on.
    taken_base: u64,
    feedback_count: u8,
}

/// The contents of a feedback packet.
#[derive(Debug, PartialEq, Eq)]
pub struct ArrivalReport<'a> {
    /// The number of the feedback packet.
    pub count: u8,
    /// The first transport sequence number that it reports on.
    pub base: u16,
    /// Transport sequence numbers with their arrival times, in order.
    pub arrivals: &'a [(u16, Duration)],
}

impl ArrivalLog {
    /// Makes an empty log. Times count from `epoch`.
    pub fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            arrivals: Vec::new(),
            told: Vec::new(),
            sorted: Vec::new(),
            highest: None,
            base: None,
            taken_base: 0,
            feedback_count: 0,
        }
    }

    /// Records the arrival of a packet with the transport sequence number `wire`. It is reported
    /// lost if the log is full.
    pub fn record(&mut self, wire: u16, now: Instant) {
        let extended = self
            .highest
            .map_or(u64::from(wire), |h| SeqNo(h).nearest(wire).0);
        self.highest = self.highest.max(Some(extended));
        self.base.get_or_insert(extended);
        if self.arrivals.len() < MAX_ARRIVALS {
            self.arrivals
                .push((extended, now.saturating_duration_since(self.epoch)));
        }
    }

    /// Returns whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Takes the arrivals for the next feedback.
    pub fn take(&mut self) -> ArrivalReport<'_> {
        self.sort();
        self.sorted.clear();
        let first = self.arrivals.first().map_or(0, |(seq, _)| *seq);
        let base = self.base.map_or(first, |base| base.min(first));
        if self.base.is_some_and(|expected| first < expected) {
            // A packet arrived late. Those after it are reported again, or they would seem lost.
            let after = self.told.iter().filter(|(seq, _)| *seq > first);
            self.arrivals.extend(after);
            self.sort();
        }
        self.told.clone_from(&self.arrivals);
        self.taken_base = base;
        self.base = self.arrivals.last().map(|(seq, _)| seq.saturating_add(1));
        self.sorted
            .extend(self.arrivals.drain(..).map(|(seq, at)| (seq as u16, at)));
        let count = self.feedback_count;
        self.feedback_count = count.wrapping_add(1);
        ArrivalReport {
            count,
            base: base as u16,
            arrivals: &self.sorted,
        }
    }

    fn sort(&mut self) {
        self.arrivals.sort_unstable_by_key(|(seq, _)| *seq);
        self.arrivals.dedup_by_key(|(seq, _)| *seq);
    }

    /// Puts back the arrivals after the first `reported`, which did not fit the feedback packet.
    pub fn put_back(&mut self, reported: usize) {
        let highest = SeqNo(self.highest.unwrap_or(0));
        let Some(rest) = self.sorted.get(reported..).filter(|rest| !rest.is_empty()) else {
            return;
        };
        // Losses before the rest still have to be reported.
        let last = reported
            .checked_sub(1)
            .and_then(|last| self.sorted.get(last));
        self.base = Some(last.map_or(self.taken_base, |(wire, _)| highest.nearest(*wire).0 + 1));
        let rest = rest
            .iter()
            .map(|(wire, at)| (highest.nearest(*wire).0, *at));
        self.arrivals.extend(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_sorted_over_the_wrap_and_told_once() {
        let now = Instant::now();
        let mut log = ArrivalLog::new(now);
        for wire in [65_534, 0, 65_535, 0, 1] {
            log.record(wire, now);
        }
        let report = log.take();
        let seqs: Vec<u16> = report.arrivals.iter().map(|(seq, _)| *seq).collect();
        assert_eq!((report.count, report.base), (0, 65_534));
        assert_eq!(seqs, [65_534, 65_535, 0, 1]);
        log.put_back(3);
        let rest = ArrivalReport {
            count: 1,
            base: 1,
            arrivals: &[(1, Duration::ZERO)],
        };
        assert_eq!(log.take(), rest);
        log.record(5, now);
        assert_eq!(log.take().base, 2, "the gap before is reported as lost");
    }

    #[test]
    fn a_late_packet_does_not_make_others_seem_lost() {
        let now = Instant::now();
        let mut log = ArrivalLog::new(now);
        for wire in [1, 2, 4, 5] {
            log.record(wire, now);
        }
        log.take();
        log.record(7, now);
        log.record(3, now);
        let report = log.take();
        let seqs: Vec<u16> = report.arrivals.iter().map(|(seq, _)| *seq).collect();
        assert_eq!((report.base, &seqs[..]), (3, &[3, 4, 5, 7][..]));
        log.record(8, now);
        assert_eq!(log.take().base, 8);
    }

    #[test]
    fn what_is_lost_before_the_part_put_back_is_reported_with_it() {
        let now = Instant::now();
        let mut log = ArrivalLog::new(now);
        for wire in [10, 11, 14, 15] {
            log.record(wire, now);
        }
        log.take();
        log.put_back(2);
        assert_eq!(log.take().base, 12);
        log.record(18, now);
        log.take();
        log.put_back(0);
        assert_eq!(log.take().base, 16, "nothing was reported of it");
    }
}
