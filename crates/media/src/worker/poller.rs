//! Waits while a worker has nothing to do: polls for a while, if configured, and then sleeps.

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry};

/// The poll that a worker sleeps in.
pub(super) struct Poller {
    poll: Poll,
    /// How long it polls after the last event.
    busy_poll: Duration,
    /// It polls until then.
    awake_until: Instant,
}

impl Poller {
    /// Returns a poller that polls for `busy_poll` after each event. Zero means that it sleeps
    /// immediately.
    pub(super) fn new(poll: Poll, busy_poll: Duration) -> Self {
        Self {
            poll,
            busy_poll,
            awake_until: Instant::now(),
        }
    }

    /// The registry for sources of events.
    pub(super) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Waits for events for up to `idle`. `None` does not wait, as there is more to do.
    pub(super) fn wait(&mut self, ready: &mut Events, idle: Option<Duration>) -> io::Result<()> {
        let Some(idle) = idle else {
            if !self.busy_poll.is_zero() {
                self.awake_until = Instant::now() + self.busy_poll;
            }
            return self.poll_for(ready, Duration::ZERO);
        };
        if self.busy_poll.is_zero() {
            return self.poll_for(ready, idle);
        }
        let due = Instant::now() + idle;
        let asleep = self.awake_until.min(due);
        loop {
            let now = Instant::now();
            let wait = match now < asleep {
                true => Duration::ZERO,
                false => due.saturating_duration_since(now),
            };
            self.poll_for(ready, wait)?;
            if !ready.is_empty() {
                self.awake_until = Instant::now() + self.busy_poll;
                return Ok(());
            }
            if now >= asleep {
                return Ok(());
            }
        }
    }

    fn poll_for(&mut self, ready: &mut Events, wait: Duration) -> io::Result<()> {
        match self.poll.poll(ready, Some(wait)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    const BUSY_POLL: Duration = Duration::from_secs(100);

    fn poller() -> (Poller, Events) {
        let poller = Poller::new(Poll::new().unwrap(), BUSY_POLL);
        (poller, Events::with_capacity(4))
    }

    #[test]
    fn work_that_goes_on_keeps_it_awake_as_what_comes_does() {
        let (mut poller, mut ready) = poller();
        let start = Instant::now();
        poller.wait(&mut ready, None).unwrap();
        assert!(poller.awake_until >= start + BUSY_POLL);
    }

    /// What is due while it stays awake is neither late nor early.
    #[test]
    fn it_stays_awake_no_longer_than_until_something_is_due() {
        let (mut poller, mut ready) = poller();
        let start = Instant::now();
        poller.awake_until = start + BUSY_POLL;
        let idle = Duration::from_millis(200);
        poller.wait(&mut ready, Some(idle)).unwrap();
        let waited = start.elapsed();
        assert!(waited >= idle, "{waited:?}");
        assert!(waited < BUSY_POLL / 2, "{waited:?}");
    }
}
