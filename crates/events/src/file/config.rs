//! `[events.file]`.

use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

/// The configuration of the file handler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct FileConfig {
    /// The file.
    #[serde(with = "portunus_config::optional")]
    pub(super) path: Option<PathBuf>,
    /// The size from which on a new file starts, in MiB. 0 means never.
    pub(super) rotate_mb: u64,
    /// The number of files kept besides the current one.
    pub(super) keep: u32,
    /// The least time between two writes, in ms.
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
