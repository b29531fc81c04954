//! `[log]`: how the server logs.

use portunus_core::configuration::{Configuration, Section};
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// How the server logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogConfig {
    /// Levels by module, as the crate tracing-subscriber reads them.
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
    /// Ordinary lines a second of one kind, for long; 0: any number.
    pub(crate) rate: u32,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines: a JSON object a line.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            filter: "info".into(),
            format: LogFormat::Text,
            rate: 10,
        }
    }
}

impl Configuration for LogConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let log: Self = section.keys();
        section.check(&["filter"], EnvFilter::try_new(&log.filter).map(drop));
        log
    }
}
