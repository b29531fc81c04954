//! The plugin's configuration.

use std::path::PathBuf;

use portunus_core::configuration::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

/// The plugin's section of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordPlayConfig {
    /// The folder of the recordings, relative to the folder of all recordings. It is made if
    /// missing.
    pub path: PathBuf,
    /// The key that `update` and lists with private recordings require. Empty: anybody may update,
    /// and private recordings are never listed.
    pub admin_key: String,
    /// Whether recordings are private by default.
    pub private: bool,
    /// Whether event handlers get events about recordings.
    pub events: bool,
    /// Whether HTTP serves the files of recordings, at addresses that cannot be guessed.
    pub serve: bool,
    /// Whether clients without the right to record may record here.
    pub public: bool,
}

impl Default for RecordPlayConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::from("recordplay"),
            admin_key: String::new(),
            private: false,
            events: true,
            serve: true,
            public: false,
        }
    }
}

impl Configuration for RecordPlayConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let recordplay: Self = section.keys();
        let has_path = !recordplay.path.as_os_str().is_empty();
        section.require(&["path"], has_path, "expected a path in quotes, got \"\"");
        recordplay
    }

    fn probe(&self, probe: &mut Probe) {
        if self.path.is_absolute() {
            probe.written_folder("path", &self.path);
        } else if self.path != RecordPlayConfig::default().path {
            probe.records("path", self.path.to_str());
        }
    }
}

impl RecordPlayConfig {
    /// Returns the key, if there is one.
    pub(crate) fn admin_key(&self) -> Option<&str> {
        Some(self.admin_key.as_str()).filter(|key| !key.is_empty())
    }
}
