//! The Echo Test plugin, `janus.plugin.echotest`: media and data that the client sends come back.
#![forbid(unsafe_code)]

mod echo;
mod request;
mod settings;

use portunus_core::{Handle, Plugin, PluginHandle, PluginInfo, Reply};
use serde_json::Value;

/// The plugin; it has no configuration.
#[derive(Debug, Default)]
pub struct EchoTest;

impl Plugin for EchoTest {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: "janus.plugin.echotest",
            name: "Echo Test plugin",
            description: "Media and data that the client sends come back.",
            version: 7,
            version_string: "0.0.7",
        }
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(echo::Echo::new(handle))
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        Some(Reply::Success(request))
    }
}
