//! The Video Call plugin, `janus.plugin.videocall`: calls between two registered users. It passes
//! on descriptions, media and data.
#![forbid(unsafe_code)]

mod calls;
mod descriptions;
mod far;
mod incoming;
mod link;
mod outgoing;
mod recording;
mod relay;
mod request;
#[cfg(feature = "testing")]
pub mod testing;
mod user;
mod users;

use std::convert::Infallible;

use portunus_core::{
    Asked, ConfiguredPlugin, Handle, Plugin, PluginContext, PluginHandle, PluginInfo,
};

pub use calls::VideoCalls;
pub use far::{CallDemand, ClaimError, Crossing};
pub use request::Request;

/// The plugin with its registered users. It has no configuration.
#[derive(Debug, Default)]
pub struct VideoCall {
    calls: VideoCalls,
}

impl ConfiguredPlugin for VideoCall {
    const NAME: &'static str = "videocall";
    type Config = ();
    type Error = Infallible;

    async fn from_config((): (), context: PluginContext) -> Result<Self, Infallible> {
        let calls = context.services.get::<VideoCalls>().cloned();
        Ok(VideoCall {
            calls: calls.unwrap_or_default(),
        })
    }
}

impl Plugin for VideoCall {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: "janus.plugin.videocall",
            name: "Video Call plugin",
            description: "Calls between two registered users.",
            version: 6,
            version_string: "0.0.6",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Request>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(user::Attached::new(handle, self.calls.clone()))
    }
}
