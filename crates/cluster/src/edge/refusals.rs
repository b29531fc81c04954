//! Counts connections that are refused because of their certificates.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines of the log, so that nobody fills it.
const QUIET: Duration = Duration::from_secs(10);

/// Refused connections, by reason.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The certificate is of another authority, has expired, is missing, or is another one than the
    /// node's entry on the bus has.
    pub(super) certificates: AtomicU64,
    /// The certificate is revoked.
    pub(super) revoked: AtomicU64,
    logged: Mutex<Option<Instant>>,
}

impl Refusals {
    /// Counts a refusal, and logs it unless there was one a moment ago.
    pub(super) fn note(&self, counter: &AtomicU64, who: &dyn fmt::Display, why: &dyn fmt::Display) {
        counter.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| now.saturating_duration_since(at) >= QUIET) {
            *logged = Some(now);
            tracing::warn!(%who, reason = %why, "cluster: a connection is refused because of its certificate");
        }
    }

    /// Counts a certificate that the handshake, or the entry on the bus, refuses.
    pub(super) fn certificate(&self, who: &dyn fmt::Display, why: &dyn fmt::Display) {
        self.note(&self.certificates, who, why);
    }

    /// Counts a certificate that is revoked.
    pub(super) fn revocation(&self, who: &dyn fmt::Display) {
        self.note(&self.revoked, who, &"the certificate is revoked");
    }
}
