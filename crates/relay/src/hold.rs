//! The demand for a source, held for a while when it falls.

use std::time::{Duration, Instant};

use portunus_media::Demand;

/// How long an encoding or layer that nobody looks at is sent on: whoever comes back within this
/// time sees a picture at once, and what goes on and off does not cost a keyframe each time.
const HOLD: Duration = Duration::from_secs(5);
/// The maximum number of simulcast encodings.
const ENCODINGS: usize = 3;

/// What is asked for: all that is wanted, at once, and what was wanted lately.
#[derive(Debug, Default)]
pub(crate) struct Held {
    wanted: Demand,
    asked: Demand,
    /// Since when each encoding is not wanted, and the layers.
    since: [Option<Instant>; ENCODINGS],
    layers_since: Option<Instant>,
}

impl Held {
    /// What is asked for.
    pub(crate) fn asked(&self) -> Demand {
        self.asked
    }

    /// Takes what is wanted now. Returns whether another thing is asked for.
    pub(crate) fn want(&mut self, wanted: Demand, now: Instant) -> bool {
        let before = self.asked;
        self.wanted = wanted;
        self.asked = before.union(wanted);
        for (encoding, since) in (0..).zip(&mut self.since) {
            let falls = self.asked.wants(encoding) && !wanted.wants(encoding);
            *since = falls.then(|| since.unwrap_or(now));
        }
        let falls = self.asked.spatial > wanted.spatial || self.asked.temporal > wanted.temporal;
        let falls = falls && !wanted.is_nothing();
        self.layers_since = falls.then(|| self.layers_since.unwrap_or(now));
        self.asked != before
    }

    /// When less will be asked for.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let since = self.since.iter().flatten().chain(&self.layers_since).min();
        since.map(|since| *since + HOLD)
    }

    /// Lets go of what was not wanted for long enough. Returns whether another thing is asked for.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let before = self.asked;
        let is_over = |since: Option<Instant>| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= HOLD)
        };
        for (encoding, since) in self.since.iter_mut().enumerate() {
            if is_over(*since) {
                *since = None;
                self.asked.encodings &= !(1 << encoding);
            }
        }
        if is_over(self.layers_since) {
            self.layers_since = None;
            self.asked.spatial = self.wanted.spatial;
            self.asked.temporal = self.wanted.temporal;
        }
        if self.asked.is_nothing() {
            self.asked = Demand::NOTHING;
            self.layers_since = None;
        }
        self.asked != before
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    fn demand(encodings: u8, temporal: u8) -> Demand {
        Demand {
            encodings,
            spatial: 2,
            temporal,
        }
    }

    #[test]
    fn more_is_asked_for_at_once_and_less_after_a_while() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut held = Held::default();
        assert!(held.want(demand(7, 2), at(0)));
        assert!(!held.want(demand(1, 2), at(1)), "it is held");
        assert_eq!(held.poll_timeout(), Some(at(6)));
        assert!(!held.want(demand(3, 2), at(4)));
        assert!(held.handle_timeout(at(6)));
        assert_eq!(held.asked(), demand(3, 2));
        assert_eq!(held.poll_timeout(), None);
    }

    #[test]
    fn who_comes_back_in_time_finds_all_as_it_was() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut held = Held::default();
        held.want(demand(7, 2), at(0));
        held.want(Demand::NOTHING, at(1));
        assert!(!held.want(demand(7, 2), at(5)));
        assert!(!held.handle_timeout(at(20)));
        assert_eq!(held.asked(), demand(7, 2));
    }

    #[test]
    fn nothing_is_asked_for_when_nobody_looked_for_long() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut held = Held::default();
        held.want(demand(7, 1), at(0));
        held.want(Demand::NOTHING, at(1));
        assert!(held.handle_timeout(held.poll_timeout().unwrap()));
        assert_eq!(held.asked(), Demand::NOTHING);
        assert_eq!(held.poll_timeout(), None);
    }

    #[test]
    fn layers_fall_after_a_while_too() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut held = Held::default();
        held.want(demand(1, 2), at(0));
        assert!(!held.want(demand(1, 0), at(1)));
        assert_eq!(held.asked().temporal, 2);
        assert!(held.handle_timeout(at(6)));
        assert_eq!(held.asked().temporal, 0);
        assert!(held.want(demand(1, 1), at(7)));
    }
}
