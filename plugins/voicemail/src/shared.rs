//! The state that all handles of the plugin share.

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use serde_json::{Value, json};

use crate::config::VoiceMailConfig;
use crate::counts::Counts;
use crate::current_messages::CurrentMessages;

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: VoiceMailConfig,
    pub(crate) media: MediaPlane,
    /// Its files are in the plugin's folder.
    pub(crate) recorder: Recorder,
    pub(crate) counts: Counts,
    pub(crate) current: CurrentMessages,
}

impl Shared {
    /// What an administrator sees of the plugin.
    pub(crate) fn list(&self) -> Value {
        json!({
            "voicemail": "success",
            "path": self.recorder.folder().to_string_lossy(),
            "base": self.config.base,
            "recording": self.current.list(),
        })
    }
}
