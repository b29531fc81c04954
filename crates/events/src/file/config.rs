//! `[events.file]`.

use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

/// Where events are written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct FileConfig {
    /// The file.
    #[serde(with = "portunus_config::optional")]
    pub(super) path: Option<PathBuf>,
    /// The size from which on a new file is begun, in MiB; 0: none.
    pub(super) rotate_mb: u64,
    /// Files that are kept beside the current one.
    pub(super) keep: u32,
    /// The least time from one write to the next.
    pub(super) batch_pause_ms: u64,
}

impl Default for FileConfig {
    fn default() -> Self {
        FileConfig {
            path: None,
            rotate_mb: 100,
            keep: 5,
            batch_pause_ms: 50,
        }
    }
}

impl Configuration for FileConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let file: Self = section.keys();
        section.range("rotate_mb", file.rotate_mb, 0..=1_000_000);
        section.range("keep", file.keep, 0..=1_000);
        section.range("batch_pause_ms", file.batch_pause_ms, 0..=10_000);
        file
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(path) = &self.path {
            probe.written_file("path", path);
        }
    }
}
