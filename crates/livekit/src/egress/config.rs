//! The section `[livekit.egress]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Recordings and streams that the service `Egress` starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressConfig {
    /// The folder of the files, relative to `recording.dir`.
    pub dir: PathBuf,
    /// The most egresses that run at a time. 0 disables the service.
    pub max: usize,
    /// How often a stream is started again after its program has failed.
    pub stream_restarts: u32,
}

impl Default for EgressConfig {
    fn default() -> Self {
        EgressConfig {
            dir: PathBuf::from("egress"),
            max: 100,
            stream_restarts: 5,
        }
    }
}
