//! A plugin in a crate of its own, which greets by name, and whoever connects; and an event handler, which prints what happens.
#![forbid(unsafe_code)]

mod config;
mod printer;

use std::convert::Infallible;
use std::sync::Arc;

use portunus_core::sdp::{AnswerOptions, Description};
use portunus_core::{
    ConfiguredPlugin, Fields, Handle, HandleEvent, Message, Plugin, PluginContext, PluginHandle,
    PluginInfo, Reply,
};
use serde_json::{Value, json};

pub use config::GreeterConfig;
pub use printer::{Printer, PrinterConfig};

/// The plugin: what clients attach to.
#[derive(Debug)]
pub struct Greeter {
    config: Arc<GreeterConfig>,
}

impl ConfiguredPlugin for Greeter {
    const NAME: &'static str = "greeter";
    type Config = GreeterConfig;
    type Error = Infallible;

    async fn from_config(config: GreeterConfig, _: PluginContext) -> Result<Self, Infallible> {
        let config = Arc::new(config);
        Ok(Greeter { config })
    }
}

impl Plugin for Greeter {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: "example.plugin.greeter",
            name: "Greeter",
            description: "Greets by name, and whoever connects.",
            version: 1,
            version_string: "1.0.0",
        }
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        let config = self.config.clone();
        let name = "stranger".to_owned();
        Box::new(Guest {
            handle,
            config,
            name,
        })
    }

    /// Tells administrators how it greets.
    fn admin(&self, _: Value) -> Option<Reply> {
        let GreeterConfig { greeting, times } = &*self.config;
        let reply = json!({ "greeting": greeting, "times": times });
        Some(Reply::Success(reply))
    }
}

/// One client.
struct Guest {
    handle: Handle,
    config: Arc<GreeterConfig>,
    name: String,
}

impl PluginHandle for Guest {
    /// `{"name": …}` is replied to at once; an offer is answered by an event, after the reply.
    fn message(&mut self, message: Message) -> Reply {
        match Fields(&message.body).string("name") {
            Ok(name) => self.name = name.unwrap_or(&self.name).to_owned(),
            Err(error) => return Reply::Error(error.to_string()),
        }
        self.handle
            .notify(|| json!({ "event": "greeted", "name": self.name }));
        let Some(offer) = message.jsep else {
            return Reply::Success(self.greeting());
        };
        let answer = Description::answer(&offer.description, &AnswerOptions::default());
        match self.handle.answer(answer) {
            Ok(jsep) => self
                .handle
                .push(Some(&message.transaction), self.greeting(), Some(jsep)),
            Err(error) => return Reply::Error(error.to_string()),
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        if event == HandleEvent::Up {
            self.handle.push(None, self.greeting(), None);
            let greeted = || json!({ "event": "greeted", "name": self.name });
            self.handle.notify(greeted);
        }
    }

    fn query(&self) -> Value {
        json!({ "name": self.name })
    }
}

impl Guest {
    fn greeting(&self) -> Value {
        let GreeterConfig { greeting, times } = &*self.config;
        let once = format!("{greeting}, {}!", self.name);
        json!({ "greeting": vec![once; *times].join(" ") })
    }
}
