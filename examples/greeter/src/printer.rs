//! An event handler in its own crate. It prints events.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_core::PluginCounter;
use portunus_core::configuration::{Configuration, Section};
use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, Subscription,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWriteExt, stdout};

/// The handler: prints events, each on a line.
#[derive(Debug)]
pub struct Printer {
    config: PrinterConfig,
    printed: AtomicU64,
}

/// The configuration in `[events.printer]`, besides the keys of all handlers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrinterConfig {
    /// The text before each event.
    pub prefix: String,
}

impl Configuration for PrinterConfig {
    fn read(section: &mut Section<'_>) -> Self {
        section.keys()
    }
}

impl ConfiguredEventHandler for Printer {
    const NAME: &'static str = "printer";
    type Config = PrinterConfig;
    type Error = Infallible;

    async fn from_config(config: PrinterConfig) -> Result<Self, Infallible> {
        let printed = AtomicU64::new(0);
        Ok(Printer { config, printed })
    }
}

impl EventHandler for Printer {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: "example.eventhandler.printer",
            name: "Printer",
            description: "Prints events.",
            version: 1,
            version_string: "1.0.0",
        }
    }

    /// Prints events. Nobody waits for it: the bus drops events that are not taken in time, and the
    /// next one has their number.
    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            while let Some(event) = events.recv().await {
                let line = format!("{}{}\n", self.config.prefix, events.to_json(&event));
                if stdout().write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                self.printed.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    fn counters(&self) -> Vec<PluginCounter> {
        vec![PluginCounter {
            name: "printed",
            help: "Events that were printed.",
            value: self.printed.load(Ordering::Relaxed),
        }]
    }
}
