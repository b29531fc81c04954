//! The log on the standard error: lines for people or JSON for machines. Operators control it while
//! the server runs.
//!
//! A line is formatted by the thread that logs it, and written by another one, so that no thread
//! waits for the reader of the log.

mod gate;
mod line;
mod panics;
mod queue;
mod secrets;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_admin::{LogControl, LogLevel};
use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::config::{LogConfig, LogFormat};
use gate::{Gate, Limit};
use line::Form;
use queue::Queue;

/// Libraries that log a warning for each malformed packet (SCTP, STUN and TURN), or an error for
/// each closed association (SCTP). Data channels and the TURN server count both, so these libraries
/// are silent unless a filter names them.
const SILENT: [&str; 2] = ["sctp_proto", "stun_types"];
/// How long the end of the program waits for lines to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging.
pub(crate) fn start(config: &LogConfig) -> io::Result<Logging> {
    let filter = filter(&config.filter).unwrap_or_else(|_| filter_of(LogLevel::INFO));
    let gate = Arc::new(Gate::new(config.rate));
    let queue = Queue::start(standard_error()?, {
        let gate = Arc::clone(&gate);
        move |dropped| report(dropped, &gate)
    })?;
    let look = Look {
        format: config.format,
        level: level_of(&filter),
        timestamps: true,
        colors: config.format == LogFormat::Text && io::stderr().is_terminal(),
    };
    let (lines, lines_handle) = reload::Layer::new(look.lines(&queue));
    let (filter, filter_handle) = reload::Layer::new(filter);
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .with(Limit(Arc::clone(&gate)))
        .init();
    panics::log(queue.clone());
    let log = Arc::new(Log {
        look: Mutex::new(look),
        lines: lines_handle,
        set_filter: Box::new(move |filter| filter_handle.reload(filter)),
        queue,
        gate,
    });
    Ok(Logging { log })
}

/// Opens the standard error without the lock of the standard library, so that `eprintln!` and the
/// log do not wait for each other.
fn standard_error() -> io::Result<File> {
    let error = io::stderr();
    Ok(File::from(error.as_fd().try_clone_to_owned()?))
}

/// Logs how many lines were lost.
fn report(dropped: u64, gate: &Gate) {
    if dropped > 0 {
        tracing::warn!(
            lines = dropped,
            "log lines are lost: they are not read as fast as they come"
        );
    }
    let (lines, places) = gate.take_left_out();
    if lines > 0 {
        tracing::warn!(
            lines,
            places,
            "log lines are left out: more of a kind than log.rate lets through"
        );
    }
}

/// The log of the program. Dropping it waits until the lines are written, two seconds at most.
#[derive(Debug)]
pub(crate) struct Logging {
    log: Arc<Log>,
}

impl Logging {
    /// Changes the log by a reload of the configuration.
    pub(crate) fn reload(&self) -> LogReload {
        LogReload(Arc::clone(&self.log))
    }

    /// Controls the log for operators.
    pub(crate) fn control(&self) -> Arc<dyn LogControl> {
        Arc::clone(&self.log) as _
    }

    /// The metrics of the log.
    pub(crate) fn metrics(&self) -> Arc<dyn MetricsSource> {
        Arc::clone(&self.log) as _
    }

    /// Writes a line without a level and a time.
    pub(crate) fn say(&self, line: &str) {
        let form = Form::Text { colors: false };
        self.log.queue.push(line.as_bytes(), form);
    }
}

/// Changes the log by the configuration.
#[derive(Debug, Clone)]
pub(crate) struct LogReload(Arc<Log>);

impl LogReload {
    /// Applies the differences from the last configuration.
    pub(crate) fn apply(&self, running: &LogConfig, new: &LogConfig) {
        self.0.reload(running, new);
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let queue = &self.log.queue;
        queue.flush(LAST_LINES);
        // Now there is room for this, unless the reader is gone.
        report(queue.take_dropped(), &self.log.gate);
        queue.flush(LAST_LINES);
    }
}

/// Returns the written form of a formatted line.
pub(crate) fn written_line(logged: &[u8], json: bool) -> String {
    let form = match json {
        true => Form::Json,
        false => Form::Text { colors: false },
    };
    let mut line = String::new();
    line::finish(logged, form, &mut line);
    line
}

/// Receives formatted lines.
struct Output {
    queue: Queue,
    form: Form,
}

impl MakeWriter<'_> for Output {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            form: self.form,
        }
    }
}

/// The formatter writes each line with one call.
impl Write for Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line, self.form);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The look and the level of lines.
#[derive(Debug, Clone, Copy)]
struct Look {
    format: LogFormat,
    level: LogLevel,
    timestamps: bool,
    colors: bool,
}

impl Look {
    fn lines(self, queue: &Queue) -> Lines {
        let colors = self.colors;
        let output = Output {
            queue: queue.clone(),
            form: match self.format {
                LogFormat::Text => Form::Text { colors },
                LogFormat::Json => Form::Json,
            },
        };
        let lines = fmt::layer()
            .with_writer(output)
            .with_ansi(colors)
            .log_internal_errors(false);
        match (self.format, self.timestamps) {
            (LogFormat::Text, true) => lines.with_target(false).boxed(),
            (LogFormat::Text, false) => lines.with_target(false).without_time().boxed(),
            (LogFormat::Json, true) => lines.json().flatten_event(true).boxed(),
            (LogFormat::Json, false) => lines.json().flatten_event(true).without_time().boxed(),
        }
    }
}

type SetFilter = dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync;

/// The program's log.
struct Log {
    look: Mutex<Look>,
    lines: reload::Handle<Lines, Registry>,
    set_filter: Box<SetFilter>,
    queue: Queue,
    gate: Arc<Gate>,
}

impl Log {
    fn look(&self) -> MutexGuard<'_, Look> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the look of lines.
    fn change(&self, change: impl FnOnce(&mut Look)) {
        let mut look = self.look();
        change(&mut look);
        if let Err(error) = self.lines.reload(look.lines(&self.queue)) {
            tracing::error!(%error, "cannot change the look of the log");
        }
    }
}

impl Log {
    /// Applies changes of the configuration. Settings of operators stay otherwise.
    fn reload(&self, running: &LogConfig, new: &LogConfig) {
        self.gate.set_rate(new.rate);
        if running.format != new.format {
            self.change(|look| {
                look.format = new.format;
                look.colors = new.format == LogFormat::Text && io::stderr().is_terminal();
            });
        }
        if running.filter != new.filter
            && let Ok(filter) = filter(&new.filter)
        {
            self.look().level = level_of(&filter);
            if let Err(error) = (self.set_filter)(filter) {
                tracing::error!(%error, "cannot change the level of the log");
            }
        }
    }
}

impl LogControl for Log {
    fn level(&self) -> LogLevel {
        self.look().level
    }

    fn set_level(&self, level: LogLevel) {
        self.look().level = level;
        if let Err(error) = (self.set_filter)(filter_of(level)) {
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

impl MetricsSource for Log {
    fn write(&self, page: &mut MetricsPage) {
        let help = "Log lines that were not written: not read in time, or more of a kind than log.rate lets through";
        let values = [
            ("unread", self.queue.dropped()),
            ("rate", self.gate.left_out()),
        ];
        let (kind, name) = (MetricKind::Counter, "log_lines_lost_total");
        page.labelled(kind, name, help, "reason", values);
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Log").field(&self.look()).finish()
    }
}

/// Parses a filter: a level, levels of modules, or both.
fn filter(text: &str) -> Result<EnvFilter, ParseError> {
    let word = text.trim().to_ascii_lowercase();
    let levels = (0..=LogLevel::MAX.get()).filter_map(LogLevel::new);
    if let Some(level) = levels.rev().find(|level| level.word() == word) {
        return Ok(filter_of(level));
    }
    let mut filter = EnvFilter::try_new(text)?;
    for library in SILENT.iter().filter(|library| !text.contains(**library)) {
        filter = filter.add_directive(format!("{library}=off").parse()?);
    }
    Ok(filter)
}

/// Returns the filter of a level. Libraries stay at [`LogLevel::INFO`] at most.
fn filter_of(level: LogLevel) -> EnvFilter {
    let word = level.word();
    let silent = SILENT.join("=off,");
    EnvFilter::new(match level > LogLevel::INFO {
        true => format!("{},portunus={word},{silent}=off", LogLevel::INFO.word()),
        false => format!("{word},{silent}=off"),
    })
}

/// Returns the most verbose level that a filter lets through.
fn level_of(filter: &EnvFilter) -> LogLevel {
    let most = filter.max_level_hint().map(|hint| hint.to_string());
    let levels = (0..=LogLevel::MAX.get()).filter_map(LogLevel::new);
    // The last level with a word is the usual one: 3 of 3, 4 of 4, 2 of 1 and 2.
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
        let of = |level| filter_of(LogLevel::new(level).unwrap_or(LogLevel::MAX)).to_string();
        let read = |text| filter(text).map(|it| it.to_string()).unwrap_or_default();
        for (filter, level) in [
            (of(0), "off"),
            (of(2), "error"),
            (of(4), "info"),
            (read("info"), "info"),
            (read(" WARN "), "warn"),
        ] {
            let parts: Vec<_> = filter.split(',').collect();
            assert!(parts.len() == 3 && parts.contains(&level), "{filter}");
            for library in ["sctp_proto=off", "stun_types=off"] {
                assert!(parts.contains(&library), "{filter}");
            }
        }
        for (filter, level) in [
            (of(5), "portunus=debug"),
            (of(7), "portunus=trace"),
            (read("debug"), "portunus=debug"),
            (read("trace"), "portunus=trace"),
        ] {
            let parts: Vec<_> = filter.split(',').collect();
            assert!(
                parts.contains(&level) && parts.contains(&"info"),
                "{filter}"
            );
        }
        let named = read("warn,is=debug");
        assert!(
            named.contains("is=debug") && named.contains("sctp_proto=off"),
            "{named}"
        );
        assert!(read("info,sctp_proto=warn").contains("sctp_proto=warn"));
        assert!(filter("info,portunus=loud").is_err());
    }

    /// Returns the text that a subscriber writes for the lines of `log`.
    fn written(format: LogFormat, log: impl FnOnce()) -> String {
        let (reader, writer) = io::pipe().unwrap_or_else(|error| unreachable!("{error}"));
        let queue = Queue::start(writer, |_| {}).unwrap_or_else(|error| unreachable!("{error}"));
        let look = Look {
            format,
            level: LogLevel::MAX,
            timestamps: true,
            colors: false,
        };
        let subscriber = tracing_subscriber::registry().with(look.lines(&queue));
        tracing::subscriber::with_default(subscriber, log);
        // All users of the queue are gone, so its thread ends and closes the pipe.
        drop(queue);
        io::read_to_string(reader).unwrap_or_default()
    }

    #[test]
    #[allow(clippy::panic, reason = "a test fails by a panic")]
    fn a_fault_of_the_server_is_a_line_too() {
        let lines = written(LogFormat::Text, || {
            let former = std::panic::take_hook();
            std::panic::set_hook(Box::new(panics::write));
            let ended = std::panic::catch_unwind(|| panic!("oops\nforged"));
            std::panic::set_hook(former);
            assert!(ended.is_err());
        });
        let line = lines.lines().next().unwrap_or_default();
        assert!(
            line.contains("ERROR") && line.contains("oops\\nforged"),
            "{lines}"
        );
        assert!(line.contains("logging/mod.rs"), "{lines}");
    }

    #[test]
    fn a_client_cannot_forge_a_line_or_read_a_secret_in_either_format() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let lines = written(format, || {
                let room = "1\n2026-01-01T00:00:00Z ERROR forged\r\u{2028}\u{202e}\x1b[2J";
                tracing::info!(%room, "room created");
                tracing::info!(room, pin = "S3cr3t", "refused: {room}");
                tracing::debug!(sdp = "a=ice-ufrag:S3cr3t\r\na=ice-pwd:S3cr3t\r\n", "offer");
            });
            assert_eq!(lines.lines().count(), 3, "{lines}");
            let is_plain = |c: char| c == '\n' || (!c.is_control() && c < '\u{2000}');
            assert!(lines.chars().all(is_plain), "{lines:?}");
            assert!(!lines.contains("S3cr3t"), "{lines}");
        }
    }
}
