//! The errors of driving browsers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why a browser does not do what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// Its program is not installed.
    #[error("there is no {0} in PATH; --{0} names its program")]
    NotFound(&'static str),
    /// It cannot be started.
    #[error("{program} cannot be started: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It ended, or did not say where it can be driven.
    #[error("{program} cannot be driven after {} s; it said:\n{said}", after.as_secs())]
    Silent {
        /// The program.
        program: PathBuf,
        /// The time that it had.
        after: Duration,
        /// The end of its output.
        said: String,
    },
    /// The connection to it failed.
    #[error("the browser's WebSocket: {0}")]
    Connection(String),
    /// It refused a command.
    #[error("{method}: {reason}")]
    Refused {
        /// The command.
        method: String,
        /// The browser's message.
        reason: String,
    },
    /// It does not answer.
    #[error("{method}: no answer after {} s", after.as_secs())]
    Timeout {
        /// The command.
        method: String,
        /// The time that it had.
        after: Duration,
    },
    /// Its answer lacks something.
    #[error("{method}: the answer has no {missing}")]
    Malformed {
        /// The command.
        method: String,
        /// The missing member.
        missing: &'static str,
    },
    /// The page for participants cannot be served.
    #[error("the page for browsers: {0}")]
    Page(io::Error),
}
