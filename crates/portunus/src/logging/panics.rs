//! Panics go to the log. A thread that panics does not wait for the reader of the log either.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};
use std::time::Duration;

use super::queue::Queue;

/// How long a panicking thread waits for its lines to be written, since the program may abort.
const PATIENCE: Duration = Duration::from_millis(20);

/// Logs panics from now on.
pub(super) fn log(queue: Queue) {
    panic::set_hook(Box::new(move |fault| {
        write(fault);
        queue.flush(PATIENCE);
    }));
}

/// Logs a panic.
pub(super) fn write(fault: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = fault.location().map(ToString::to_string);
    let payload = fault.payload();
    let text = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "no reason is given",
    };
    tracing::error!(
        thread = thread.name(),
        place,
        "a fault of the server, please report it: {text}"
    );
    // As RUST_BACKTRACE says.
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        backtrace
            .to_string()
            .lines()
            .for_each(|line| tracing::error!("{line}"));
    }
}
