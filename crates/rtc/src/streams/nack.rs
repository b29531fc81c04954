//! Missing packets of a stream, and when to request them again (RFC 4585 section 6.2.1).

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

/// When and how often a packet is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NackLimits {
    /// The first wait, for packets that were merely reordered.
    pub first_after: Duration,
    /// The least time between two requests for a packet. A longer round trip takes precedence.
    pub again_after: Duration,
    /// The requests for a packet before it counts as lost.
    pub tries: u8,
    /// The most packets awaited at once. A larger gap counts as lost as a whole.
    pub pending: usize,
    /// The age at which a missing packet is useless.
    pub lifetime: Duration,
}

impl Default for NackLimits {
    fn default() -> Self {
        Self {
            first_after: Duration::from_millis(10),
            again_after: Duration::from_millis(30),
            tries: 10,
            pending: 512,
            lifetime: Duration::from_secs(1),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Missing {
    seq: SeqNo,
    since: Instant,
    due: Instant,
    tries: u8,
}

/// The missing packets of one stream.
#[derive(Debug, Default)]
pub struct MissingPackets {
    limits: NackLimits,
    missing: Vec<Missing>,
}

impl MissingPackets {
    /// Adds the packets after `last` and before `seq`. Returns false if there are too many: nothing
    /// is awaited any more, and only a keyframe helps.
    pub fn gap(&mut self, last: SeqNo, seq: SeqNo, now: Instant) -> bool {
        let count = seq.0.saturating_sub(last.0.saturating_add(1));
        let room = self.limits.pending.saturating_sub(self.missing.len());
        if usize::try_from(count).is_ok_and(|count| count <= room) {
            let due = now + self.limits.first_after;
            let gap = (last.0.saturating_add(1)..seq.0).map(SeqNo);
            self.missing.extend(gap.map(|seq| Missing {
                seq,
                since: now,
                due,
                tries: 0,
            }));
            return true;
        }
        self.missing.clear();
        false
    }

    /// Takes note of an arrived packet. Returns whether it was missing.
    pub fn arrived(&mut self, seq: SeqNo) -> bool {
        match self.missing.iter().position(|missing| missing.seq == seq) {
            Some(at) => {
                self.missing.remove(at);
                true
            }
            None => false,
        }
    }

    /// Passes on the packets to request now, in order. Returns how many count as lost.
    pub fn due(&mut self, now: Instant, round_trip: Duration, mut ask: impl FnMut(SeqNo)) -> usize {
        let limits = self.limits;
        let before = self.missing.len();
        self.missing.retain_mut(|missing| {
            if missing.due > now {
                return true;
            }
            if missing.tries >= limits.tries || now - missing.since > limits.lifetime {
                return false;
            }
            missing.tries += 1;
            missing.due = now + limits.again_after.max(round_trip);
            ask(missing.seq);
            true
        });
        before - self.missing.len()
    }

    /// Returns when [`MissingPackets::due`] is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.missing.iter().map(|missing| missing.due).min()
    }

    /// Forgets all missing packets.
    pub fn clear(&mut self) {
        self.missing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(missing: &mut MissingPackets, now: Instant) -> Vec<u64> {
        let mut asked = Vec::new();
        missing.due(now, Duration::ZERO, |seq| asked.push(seq.0));
        asked
    }

    #[test]
    fn reordered_packets_are_not_asked_for() {
        let start = Instant::now();
        let mut missing = MissingPackets::default();
        assert!(missing.gap(SeqNo(10), SeqNo(13), start));
        assert!(missing.arrived(SeqNo(11)));
        assert!(asked(&mut missing, start + Duration::from_millis(5)).is_empty());
        assert_eq!(asked(&mut missing, start + Duration::from_millis(10)), [12]);
    }

    #[test]
    fn a_packet_is_given_up_after_its_tries_or_its_lifetime() {
        let start = Instant::now();
        let mut missing = MissingPackets::default();
        missing.gap(SeqNo(0), SeqNo(2), start);
        let mut requests = 0;
        let mut now = start;
        while let Some(due) = missing.next_due() {
            now = due;
            requests += asked(&mut missing, now).len();
        }
        assert_eq!(requests, 10);
        assert!(now - start <= Duration::from_secs(1));
    }

    #[test]
    fn a_gap_beyond_the_bound_clears_everything() {
        let mut missing = MissingPackets::default();
        assert!(!missing.gap(SeqNo(0), SeqNo(10_000), Instant::now()));
        assert_eq!(missing.next_due(), None);
    }
}
