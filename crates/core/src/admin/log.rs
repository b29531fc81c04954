//! The server's log: how much of it there is, how it looks, and lines for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::{ApiError, Fields, Gateway, Object};

/// How much is logged, as Janus counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(u8);

impl LogLevel {
    /// What happens as it should, too.
    pub const INFO: LogLevel = LogLevel(4);
    /// Everything.
    pub const MAX: LogLevel = LogLevel(7);

    /// A level from 0 (nothing) to 7 (everything); none beyond that.
    pub const fn new(level: u8) -> Option<Self> {
        if level <= Self::MAX.0 {
            Some(LogLevel(level))
        } else {
            None
        }
    }

    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The word that filters of the log have for it. Janus has two levels for some of them.
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

/// Log lines that were not written, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogLosses {
    /// Lines that found the queue full, or the output gone.
    pub dropped: u64,
    /// Lines beyond what one place in the program may log.
    pub left_out: u64,
}

/// The way to the log, which the program starts.
pub trait LogControl: fmt::Debug + Send + Sync {
    /// How much is logged.
    fn level(&self) -> LogLevel;
    /// Changes how much is logged.
    fn set_level(&self, level: LogLevel);
    /// Whether lines say when.
    fn timestamps(&self) -> bool;
    /// Changes whether lines say when.
    fn set_timestamps(&self, on: bool);
    /// Whether lines have colours.
    fn colors(&self) -> bool;
    /// Changes whether lines have colours.
    fn set_colors(&self, on: bool);
    /// The lines that were not written.
    fn losses(&self) -> LogLosses;
}

/// Where there is no log: only remembers what it is told.
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

    fn losses(&self) -> LogLosses {
        LogLosses::default()
    }
}

pub(super) fn set_level(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let wanted = fields.required::<u64>("level")?;
    let level = u8::try_from(wanted).ok().and_then(LogLevel::new);
    let level = level.ok_or_else(|| {
        let text = format!("Invalid element type (level should be between 0 and 7, got {wanted})");
        ApiError::InvalidElement(text)
    })?;
    let log = &gateway.context().facts.log;
    log.set_level(level);
    Ok(Object::new().with("level", log.level().get()))
}

pub(super) fn set_timestamps(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let log = &gateway.context().facts.log;
    log.set_timestamps(fields.required::<bool>("timestamps")?);
    Ok(Object::new().with("log_timestamps", log.timestamps()))
}

pub(super) fn set_colors(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let log = &gateway.context().facts.log;
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
