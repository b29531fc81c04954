//! The Voice Mail plugin, `janus.plugin.voicemail`: it records a message of some seconds as an Ogg
//! file of Opus.
#![forbid(unsafe_code)]

mod answer;
mod attached;
mod config;
mod counts;
mod current_messages;
mod file;
mod mailbox;
mod request;
mod shared;

use std::convert::Infallible;
use std::sync::Arc;

use portunus_core::media::MediaPlane;
use portunus_core::record::{Recorder, Whose};
use portunus_core::{
    Asked, ConfiguredPlugin, Fields, Handle, Plugin, PluginContext, PluginCounter, PluginHandle,
    PluginInfo, PublicFile, PublicFiles, Reply,
};
use serde_json::Value;

pub use config::VoiceMailConfig;
pub use request::Request;

use crate::attached::Attached;
use crate::counts::Counts;
use crate::current_messages::CurrentMessages;
use crate::request::Refusal;
use crate::shared::Shared;

const PACKAGE: &str = "janus.plugin.voicemail";

/// The plugin with the messages that are being recorded.
#[derive(Debug)]
pub struct VoiceMail {
    shared: Arc<Shared>,
}

impl VoiceMail {
    /// Starts the plugin. Its files are below the folder of `recorder`.
    pub fn new(config: VoiceMailConfig, media: MediaPlane, recorder: &Recorder) -> Self {
        let mut recorder = recorder.in_folder(&config.path);
        if config.events {
            recorder = recorder.on_behalf_of(Whose {
                plugin: PACKAGE,
                room: None,
            });
        }
        let shared = Shared {
            recorder,
            config,
            media,
            counts: Counts::default(),
            current: CurrentMessages::default(),
        };
        VoiceMail {
            shared: Arc::new(shared),
        }
    }
}

impl ConfiguredPlugin for VoiceMail {
    const NAME: &'static str = "voicemail";
    type Config = VoiceMailConfig;
    type Error = Infallible;

    async fn from_config(
        config: VoiceMailConfig,
        context: PluginContext,
    ) -> Result<Self, Infallible> {
        Ok(VoiceMail::new(config, context.media, &context.recorder))
    }
}

impl Plugin for VoiceMail {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "Voice Mail plugin",
            description: "What a client says for some seconds, in a file that plays.",
            version: 7,
            version_string: "0.0.7",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Request>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(Attached::new(handle, Arc::clone(&self.shared)))
    }

    fn files(&self) -> Option<&dyn PublicFiles> {
        self.shared.config.serve.then_some(self)
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let answer = match request.as_object().map(Fields) {
            None => Err(Refusal::NotAnObject),
            Some(fields) => fields
                .required::<&str>("request")
                .map_err(Refusal::from)
                .and_then(|name| match name.to_ascii_lowercase().as_str() {
                    "list" => Ok(self.shared.list()),
                    _ => Err(Refusal::Unknown(name.to_owned())),
                }),
        };
        let answer = answer.unwrap_or_else(|refusal| refusal.to_json());
        Some(Reply::Success(answer))
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.counts.counters()
    }
}

/// The name of a message cannot be guessed, so it needs no other protection.
impl PublicFiles for VoiceMail {
    fn find(&self, path: &str) -> Option<PublicFile> {
        let rest = path.strip_prefix(self.shared.config.base.as_str())?;
        let name = rest.trim_start_matches('/');
        file::is_name(name).then(|| PublicFile::at(self.shared.recorder.folder().join(name)))
    }
}
