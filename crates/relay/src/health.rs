//! Whether a media link works, by the signs of life of the other node.

use std::time::{Duration, Instant};

use portunus_media::SignsOfLife;

/// How long no answer may come before a link counts as broken. Reports leave once a second.
const BROKEN: Duration = Duration::from_secs(3);
/// How long nothing at all may come from a carrier. A carrier that was given up by mistake costs
/// nothing: its packets are taken until those of the next one come.
const SILENT: Duration = Duration::from_millis(1_500);

/// The signs of life of another node.
#[derive(Debug)]
pub(crate) struct Health {
    signs: SignsOfLife,
    heard: Instant,
    answered: Option<Instant>,
    /// Since when answers come.
    works_since: Option<Instant>,
    was_broken: bool,
}

impl Health {
    /// Returns the health of a new link, which has some time to show that it works, unless it is
    /// suspect.
    pub(crate) fn new(is_suspect: bool, now: Instant) -> Self {
        Self {
            signs: SignsOfLife::default(),
            heard: now,
            answered: (!is_suspect).then_some(now),
            works_since: None,
            was_broken: is_suspect,
        }
    }

    /// Takes what has come so far. Returns whether the link works, if that has changed.
    pub(crate) fn take(&mut self, signs: SignsOfLife, now: Instant) -> Option<bool> {
        if signs.heard != self.signs.heard {
            self.heard = now;
        }
        if signs.answered != self.signs.answered {
            self.answered = Some(now);
            self.works_since.get_or_insert(now);
        }
        self.signs = signs;
        let is_broken = !self.works(now);
        if is_broken {
            self.works_since = None;
        }
        let changed = std::mem::replace(&mut self.was_broken, is_broken) != is_broken;
        changed.then_some(!is_broken)
    }

    /// Whether it carries media in both directions, as far as is known.
    pub(crate) fn works(&self, now: Instant) -> bool {
        let since = |at| now.saturating_duration_since(at);
        self.answered.is_some_and(|at| since(at) < BROKEN)
    }

    /// For how long it has worked.
    pub(crate) fn works_for(&self, now: Instant) -> Duration {
        let since = self.works_since.map(|at| now.saturating_duration_since(at));
        since.unwrap_or_default()
    }

    /// Whether nothing has come for so long that a carrier is to be replaced.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) >= SILENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_broken_after_3_s_without_an_answer_and_works_with_the_next_one() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut health = Health::new(false, start);
        let signs = |heard, answered| SignsOfLife { heard, answered };
        assert!(health.works(at(0)), "it has time");
        assert_eq!(health.take(signs(1, 1), at(500)), None);
        assert_eq!(health.take(signs(2, 1), at(1_900)), None);
        assert!(!health.is_silent(at(3_399)) && health.is_silent(at(3_400)));
        assert_eq!(health.take(signs(2, 1), at(3_499)), None);
        assert_eq!(health.take(signs(3, 1), at(3_500)), Some(false));
        assert_eq!(health.works_for(at(3_500)), Duration::ZERO);
        assert_eq!(health.take(signs(4, 2), at(4_000)), Some(true));
        assert_eq!(health.works_for(at(5_000)), Duration::from_secs(1));
        let mut suspect = Health::new(true, start);
        assert!(!suspect.works(at(0)), "it has to show that it works");
        assert_eq!(suspect.take(signs(1, 1), at(500)), Some(true));
    }
}
