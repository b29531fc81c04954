//! What a worker does while there is nothing to do: it looks for more for a while, if it is told to, and sleeps.

use std::io;
use std::time::{Duration, Instant};

use mio::Events;

use super::Worker;

impl Worker {
    /// Waits until something is ready or due; `more`: there is already.
    pub(super) fn poll(&mut self, ready: &mut Events, more: bool) -> io::Result<()> {
        let busy_poll = self.parts.busy_poll;
        if more {
            if !busy_poll.is_zero() {
                self.awake_until = Instant::now() + busy_poll;
            }
            return self.poll_for(ready, Duration::ZERO);
        }
        if busy_poll.is_zero() {
            let wait = self.wait();
            return self.poll_for(ready, wait);
        }
        let due = Instant::now() + self.wait();
        let asleep = self.awake_until.min(due);
        loop {
            let now = Instant::now();
            let wait = match now < asleep {
                true => Duration::ZERO,
                false => due.saturating_duration_since(now),
            };
            self.poll_for(ready, wait)?;
            if !ready.is_empty() {
                self.awake_until = Instant::now() + busy_poll;
                return Ok(());
            }
            if now >= asleep {
                return Ok(());
            }
        }
    }

    fn poll_for(&mut self, ready: &mut Events, wait: Duration) -> io::Result<()> {
        match self.parts.poll.poll(ready, Some(wait)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::bare;

    const BUSY_POLL: Duration = Duration::from_secs(100);

    #[test]
    fn work_that_goes_on_keeps_it_awake_as_what_comes_does() {
        let mut worker = bare(Instant::now()).worker;
        let mut ready = Events::with_capacity(4);
        worker.parts.busy_poll = BUSY_POLL;
        let start = Instant::now();
        worker.poll(&mut ready, true).unwrap();
        assert!(worker.awake_until >= start + BUSY_POLL);
    }

    /// What is due while it stays awake is neither late nor early.
    #[test]
    fn it_stays_awake_no_longer_than_until_something_is_due() {
        let mut worker = bare(Instant::now()).worker;
        let mut ready = Events::with_capacity(4);
        worker.parts.busy_poll = BUSY_POLL;
        let start = Instant::now();
        worker.awake_until = start + BUSY_POLL;
        worker.poll(&mut ready, false).unwrap();
        let waited = start.elapsed();
        assert!(waited >= super::super::LONGEST_WAIT, "{waited:?}");
        assert!(waited < BUSY_POLL / 2, "{waited:?}");
    }
}
