//! The successive SSRCs of an encoding as one stream of numbers.
//!
//! A relay seals packets with numbers made from the incoming ones. Each SSRC starts with a number
//! of its own choice. Without this, a peer that changes its SSRC would cause other packets to be
//! sealed with used numbers, which SRTP forbids.

use std::time::{Duration, Instant};

use portunus_rtp::{SeqNo, Ssrc};

/// A packet of the previous SSRC within this time was overtaken by the change.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The SSRCs of one encoding, one at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Succession {
    present: Option<Ssrc>,
    /// The previous SSRC, and when it ended.
    before: Option<(Ssrc, Instant)>,
    /// The number of the current SSRC's first packet. 0 for the very first SSRC, whose first packet
    /// may have been overtaken.
    first: SeqNo,
    /// The number added to its numbers, modulo 2^64.
    offset: u64,
    highest: SeqNo,
    generation: u8,
}

impl Succession {
    /// Takes note of a packet's SSRC. Returns `None` for a late packet of the previous SSRC, and
    /// true if the SSRC is new.
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

    /// Returns the number within the encoding for a packet of the current SSRC. Returns `None` if
    /// it was overtaken by the first one.
    pub fn number(&mut self, seq: SeqNo) -> Option<SeqNo> {
        if seq < self.first {
            return None;
        }
        let number = SeqNo(seq.0.wrapping_add(self.offset));
        self.highest = self.highest.max(number);
        Some(number)
    }

    /// Returns a number that changes with the SSRC. Timestamps and picture ids jump between
    /// generations.
    pub fn generation(&self) -> u8 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
