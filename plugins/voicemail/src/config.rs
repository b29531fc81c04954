//! The plugin's configuration.

use std::path::PathBuf;
use std::time::Duration;

use portunus_core::configuration::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

/// The plugin's section of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceMailConfig {
    /// The folder of the messages, relative to the folder of recordings. It is made if missing.
    pub path: PathBuf,
    /// The start of the messages' addresses: a path or a URL.
    pub base: String,
    /// Whether event handlers get events about messages.
    pub events: bool,
    /// The time limit of a message.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub max_duration: Duration,
    /// Whether HTTP serves the messages at `base`.
    pub serve: bool,
    /// Whether clients without the right to record may leave messages.
    pub public: bool,
}

impl Default for VoiceMailConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::from("voicemail"),
            base: "/recordings/".to_owned(),
            events: true,
            max_duration: Duration::from_secs(10),
            serve: true,
            public: false,
        }
    }
}

impl Configuration for VoiceMailConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let voicemail: Self = section.keys();
        let has_path = !voicemail.path.as_os_str().is_empty();
        section.require(&["path"], has_path, "expected a path in quotes, got \"\"");
        let text = "expected a path such as \"/recordings/\" or a URL";
        let is_base = is_visible(&voicemail.base)
            && (voicemail.base.starts_with('/') || voicemail.base.contains("://"));
        section.require(&["base"], is_base, text);
        let seconds = voicemail.max_duration.as_secs();
        section.range("max_duration", seconds, 1..=3_600);
        voicemail
    }

    fn probe(&self, probe: &mut Probe) {
        if self.path.is_absolute() {
            probe.written_folder("path", &self.path);
        } else if self.path != VoiceMailConfig::default().path {
            probe.records("path", self.path.to_str());
        }
    }
}

fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
