//! Reports the state of the server to systemd (sd_notify(3)). Without systemd this has no effect.

use std::time::Duration;

use sd_notify::NotifyState;

/// The extra time of a stop by systemd beyond the next message.
const MARGIN: Duration = Duration::from_secs(15);

/// The server runs with its configuration.
pub(crate) fn ready() {
    notify(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// A reload has started. [`ready`] follows in any case.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "no monotonic clock for systemd"),
    }
}

/// The server is drained and ends after it. Repeated so that systemd waits.
pub(crate) fn draining(calls: usize, left: Duration) {
    let status = format!("draining: calls: {calls}, {} s at most", left.as_secs());
    let more = u32::try_from(MARGIN.as_micros()).unwrap_or(u32::MAX);
    notify(&[
        NotifyState::Stopping,
        NotifyState::Status(&status),
        NotifyState::ExtendTimeoutUsec(more),
    ]);
}

/// The server ends.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("ending calls")]);
}

/// The state for `systemctl status`.
pub(crate) fn status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

/// Nothing is stuck.
pub(crate) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd cannot be told how the server is doing");
    }
}
