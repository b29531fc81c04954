//! A plugin in its own crate, which greets by name and over calls, and an event handler, which
//! prints events.
#![forbid(unsafe_code)]

mod config;
mod printer;
mod request;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::sdp::{AnswerOptions, Description};
use portunus_core::{
    ConfiguredPlugin, Fields, Handle, HandleEvent, JsepKind, Message, Plugin, PluginContext,
    PluginHandle, PluginInfo, Reply,
};
use serde_json::{Value, json};

pub use config::GreeterConfig;
pub use printer::{Printer, PrinterConfig};
pub use request::Request;

use crate::request::{Introduction, Lesson, Refusal};

/// The plugin: what clients attach to.
#[derive(Debug, Default)]
pub struct Greeter {
    manners: Arc<Manners>,
}

/// The greeting, which all handles share.
#[derive(Debug, Default)]
struct Manners(Mutex<GreeterConfig>);

impl Manners {
    fn lock(&self) -> MutexGuard<'_, GreeterConfig> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConfiguredPlugin for Greeter {
    const NAME: &'static str = "greeter";
    type Config = GreeterConfig;
    type Error = Infallible;

    async fn from_config(config: GreeterConfig, _: PluginContext) -> Result<Self, Infallible> {
        let manners = Arc::new(Manners(Mutex::new(config)));
        Ok(Greeter { manners })
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
        let manners = self.manners.clone();
        let name = "stranger".to_owned();
        Box::new(Guest {
            handle,
            manners,
            name,
        })
    }

    /// Shows administrators the greeting.
    fn admin(&self, _: Value) -> Option<Reply> {
        let GreeterConfig { greeting, times } = &*self.manners.lock();
        let reply = json!({ "greeting": greeting, "times": times });
        Some(Reply::Success(reply))
    }
}

/// A client.
struct Guest {
    handle: Handle,
    manners: Arc<Manners>,
    name: String,
}

impl PluginHandle for Guest {
    fn message(&mut self, message: Message) -> Reply {
        match self.answer(&message) {
            Ok(reply) => reply,
            Err(refusal) => Reply::Error(refusal.to_string()),
        }
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
    /// Answers a request. The core discards an offer without an answer, such as that of a refused
    /// `call`.
    fn answer(&mut self, message: &Message) -> Result<Reply, Refusal> {
        let fields = Fields(&message.body);
        match Request::read(message)? {
            Request::Greet => {
                self.meet(fields.read()?);
                Ok(Reply::Success(self.greeting()))
            }
            Request::Call => {
                let introduction = fields.read()?;
                let offer = message.jsep.as_ref();
                let offer = offer.filter(|jsep| jsep.kind == JsepKind::Offer);
                let offer = &offer.ok_or(Refusal::NoOffer)?.description;
                let answer = Description::answer(offer, &AnswerOptions::default());
                let answer = self.handle.answer(answer)?;
                self.meet(introduction);
                self.handle
                    .push(Some(&message.transaction), self.greeting(), Some(answer));
                Ok(Reply::Ack(None))
            }
            Request::Teach => {
                let lesson: Lesson<'_> = fields.read()?;
                let (greeting, times) = lesson.check()?;
                *self.manners.lock() = GreeterConfig { greeting, times };
                Ok(Reply::Success(self.greeting()))
            }
        }
    }

    fn meet(&mut self, introduction: Introduction<'_>) {
        if let Some(name) = introduction.name {
            self.name = name.to_owned();
        }
        self.handle
            .notify(|| json!({ "event": "greeted", "name": self.name }));
    }

    fn greeting(&self) -> Value {
        let GreeterConfig { greeting, times } = &*self.manners.lock();
        let once = format!("{greeting}, {}!", self.name);
        json!({ "greeting": vec![once; *times].join(" ") })
    }
}
