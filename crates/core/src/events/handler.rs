//! The extension point: what takes events elsewhere.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Subscription;
use crate::{FieldError, Fields, Object, PluginCounter};

/// What an event handler says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHandlerInfo {
    /// What administrators call it by, such as `janus.eventhandler.sampleevh`.
    pub package: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub description: &'static str,
    /// Its version as a number that grows.
    pub version: u32,
    /// Its version for people.
    pub version_string: &'static str,
}

/// What a handler does for as long as there are events.
pub type Handling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An event handler: takes events from the bus, and tells them elsewhere. However slow that is, nothing else in the server waits
/// for it: what it does not take in time is lost, and counted.
pub trait EventHandler: Send + Sync + 'static {
    /// What it is.
    fn info(&self) -> EventHandlerInfo;

    /// Passes events on until there are no more: [`Subscription::recv`] gives none once the server ends.
    fn run(self: Arc<Self>, events: Subscription) -> Handling;

    /// Changes what it does, as an administrator's `tweak` says. All members are to be checked before any takes effect. `events`
    /// is not for it: the bus has checked it, and sees to it.
    fn tweak(&self, _members: Fields<'_>) -> Result<(), TweakError> {
        Ok(())
    }

    /// Answers another request of an administrator, whose name is its `request`; the object is the answer.
    fn query(&self, _name: &str, _members: Fields<'_>) -> Result<Object, TweakError> {
        Err(TweakError::UnknownRequest)
    }

    /// What it has counted since its start.
    fn counters(&self) -> Vec<PluginCounter> {
        Vec::new()
    }
}

/// Why an administrator's request to a handler is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TweakError {
    /// There is no such request.
    #[error("Unknown request")]
    UnknownRequest,
    /// A member is missing.
    #[error("Missing mandatory element ({0})")]
    Missing(String),
    /// A member has a wrong type or value; the text names it.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be done.
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
    /// Its number on the wire.
    pub const fn code(&self) -> u16 {
        match self {
            TweakError::UnknownRequest => 411,
            TweakError::Missing(_) => 412,
            TweakError::Invalid(_) => 413,
            TweakError::Other(_) => 499,
        }
    }
}
