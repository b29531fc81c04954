//! Logs: lines for people or JSON for machines, on the standard error. Administrators steer them while the server runs.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::{LogControl, LogLevel};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::config::{LogConfig, LogFormat};

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging.
pub(crate) fn start(config: &LogConfig) -> Arc<dyn LogControl> {
    let filter = EnvFilter::new(&config.filter);
    let look = Look {
        format: config.format,
        level: level_of(&filter),
        timestamps: true,
        colors: config.format == LogFormat::Text && std::io::stderr().is_terminal(),
    };
    let (lines, lines_handle) = reload::Layer::new(look.lines());
    let (filter, filter_handle) = reload::Layer::new(filter);
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .init();
    Arc::new(Log {
        look: Mutex::new(look),
        lines: lines_handle,
        set_filter: Box::new(move |filter| filter_handle.reload(filter)),
    })
}

/// How lines look, and how many there are.
#[derive(Debug, Clone, Copy)]
struct Look {
    format: LogFormat,
    level: LogLevel,
    timestamps: bool,
    colors: bool,
}

impl Look {
    fn lines(self) -> Lines {
        let lines = fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(self.colors);
        match (self.format, self.timestamps) {
            (LogFormat::Text, true) => lines.with_target(false).boxed(),
            (LogFormat::Text, false) => lines.with_target(false).without_time().boxed(),
            (LogFormat::Json, true) => lines.json().flatten_event(true).boxed(),
            (LogFormat::Json, false) => lines.json().flatten_event(true).without_time().boxed(),
        }
    }
}

type SetFilter = dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync;

/// The way to the log.
struct Log {
    look: Mutex<Look>,
    lines: reload::Handle<Lines, Registry>,
    set_filter: Box<SetFilter>,
}

impl Log {
    fn look(&self) -> MutexGuard<'_, Look> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how lines look.
    fn change(&self, change: impl FnOnce(&mut Look)) {
        let mut look = self.look();
        change(&mut look);
        if let Err(error) = self.lines.reload(look.lines()) {
            tracing::error!(%error, "cannot change the look of the log");
        }
    }
}

impl LogControl for Log {
    fn level(&self) -> LogLevel {
        self.look().level
    }

    fn set_level(&self, level: LogLevel) {
        self.look().level = level;
        if let Err(error) = (self.set_filter)(filter(level)) {
            tracing::error!(%error, "cannot change the level of the log");
        }
    }

    fn timestamps(&self) -> bool {
        self.look().timestamps
    }

    fn set_timestamps(&self, on: bool) {
        self.change(|look| look.timestamps = on);
    }

    fn colors(&self) -> bool {
        self.look().colors
    }

    fn set_colors(&self, on: bool) {
        self.change(|look| look.colors = on && look.format == LogFormat::Text);
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Log").field(&self.look()).finish()
    }
}

/// What is logged at a level. What libraries have to say beyond [`LogLevel::INFO`] is not about this server.
fn filter(level: LogLevel) -> EnvFilter {
    let word = level.word();
    match level > LogLevel::INFO {
        true => EnvFilter::new(format!("{},portunus={word}", LogLevel::INFO.word())),
        false => EnvFilter::new(word),
    }
}

/// The level of a filter: that of what it lets through at most.
fn level_of(filter: &EnvFilter) -> LogLevel {
    let most = filter.max_level_hint().map(|hint| hint.to_string());
    let levels = (0..=LogLevel::MAX.get()).filter_map(LogLevel::new);
    // The last of a word is the usual one: 3 of 3, 4 of 4, 2 of 1 and 2.
    let mut named = levels.filter(|level| Some(level.word()) == most.as_deref());
    named.next_back().unwrap_or(LogLevel::INFO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_that_of_the_filter() {
        for (filter, level) in [
            ("info", 4),
            ("warn", 3),
            ("error", 2),
            ("off", 0),
            ("trace", 7),
            ("info,portunus_core=debug", 6),
        ] {
            let filter = EnvFilter::new(filter);
            assert_eq!(level_of(&filter).get(), level, "{filter}");
        }
    }

    #[test]
    fn libraries_stay_quiet() {
        let text = |level| filter(LogLevel::new(level).unwrap_or(LogLevel::MAX)).to_string();
        assert_eq!(text(0), "off");
        assert_eq!(text(2), "error");
        assert_eq!(text(4), "info");
        assert!(text(5).contains("portunus=debug") && text(5).contains("info"));
        assert!(text(7).contains("portunus=trace"));
    }
}
