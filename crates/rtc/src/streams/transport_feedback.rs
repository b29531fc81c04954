//! When packets arrived, for transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions).

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

/// Arrivals kept until the next feedback; at 100 ms that is 30,000 packets/s of one peer.
const MAX_ARRIVALS: usize = 3_000;

/// The arrivals since the last feedback.
#[derive(Debug)]
pub struct ArrivalLog {
    epoch: Instant,
    arrivals: Vec<(u64, Duration)>,
    /// The arrivals of the last feedback, which a late one brings in again.
    told: Vec<(u64, Duration)>,
    /// The same as the wire has it, in order.
    sorted: Vec<(u16, Duration)>,
    highest: Option<u64>,
    /// The first number that the next feedback reports on.
    base: Option<u64>,
    /// The first number that the last feedback was to report on.
    taken_base: u64,
    feedback_count: u8,
}

impl ArrivalLog {
    /// An empty log; times count from `epoch`.
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

    /// A packet with transport sequence number `wire` arrived. What finds no room is reported lost.
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

    /// Whether there is something to report.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Hands out the number of the feedback, the first number it reports on, and the arrivals in order.
    pub fn take(&mut self) -> (u8, u16, &[(u16, Duration)]) {
        self.sort();
        self.sorted.clear();
        let first = self.arrivals.first().map_or(0, |(seq, _)| *seq);
        let base = self.base.map_or(first, |base| base.min(first));
        if self.base.is_some_and(|expected| first < expected) {
            // One came late: what follows it is reported once more, or it would seem to be lost.
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
        (count, base as u16, &self.sorted)
    }

    fn sort(&mut self) {
        self.arrivals.sort_unstable_by_key(|(seq, _)| *seq);
        self.arrivals.dedup_by_key(|(seq, _)| *seq);
    }

    /// Puts back what found no room in the feedback packet: all after the first `reported`.
    pub fn put_back(&mut self, reported: usize) {
        let highest = SeqNo(self.highest.unwrap_or(0));
        let Some(rest) = self.sorted.get(reported..).filter(|rest| !rest.is_empty()) else {
            return;
        };
        // What is lost before the rest is still to be reported.
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
        let (count, base, arrivals) = log.take();
        let seqs: Vec<u16> = arrivals.iter().map(|(seq, _)| *seq).collect();
        assert_eq!((count, base), (0, 65_534));
        assert_eq!(seqs, [65_534, 65_535, 0, 1]);
        log.put_back(3);
        assert_eq!(log.take(), (1, 1, &[(1, Duration::ZERO)][..]));
        log.record(5, now);
        assert_eq!(log.take().1, 2, "the gap before is reported as lost");
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
        let (_, base, arrivals) = log.take();
        let seqs: Vec<u16> = arrivals.iter().map(|(seq, _)| *seq).collect();
        assert_eq!((base, &seqs[..]), (3, &[3, 4, 5, 7][..]));
        log.record(8, now);
        assert_eq!(log.take().1, 8);
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
        assert_eq!(log.take().1, 12);
        log.record(18, now);
        log.take();
        log.put_back(0);
        assert_eq!(log.take().1, 16, "nothing was reported of it");
    }
}
