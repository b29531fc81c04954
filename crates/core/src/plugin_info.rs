//! The description of a plugin.

/// The description of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginInfo {
    /// The name that clients attach to, such as `janus.plugin.echotest`.
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
