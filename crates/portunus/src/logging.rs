//! Structured logs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{LogConfig, LogFormat};

/// Starts logging to standard error. The environment variable PORTUNUS_LOG wins over log.filter.
pub(crate) fn start(config: &LogConfig) {
    let configured = || EnvFilter::new(&config.filter);
    let filter = EnvFilter::try_from_env("PORTUNUS_LOG").unwrap_or_else(|_| configured());
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match config.format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().init(),
    }
}
