//! The extension point: what a plugin is to the core.

use serde_json::Value;

/// What a plugin says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginInfo {
    /// What clients attach to, such as `janus.plugin.echotest`.
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

/// A plugin: makes the control logic for each handle that is attached to it.
pub trait Plugin: Send + Sync + 'static {
    /// What it is.
    fn info(&self) -> PluginInfo;

    /// Answers an administrator's message; none if it takes no such messages.
    fn admin(&self, _request: Value) -> Option<Value> {
        None
    }
}
