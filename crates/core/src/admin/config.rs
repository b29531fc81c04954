//! What the core can be told of the Admin API.

use std::path::PathBuf;

use portunus_config::{Configuration, Secret, Section};
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
}
