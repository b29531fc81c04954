//! The configuration of the Admin API.

use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Secret, Section};
use serde::{Deserialize, Serialize};

/// `[admin]`: who is let in, and where captures are written. Its transports have keys in this
/// section, too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminConfig {
    /// The secret that requests carry as `admin_secret`. Without it only programs on this machine
    /// are let in.
    #[serde(with = "portunus_config::optional")]
    pub secret: Option<Secret>,
    /// The folder of packet captures. Without it captures are refused.
    #[serde(with = "portunus_config::optional")]
    pub capture_folder: Option<PathBuf>,
}

impl Configuration for AdminConfig {
    fn read(section: &mut Section<'_>) -> Self {
        section.keys()
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(folder) = &self.capture_folder {
            match folder.exists() {
                true => probe.written_folder("capture_folder", folder),
                false => probe.folder("capture_folder", folder),
            }
        }
    }
}
