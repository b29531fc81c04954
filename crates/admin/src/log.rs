//! The server's log: its level, its look, and lines for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use portunus_core::{ApiError, Fields, Object};

/// The level of the log, as Janus counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(u8);

impl LogLevel {
    /// Normal events are logged, too.
    pub const INFO: LogLevel = LogLevel(4);
    /// Everything is logged.
    pub const MAX: LogLevel = LogLevel(7);

    /// Returns a level from 0 (nothing) to 7 (everything), or `None` for other numbers.
    pub const fn new(level: u8) -> Option<Self> {
        if level <= Self::MAX.0 {
            Some(LogLevel(level))
        } else {
            None
        }
    }

    /// Returns its number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns its name in log filters. Two levels of Janus share some names.
    pub const fn word(self) -> &'static str {
        match self.0 {
            0 => "off",
            1 | 2 => "error",
            3 => "warn",
            4 => "info",
            5 | 6 => "debug",
            _ => "trace",
        }
    }
}

/// Controls the log, which the program starts.
pub trait LogControl: fmt::Debug + Send + Sync {
    /// Returns the level.
    fn level(&self) -> LogLevel;
    /// Changes the level.
    fn set_level(&self, level: LogLevel);
    /// Whether lines have timestamps.
    fn timestamps(&self) -> bool;
    /// Changes whether lines have timestamps.
    fn set_timestamps(&self, on: bool);
    /// Whether lines have colours.
    fn colors(&self) -> bool;
    /// Changes whether lines have colours.
    fn set_colors(&self, on: bool);
}

/// Stands in for a log: only remembers its settings.
#[derive(Debug)]
pub struct RememberedLog {
    level: AtomicU8,
    timestamps: AtomicBool,
    colors: AtomicBool,
}

impl Default for RememberedLog {
    fn default() -> Self {
        RememberedLog {
            level: AtomicU8::new(LogLevel::INFO.0),
            timestamps: AtomicBool::new(true),
            colors: AtomicBool::new(false),
        }
    }
}

impl LogControl for RememberedLog {
    fn level(&self) -> LogLevel {
        LogLevel(self.level.load(Ordering::Relaxed))
    }

    fn set_level(&self, level: LogLevel) {
        self.level.store(level.0, Ordering::Relaxed);
    }

    fn timestamps(&self) -> bool {
        self.timestamps.load(Ordering::Relaxed)
    }

    fn set_timestamps(&self, on: bool) {
        self.timestamps.store(on, Ordering::Relaxed);
    }

    fn colors(&self) -> bool {
        self.colors.load(Ordering::Relaxed)
    }

    fn set_colors(&self, on: bool) {
        self.colors.store(on, Ordering::Relaxed);
    }
}

pub(super) fn set_level(log: &dyn LogControl, fields: Fields<'_>) -> Result<Object, ApiError> {
    let wanted = fields.required::<u64>("level")?;
    let level = u8::try_from(wanted).ok().and_then(LogLevel::new);
    let level = level.ok_or_else(|| {
        let text = format!("Invalid element type (level should be between 0 and 7, got {wanted})");
        ApiError::InvalidElement(text)
    })?;
    log.set_level(level);
    Ok(Object::new().with("level", log.level().get()))
}

pub(super) fn set_timestamps(log: &dyn LogControl, fields: Fields<'_>) -> Result<Object, ApiError> {
    log.set_timestamps(fields.required::<bool>("timestamps")?);
    Ok(Object::new().with("log_timestamps", log.timestamps()))
}

pub(super) fn set_colors(log: &dyn LogControl, fields: Fields<'_>) -> Result<Object, ApiError> {
    log.set_colors(fields.required::<bool>("colors")?);
    Ok(Object::new().with("log_colors", log.colors()))
}

pub(super) fn custom_line(fields: Fields<'_>) -> Result<Object, ApiError> {
    let line = fields.required_string("line")?;
    let level = fields.positive("level")?.and_then(|n| u8::try_from(n).ok());
    let level = level.and_then(LogLevel::new).unwrap_or(LogLevel::INFO);
    match level.get() {
        1 | 2 => tracing::error!("{line}"),
        3 => tracing::warn!("{line}"),
        5 | 6 => tracing::debug!("{line}"),
        7 => tracing::trace!("{line}"),
        _ => tracing::info!("{line}"),
    }
    Ok(Object::new())
}
