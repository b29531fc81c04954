//! What the core can be told of the Admin API.

use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Secret, Section};
use serde::{Deserialize, Serialize};

/// `[admin]`: who is let in, and what may be written where. The keys of its transports stand in the same section.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminConfig {
    /// What requests have to carry as `admin_secret`; none: programs on this machine may ask, and nobody else.
    #[serde(with = "portunus_config::optional")]
    pub secret: Option<Secret>,
    /// Where captures of packets are written, and below it; none: nowhere.
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
