//! The SSRCs that an encoding has one after the other, as one stream of numbers.
//!
//! Whoever relays an encoding seals what it sends under numbers made of those that came in. Each SSRC begins with a
//! number of its own choice, so that without this a peer that changes its SSRC would have other packets sealed under
//! numbers that were used already, which SRTP must not do.

use std::time::{Duration, Instant};

use portunus_rtp::{SeqNo, Ssrc};

/// A packet of the SSRC before that comes so soon after the change was overtaken by it.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The SSRCs of one encoding, one at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Succession {
    present: Option<Ssrc>,
    /// The one before, and when it was left.
    before: Option<(Ssrc, Instant)>,
    /// The number of the present one's first packet; 0 for the first SSRC of all, which may be overtaken.
    first: SeqNo,
    /// What is added to its numbers, modulo 2^64.
    offset: u64,
    highest: SeqNo,
    generation: u8,
}

impl Succession {
    /// Takes note of a packet's SSRC. None: it is the one before the present one, and comes late. True: it is
    /// another one than before.
    pub fn admit(&mut self, ssrc: Ssrc, seq: SeqNo, now: Instant) -> Option<bool> {
        let Some(present) = self.present else {
            self.present = Some(ssrc);
            return Some(false);
        };
        if present == ssrc {
            return Some(false);
        }
        if self.before.is_some_and(|(before, left)| {
            before == ssrc && now.saturating_duration_since(left) < AFTERMATH
        }) {
            return None;
        }
        self.before = Some((present, now));
        self.present = Some(ssrc);
        self.first = seq;
        self.offset = self.highest.0.wrapping_add(1).wrapping_sub(seq.0);
        self.generation = self.generation.wrapping_add(1);
        Some(true)
    }

    /// The number of a packet of the present SSRC in the encoding's; none if it was overtaken by the first one.
    pub fn number(&mut self, seq: SeqNo) -> Option<SeqNo> {
        if seq < self.first {
            return None;
        }
        let number = SeqNo(seq.0.wrapping_add(self.offset));
        self.highest = self.highest.max(number);
        Some(number)
    }

    /// Changes with the SSRC. Between packets of different generations timestamps and picture numbers jump.
    pub fn generation(&self) -> u8 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const A: Ssrc = Ssrc(1);
    const B: Ssrc = Ssrc(2);

    #[test]
    fn numbers_go_on_over_ssrcs_and_none_comes_twice() {
        let start = Instant::now();
        let mut succession = Succession::default();
        let mut number = |ssrc, seq, ms| {
            let now = start + Duration::from_millis(ms);
            succession.admit(ssrc, SeqNo(seq), now)?;
            let number = succession.number(SeqNo(seq))?;
            Some((number.0, succession.generation()))
        };
        assert_eq!(number(A, 70_000, 0), Some((70_000, 0)));
        assert_eq!(number(A, 69_999, 0), Some((69_999, 0)), "overtaken");
        assert_eq!(number(B, 5, 10), Some((70_001, 1)));
        assert_eq!(number(B, 7, 10), Some((70_003, 1)), "a gap stays one");
        assert_eq!(number(B, 4, 10), None, "it would stand in A's place");
        assert_eq!(number(A, 70_001, 20), None, "late");
        assert_eq!(number(B, 6, 30), Some((70_002, 1)));
        assert_eq!(number(A, 70_002, 2_000), Some((70_004, 2)), "back again");
    }
}
