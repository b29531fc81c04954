//! The counters of a handler, and its log lines about failures.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use portunus_core::events::TweakError;
use portunus_core::{LogGate, Object, PluginCounter};

/// The limit of characters of an error's text, which the peer may have written.
const MAX_ERROR: usize = 300;

/// The counters that handlers have in common.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: AtomicU64,
    failed: AtomicU64,
    retried: AtomicU64,
    lost: AtomicU64,
    last_error: Mutex<Option<String>>,
    log: LogGate,
}

impl Tally {
    /// Counts events as sent, as far as can be known.
    pub(crate) fn sent(&self, events: u64) {
        self.sent.fetch_add(events, Ordering::Relaxed);
    }

    /// Counts a retry.
    pub(crate) fn retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts events as lost.
    pub(crate) fn lost(&self, events: u64) {
        self.lost.fetch_add(events, Ordering::Relaxed);
    }

    /// Notes a failed attempt, with advice to the operator. Logs it at most once a second.
    pub(crate) fn failed(&self, handler: &'static str, error: &dyn Display, advice: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let text: String = error.to_string().chars().take(MAX_ERROR).collect();
        if let Some(more) = self.log.open() {
            let lost = self.lost.load(Ordering::Relaxed);
            tracing::warn!(handler, more, lost, "{text}: {advice}");
        }
        let mut last = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(text);
    }

    /// Returns the counters for metrics.
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counter = |name, help, value: &AtomicU64| PluginCounter {
            name,
            help,
            value: value.load(Ordering::Relaxed),
        };
        vec![
            counter(
                "sent",
                "Events that were taken by the other side.",
                &self.sent,
            ),
            counter(
                "failed",
                "Attempts to send or to connect that failed.",
                &self.failed,
            ),
            counter("retried", "Messages that were sent again.", &self.retried),
            counter("lost", "Events that were given up.", &self.lost),
        ]
    }

    /// Answers an administrator's `status`: the counters, and the last error.
    pub(crate) fn query(&self, name: &str) -> Result<Object, TweakError> {
        if name != "status" {
            return Err(TweakError::UnknownRequest);
        }
        let last = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let add = |object: Object, counter: PluginCounter| object.with(counter.name, counter.value);
        let counters = self.counters().into_iter();
        let answer = counters.fold(Object::new().with("result", 200), add);
        Ok(answer.with_some("last_error", last))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_status_has_the_counters_and_the_last_error() {
        let tally = Tally::default();
        tally.sent(3);
        tally.retried();
        tally.lost(2);
        tally.failed("test", &"x".repeat(1_000), "do something");
        let status: Value = tally.query("status").unwrap().into();
        let error = "x".repeat(MAX_ERROR);
        let expected = json!({ "result": 200, "sent": 3, "failed": 1, "retried": 1, "lost": 2, "last_error": error });
        assert_eq!(status, expected);
        assert_eq!(tally.query("other").unwrap_err().code(), 411);
    }
}
