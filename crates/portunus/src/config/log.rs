//! `[log]`: the configuration of the log.

use portunus_core::configuration::{Configuration, Section};
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The configuration of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogConfig {
    /// Levels by module, in the syntax of the crate tracing-subscriber.
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
    /// Sustained lines per second of one kind. 0 means no limit.
    pub(crate) rate: u32,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines: a JSON object on each line.
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
    const LIVE: &'static [&'static str] = &["filter", "format", "rate"];

    fn read(section: &mut Section<'_>) -> Self {
        let log: Self = section.keys();
        section.check(&["filter"], filter(&log.filter).map(drop));
        log
    }
}

/// Parses levels by module.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, String> {
    let filter = EnvFilter::try_new(text).map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Err("expected a level such as \"info\"".to_owned());
    }
    // A single word that is no level would be read as a module, and nothing else logged.
    let is_word = |part: &&str| !part.contains(['=', '[', ']', '{', '}']);
    let mut words = text.split(',').map(str::trim).filter(is_word);
    match words.find(|word| word.parse::<LevelFilter>().is_err()) {
        None => Ok(filter),
        Some(word) => Err(format!(
            "{word:?} is no level: expected error, warn, info, debug, trace or off, and levels of modules such as \
             \"info,portunus_core=debug\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_word_that_is_no_level_is_no_filter() {
        for text in [
            "info",
            "INFO",
            "off",
            "warn,portunus_core=debug",
            "portunus_core=debug, info",
            "portunus_core[session{id=7}]=trace",
        ] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "inof",
            "information",
            "info,portunus_core",
            "portunus=inof",
            "info debug",
        ] {
            assert!(filter(text).is_err(), "{text:?}");
        }
    }
}
