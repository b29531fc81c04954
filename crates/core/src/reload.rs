//! Reloads of the configuration while the server runs.

use std::pin::Pin;

/// Reads the configuration again and applies it to all parts of the program.
pub trait Reloader: Send + Sync + 'static {
    /// Applies the changes. The error is a text for people; after an error nothing has changed.
    fn reload(&self) -> Reloading<'_>;
}

/// A reload in progress.
pub type Reloading<'a> = Pin<Box<dyn Future<Output = Result<Reloaded, String>> + Send + 'a>>;

/// The outcome of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// The changes that took effect: keys with their sections, such as `log.filter`, and rooms.
    pub changed: Vec<String>,
    /// Changed keys that need a restart.
    pub restart: Vec<String>,
    /// Changes that failed or have to wait.
    pub warnings: Vec<String>,
}
