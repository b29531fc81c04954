//! The signals that the server knows.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the server knows.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// A signal that ends the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSignal {
    /// SIGTERM, of a supervisor: the server is drained first.
    Terminate,
    /// SIGINT, of a person at a terminal, who does not want to wait.
    Interrupt,
}

impl EndSignal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            EndSignal::Terminate => "SIGTERM",
            EndSignal::Interrupt => "SIGINT",
        }
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            EndSignal::Terminate => SignalKind::terminate().as_raw_value(),
            EndSignal::Interrupt => SignalKind::interrupt().as_raw_value(),
        }
    }
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal that ends the server.
    pub(crate) async fn end(&mut self) -> EndSignal {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return EndSignal::Terminate,
                _ = self.interrupt.recv() => return EndSignal::Interrupt,
                _ = self.hangup.recv() => {
                    tracing::info!("SIGHUP is ignored: the configuration is read at start only");
                }
            }
        }
    }
}
