//! The signals that the server knows.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::reload::Reload;

/// The signals that the server knows.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    reload: Option<Arc<Reload>>,
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
            reload: None,
        })
    }

    /// Says what SIGHUP does from now on.
    pub(crate) fn reload_by(&mut self, reload: Arc<Reload>) {
        self.reload = Some(reload);
    }

    /// Reads the configuration again. Signals that end the server do not wait for it.
    fn reload(&self) {
        match self.reload.clone() {
            Some(reload) => drop(tokio::spawn(async move {
                // It has logged what came of it.
                let _ = reload.apply().await;
            })),
            None => tracing::info!("SIGHUP is ignored: the server is starting"),
        }
    }

    /// Waits for a signal that ends the server. SIGHUP reads the configuration again meanwhile.
    pub(crate) async fn end(&mut self) -> EndSignal {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return EndSignal::Terminate,
                _ = self.interrupt.recv() => return EndSignal::Interrupt,
                _ = self.hangup.recv() => self.reload(),
            }
        }
    }
}
