//! The signals of the server.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::reload::Reload;

/// The signals of the server.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    reload: Option<Arc<Reload>>,
}

/// A signal that ends the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSignal {
    /// SIGTERM from a supervisor: the server is drained first.
    Terminate,
    /// SIGINT from a terminal: calls end immediately.
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

    /// Sets the action of SIGHUP.
    pub(crate) fn reload_by(&mut self, reload: Arc<Reload>) {
        self.reload = Some(reload);
    }

    /// Reloads the configuration. Signals that end the server do not wait for it.
    fn reload(&self) {
        match self.reload.clone() {
            Some(reload) => drop(tokio::spawn(async move {
                // It logs its outcome.
                let _ = reload.apply().await;
            })),
            None => tracing::info!("SIGHUP is ignored: the server is starting"),
        }
    }

    /// Waits for a signal that ends the server. SIGHUP reloads the configuration meanwhile.
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
