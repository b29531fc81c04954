//! Announcements: files that a room hears.

use std::path::PathBuf;

/// What is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The file: Ogg with Opus. Whoever asks has to have checked that it may be read.
    pub file: PathBuf,
    /// The group that it belongs to; none: no group, all hear it all the same.
    pub group: Option<usize>,
    /// From the start again at the end, until it is stopped.
    pub looping: bool,
}
