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
    /// Records into the plugin's folder.
    pub(crate) recorder: Recorder,
    pub(crate) counts: Counts,
    pub(crate) current: CurrentMessages,
}

impl Shared {
    /// Describes the plugin to an administrator.
    pub(crate) fn list(&self) -> Value {
        json!({
            "voicemail": "success",
            "path": self.recorder.folder().to_string_lossy(),
            "base": self.config.base,
            "recording": self.current.list(),
        })
    }
}
