//! Events in a file, each as JSON on a line of its own.

mod config;
mod output;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, Subscription, TweakError,
};
use portunus_core::{Fields, JsonForm, Object, PluginCounter};
use tokio::task::spawn_blocking;

use crate::batch::{Batch, Batches, Layout};
use crate::tally::Tally;
pub use config::FileConfig;
use output::Output;

const PACKAGE: &str = "janus.eventhandler.fileevh";

/// Appends lines to a file.
#[derive(Debug)]
pub struct File {
    /// Taken by the task that writes.
    output: Mutex<Option<Output>>,
    pause: Duration,
    tally: Tally,
}

/// Why this handler does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// No file is named.
    #[error("events.file.path is missing")]
    NoPath,
    /// The file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

impl ConfiguredEventHandler for File {
    const NAME: &'static str = "file";
    type Config = FileConfig;
    type Error = FileError;

    fn missing(config: &FileConfig) -> Option<&'static str> {
        config.path.is_none().then_some("path")
    }

    async fn from_config(config: FileConfig) -> Result<Self, FileError> {
        let path = config.path.ok_or(FileError::NoPath)?;
        let rotate = config.rotate_mb.saturating_mul(1 << 20);
        let mut output = Output::new(path.clone(), rotate, config.keep);
        match output.open() {
            Ok(()) => {}
            Err(error) if output.may_open_later(&error) => {}
            Err(error) => return Err(FileError::Open { path, error }),
        }
        Ok(File {
            output: Mutex::new(Some(output)),
            pause: Duration::from_millis(config.batch_pause_ms),
            tally: Tally::default(),
        })
    }
}

impl EventHandler for File {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: PACKAGE,
            name: "File",
            description: "Writes events to a file, each on a line of its own.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            let output = {
                let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
                output.take()
            };
            if let Some(output) = output {
                self.write_all(output, &events).await;
            }
        })
    }

    fn query(&self, name: &str, _: Fields<'_>) -> Result<Object, TweakError> {
        self.tally.query(name)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.tally.counters()
    }
}

impl File {
    /// Writes until there are no more events, on threads that may block.
    async fn write_all(&self, mut output: Output, events: &Subscription) {
        let mut batches = Batches::new(self.pause);
        while let Some(batch) = batches.next(events, Layout::Lines, JsonForm::Compact).await {
            let Batch { body, events } = batch;
            let writing = spawn_blocking(move || {
                let written = output.append(&body);
                (output, written)
            });
            // It fails only with the runtime.
            let Ok((back, written)) = writing.await else {
                return;
            };
            output = back;
            match written {
                Ok(stays) => {
                    self.tally.sent(events);
                    if let Some(error) = stays {
                        let path = output.path().display();
                        let error = format!("{path} cannot be moved away: {error}");
                        let advice = "it grows beyond rotate_mb meanwhile: see the permissions of its folder";
                        self.tally.failed(PACKAGE, &error, advice);
                    }
                }
                Err(error) => {
                    self.tally.lost(events);
                    let error = format!(
                        "events cannot be written to {}: {error}",
                        output.path().display()
                    );
                    let advice = "these are lost; the next ones are tried again: see the disk and events.file.path";
                    self.tally.failed(PACKAGE, &error, advice);
                }
            }
        }
    }
}
