//! The Echo Test plugin, `janus.plugin.echotest`: media and data that the client sends come back.
#![forbid(unsafe_code)]

mod echo;
mod request;
mod settings;

use std::convert::Infallible;

use portunus_core::{
    ConfiguredPlugin, Handle, Plugin, PluginContext, PluginHandle, PluginInfo, Reply,
};
use serde_json::Value;

pub use request::Request;

/// The plugin. It has no configuration.
#[derive(Debug, Default)]
pub struct EchoTest;

impl ConfiguredPlugin for EchoTest {
    const NAME: &'static str = "echotest";
    type Config = ();
    type Error = Infallible;

    async fn from_config((): (), _: PluginContext) -> Result<Self, Infallible> {
        Ok(EchoTest)
    }
}

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
