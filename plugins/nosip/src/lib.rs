//! The NoSIP plugin, `janus.plugin.nosip`: calls between clients and far ends of plain RTP or SRTP.
//! It converts the SDP of one side for the other; the client transports it.
#![forbid(unsafe_code)]

mod attached;
mod call;
mod config;
mod counts;
mod request;
mod shared;

use std::convert::Infallible;
use std::sync::Arc;

use portunus_audio::AudioThreads;
use portunus_core::{
    Asked, ConfiguredPlugin, Handle, Plugin, PluginContext, PluginCounter, PluginHandle, PluginInfo,
};

pub use config::NoSipConfig;
pub use request::Request;

use crate::attached::Attached;
use crate::counts::Counts;
use crate::shared::Shared;

/// The plugin.
#[derive(Debug)]
pub struct NoSip {
    shared: Arc<Shared>,
}

impl ConfiguredPlugin for NoSip {
    const NAME: &'static str = "nosip";
    type Config = NoSipConfig;
    type Error = Infallible;

    async fn from_config(config: NoSipConfig, context: PluginContext) -> Result<Self, Infallible> {
        let audio = context.services.get::<AudioThreads>().ok().cloned();
        Ok(NoSip::new(&config, context.media, context.outgoing, audio))
    }
}

impl NoSip {
    /// Makes the plugin on a media plane. Far ends must be in the networks of `outgoing`. The
    /// threads of `audio` transcode.
    pub fn new(
        config: &NoSipConfig,
        media: portunus_core::media::MediaPlane,
        outgoing: portunus_core::Networks,
        audio: Option<AudioThreads>,
    ) -> Self {
        let shared = Shared {
            settings: Arc::new(config.calls(media, outgoing, audio)),
            public: config.public,
            counts: Counts::default(),
        };
        NoSip {
            shared: Arc::new(shared),
        }
    }
}

impl Plugin for NoSip {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: "janus.plugin.nosip",
            name: "NoSIP plugin",
            description: "Calls with far ends of plain RTP, whose signalling is somebody else's.",
            version: 2,
            version_string: "0.0.2",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Request>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(Attached::new(handle, Arc::clone(&self.shared)))
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.counts.counters()
    }

    fn gauges(&self) -> Vec<PluginCounter> {
        self.shared.counts.gauges()
    }
}
