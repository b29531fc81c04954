//! The interface of event handlers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Subscription;
use crate::{FieldError, Fields, Object, PluginCounter};

/// The description of an event handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHandlerInfo {
    /// Its package, such as `janus.eventhandler.sampleevh`.
    pub package: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// A description in one sentence.
    pub description: &'static str,
    /// Its version as a number that grows.
    pub version: u32,
    /// Its version for people.
    pub version_string: &'static str,
}

/// The work of a handler for as long as there are events.
pub type Handling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An event handler: takes events from the bus and passes them to another system. Nothing else in
/// the server waits for it. Events that it does not take in time are dropped and counted.
pub trait EventHandler: Send + Sync + 'static {
    /// Describes the handler.
    fn info(&self) -> EventHandlerInfo;

    /// Passes on events until [`Subscription::recv`] returns `None`, at the end of the server.
    fn run(self: Arc<Self>, events: Subscription) -> Handling;

    /// Changes its settings by an operator's `tweak`. Checks all members before any takes effect.
    /// The bus handles the member `events`.
    fn tweak(&self, _members: Fields<'_>) -> Result<(), TweakError> {
        Ok(())
    }

    /// Answers another request of an operator, named by `request`. The answer is an object.
    fn query(&self, _name: &str, _members: Fields<'_>) -> Result<Object, TweakError> {
        Err(TweakError::UnknownRequest)
    }

    /// Returns its counters since the start.
    fn counters(&self) -> Vec<PluginCounter> {
        Vec::new()
    }
}

/// The reason why an operator's request to a handler is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TweakError {
    /// There is no such request.
    #[error("Unknown request")]
    UnknownRequest,
    /// A member is missing.
    #[error("Missing mandatory element ({0})")]
    Missing(String),
    /// A member has a wrong type or value. The text names it.
    #[error("{0}")]
    Invalid(String),
    /// The request failed.
    #[error("{0}")]
    Other(String),
}

impl From<FieldError> for TweakError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Missing(name) => TweakError::Missing(name),
            other => TweakError::Invalid(other.to_string()),
        }
    }
}

impl TweakError {
    /// Returns its number on the wire.
    pub const fn code(&self) -> u16 {
        match self {
            TweakError::UnknownRequest => 411,
            TweakError::Missing(_) => 412,
            TweakError::Invalid(_) => 413,
            TweakError::Other(_) => 499,
        }
    }
}
