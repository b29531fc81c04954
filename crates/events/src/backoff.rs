//! The waits between attempts.

use std::time::Duration;

/// Waits that double with each failure, up to a limit.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Returns waits from `first` up to `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Backoff {
            first,
            most,
            next: first,
        }
    }

    /// Returns the wait after another failure.
    pub fn wait(&mut self) -> Duration {
        let wait = self.next.min(self.most);
        self.next = wait.saturating_mul(2);
        wait
    }

    /// Starts again with the first wait, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        let waits: Vec<_> = (0..4).map(|_| backoff.wait().as_millis()).collect();
        assert_eq!(waits, [100, 200, 350, 350]);
        backoff.reset();
        assert_eq!(backoff.wait().as_millis(), 100);
    }
}
