//! The description of a complete file.

use std::path::PathBuf;
use std::time::Duration;

use portunus_files::manifest::FileEnd;

/// The owner of files that belong to no recorded room or call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The package of the plugin.
    pub plugin: &'static str,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
}

/// A file that is complete: nothing more is written into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// Its path.
    pub file: PathBuf,
    /// The path of the manifest that names it.
    pub manifest: Option<PathBuf>,
    /// The package of the plugin, or `None` if the owner is unknown.
    pub plugin: Option<&'static str>,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
    /// The id in the room.
    pub participant: Option<String>,
    /// Its duration.
    pub duration: Duration,
    /// Its length in bytes.
    pub bytes: u64,
    /// Why it ended.
    pub end: FileEnd,
}
