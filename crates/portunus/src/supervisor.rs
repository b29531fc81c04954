//! Tells systemd how the server is doing (sd_notify(3)). Without systemd all of this does nothing.

use std::time::Duration;

use sd_notify::NotifyState;

/// How much longer than the next message a stop by systemd may take.
const MARGIN: Duration = Duration::from_secs(15);

/// The server runs, and is what its configuration says.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// The configuration is being read again. [`ready`] follows in any case.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "no monotonic clock for systemd"),
    }
}

/// The server takes nobody new, and ends once its calls have. It is told again and again, so that systemd waits.
pub(crate) fn draining(calls: usize, left: Duration) {
    let status = format!("draining: calls: {calls}, {} s at most", left.as_secs());
    let more = u32::try_from(MARGIN.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::Status(&status),
        NotifyState::ExtendTimeoutUsec(more),
    ]);
}

/// The server ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("ending calls")]);
}

/// How it is doing, for `systemctl status`.
pub(crate) fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// Nothing is stuck.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd cannot be told how the server is doing");
    }
}
