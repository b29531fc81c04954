//! The state of a drain: no new clients are accepted, and present calls go on.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Seconds after which a refused client may try again. Another server may have taken over by then.
pub const DRAIN_RETRY_SECONDS: u16 = 5;

/// The drain of a server, if there is one. Cheap to read.
#[derive(Debug)]
pub(crate) struct Drain(watch::Sender<Option<Draining>>);

/// A drain in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draining {
    since: Instant,
    /// When the remaining calls are ended, or `None` for never.
    deadline: Option<Instant>,
    /// Whether the server ends after the drain. Then it cannot be undone.
    is_final: bool,
}

impl Default for Drain {
    fn default() -> Self {
        Drain(watch::Sender::new(None))
    }
}

impl Drain {
    /// Returns the drain in progress.
    pub(crate) fn current(&self) -> Option<Draining> {
        *self.0.borrow()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Starts a drain, or changes the deadline of the one in progress if there is a `limit`.
    /// Returns whether one was in progress.
    pub(crate) fn start(&self, limit: Option<Duration>) -> bool {
        self.change(|before, now| Draining {
            deadline: limit
                .and_then(|limit| now.checked_add(limit))
                .or(before.deadline),
            ..before
        })
    }

    /// Starts the drain before the end of the server. An earlier deadline stays.
    pub(crate) fn start_final(&self, limit: Duration) {
        self.change(|before, now| {
            let deadline = now.checked_add(limit);
            Draining {
                deadline: before.deadline.into_iter().chain(deadline).min(),
                is_final: true,
                ..before
            }
        });
    }

    fn change(&self, change: impl FnOnce(Draining, Instant) -> Draining) -> bool {
        let now = Instant::now();
        let mut was_on = false;
        self.0.send_modify(|state| {
            was_on = state.is_some();
            let before = state.unwrap_or(Draining {
                since: now,
                deadline: None,
                is_final: false,
            });
            *state = Some(change(before, now));
        });
        was_on
    }

    /// Ends the drain. Returns whether there was one, or an error if the server is ending.
    pub(crate) fn stop(&self) -> Result<bool, Ending> {
        let mut outcome = Ok(false);
        self.0.send_if_modified(|state| {
            outcome = match state {
                None => Ok(false),
                Some(draining) if draining.is_final => Err(Ending),
                Some(_) => Ok(true),
            };
            if outcome == Ok(true) {
                *state = None;
            }
            outcome == Ok(true)
        });
        outcome
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Option<Draining>> {
        self.0.subscribe()
    }
}

/// The drain cannot be undone because the server ends after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending;

impl Draining {
    /// Returns how long it has lasted.
    pub(crate) fn lasted(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the time until the deadline, if there is one.
    pub(crate) fn left(&self) -> Option<Duration> {
        let now = Instant::now();
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(now))
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_second_drain_changes_the_deadline_only_if_it_names_one() {
        let drain = Drain::default();
        assert!(!drain.is_on() && !drain.start(Some(MINUTE)));
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(drain.start(None));
        let left = |drain: &Drain| drain.current().and_then(|it| it.left());
        assert_eq!(left(&drain), Some(Duration::from_secs(40)));
        assert!(drain.start(Some(MINUTE)));
        assert_eq!(left(&drain), Some(MINUTE));
        let lasted = drain.current().map(|it| it.lasted());
        assert_eq!(lasted, Some(Duration::from_secs(20)));
        assert_eq!((drain.stop(), drain.stop()), (Ok(true), Ok(false)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_drain_before_the_end_keeps_the_earlier_deadline_and_has_no_undo() {
        for (first, second, left) in [(None, 60, 60), (Some(10), 60, 10), (Some(600), 60, 60)] {
            let drain = Drain::default();
            drain.start(first.map(Duration::from_secs));
            drain.start_final(Duration::from_secs(second));
            let found = drain.current().and_then(|it| it.left());
            assert_eq!(found, Some(Duration::from_secs(left)));
            assert_eq!(drain.stop(), Err(Ending));
            // The operator may still extend the time.
            assert!(drain.start(Some(10 * MINUTE)));
            assert_eq!(drain.current().and_then(|it| it.left()), Some(10 * MINUTE));
        }
    }
}
