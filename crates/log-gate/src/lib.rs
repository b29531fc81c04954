//! Limits how often one place writes to the log, so that strangers cannot fill it.
#![forbid(unsafe_code)]

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Lets one log line through each second, and counts the lines that it holds back.
#[derive(Debug, Default)]
pub struct LogGate {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    opened: Option<Instant>,
    suppressed: u64,
}

impl LogGate {
    /// Returns how many lines were held back since the last one, or `None` if this line is one of
    /// them.
    pub fn open(&self) -> Option<u64> {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = Instant::now();
        if state
            .opened
            .is_some_and(|opened| now.duration_since(opened) < Duration::from_secs(1))
        {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.opened = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn opens_once_a_second_and_counts_the_rest() {
        let gate = LogGate::default();
        assert_eq!(gate.open(), Some(0));
        assert_eq!(gate.open(), None);
        assert_eq!(gate.open(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(gate.open(), Some(2));
    }
}
