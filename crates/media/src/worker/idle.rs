//! What a worker does while there is nothing to do: it looks for more for a while, if it is told to, and sleeps.

use std::io;
use std::time::{Duration, Instant};

use mio::Events;

use super::Worker;

impl Worker {
    /// Waits until something is ready or due; `more`: there is already.
    pub(super) fn poll(&mut self, ready: &mut Events, more: bool) -> io::Result<()> {
        if more {
            return self.poll_for(ready, Duration::ZERO);
        }
        let busy_poll = self.parts.busy_poll;
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
