//! The clock, on which certificates, tokens and TURN credentials depend.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::time::timeout;

use super::finding::{Check, Finding};

/// The time limit of `timedatectl`.
const LIMIT: Duration = Duration::from_secs(3);
/// How far in the future a file's time may be, since two machines may share it.
const TOLERANCE: Duration = Duration::from_secs(3_600);

/// Examines the clock. `file` is the configuration.
pub(super) async fn examine(file: Option<&Path>) -> Finding {
    let written = file.and_then(|file| file.metadata().ok()?.modified().ok());
    let is_late = written.is_some_and(|written| {
        written
            .duration_since(SystemTime::now())
            .is_ok_and(|ahead| ahead > TOLERANCE)
    });
    let set = "Install systemd-timesyncd or chrony, and see `timedatectl`.";
    if is_late {
        let text = "The clock is slow: the configuration was written in its future.";
        return Finding::error(Check::Clock, text).change(set);
    }
    // It asks the kernel, which knows whether any program synchronizes the clock.
    let mut command = Command::new("timedatectl");
    command.args(["show", "--property=NTPSynchronized", "--value"]);
    command.kill_on_drop(true);
    let answer = timeout(LIMIT, command.output()).await;
    let answer = answer.ok().and_then(Result::ok).map(|it| it.stdout);
    match answer.as_deref().map(<[u8]>::trim_ascii) {
        Some(b"yes") => Finding::ok(Check::Clock, "The clock is set by NTP."),
        Some(b"no") => {
            let text = "The clock is not set by NTP. Once it is some minutes wrong, certificates, \
                        tokens and TURN credentials are refused.";
            Finding::warning(Check::Clock, text).change(set)
        }
        _ => Finding::note(
            Check::Clock,
            "Nothing says whether the clock is set by NTP: there is no answer of timedatectl. In a \
             container, the clock is that of the host.",
        ),
    }
}
