//! Logs: lines for people or JSON for machines, on the standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{LogConfig, LogFormat};

/// Levels for one run, as in `log.filter`.
const VARIABLE: &str = "PORTUNUS_LOG";

/// Starts logging; the environment's PORTUNUS_LOG goes before the configuration.
pub(crate) fn start(config: &LogConfig) {
    let filter =
        EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(&config.filter));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match config.format {
        LogFormat::Text => builder
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}
