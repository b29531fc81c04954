//! Files that are complete, and who is told of them.

use std::path::PathBuf;
use std::time::Duration;

use portunus_files::manifest::FileEnd;

/// A file that nothing more is written into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// Where it is.
    pub file: PathBuf,
    /// Where the manifest is that names it.
    pub manifest: Option<PathBuf>,
    /// The package of the plugin; none if nobody said whose recording it is.
    pub plugin: Option<&'static str>,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
    /// The id in the room.
    pub participant: Option<String>,
    /// How long it is.
    pub duration: Duration,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// Why it ended.
    pub end: FileEnd,
}
