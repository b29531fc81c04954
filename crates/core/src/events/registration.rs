//! The registration of event handlers, which is like that of plugins: see [`crate::Registration`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use portunus_config::{Configuration, PrintError, Probe, Section, Table, keys_of};
use serde::{Deserialize, Serialize};

use super::{EventBus, EventFilter, EventHandler, EventMask};

/// An event handler that a server can start knowing only its type.
pub trait ConfiguredEventHandler: EventHandler + Sized {
    /// Its name in the configuration: its section is `[events.NAME]`.
    const NAME: &'static str;

    /// Its configuration besides the common keys, or `()` if it has none.
    type Config: Configuration;

    /// An error that keeps it from starting. An unreachable other side is no error, since it may
    /// appear later.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The required key, if it is not set. Then enabling the handler is a mistake.
    fn missing(_config: &Self::Config) -> Option<&'static str> {
        None
    }

    /// Makes the handler.
    fn from_config(config: Self::Config) -> impl Future<Output = Result<Self, Self::Error>> + Send;
}

/// The common keys of all handlers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Common {
    /// Whether it is enabled.
    enabled: bool,
    /// The kinds of events that it gets.
    events: EventMask,
    /// The packages of plugins whose events it gets. Empty means all. It always gets events without
    /// a plugin.
    plugins: Vec<String>,
    /// The most events that wait for it. The oldest are dropped.
    queue: usize,
}

impl Default for Common {
    fn default() -> Self {
        Common {
            enabled: false,
            events: EventMask::ALL,
            plugins: Vec::new(),
            queue: 10_000,
        }
    }
}

impl Common {
    fn read(section: &mut Section<'_>) -> Self {
        let all = Common::default();
        let common = Common {
            enabled: section.key("enabled").unwrap_or(all.enabled),
            events: section.key("events").unwrap_or(all.events),
            plugins: section.key("plugins").unwrap_or(all.plugins),
            queue: section.key("queue").unwrap_or(all.queue),
        };
        section.range("queue", common.queue, 1..=10_000_000);
        common
    }
}

/// An event handler in the list of a server.
#[derive(Clone, Copy)]
pub struct EventHandlerRegistration {
    name: &'static str,
    read: fn(&mut Section<'_>) -> EventHandlerConfig,
}

impl EventHandlerRegistration {
    /// The registration of this handler.
    pub const fn of<H: ConfiguredEventHandler>() -> Self {
        EventHandlerRegistration {
            name: H::NAME,
            read: read::<H>,
        }
    }

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Reads its section below that of all events.
    pub fn read(&self, events: &mut Section<'_>) -> EventHandlerConfig {
        (self.read)(events)
    }
}

impl fmt::Debug for EventHandlerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventHandlerRegistration")
            .field(&self.name)
            .finish()
    }
}

fn read<H: ConfiguredEventHandler>(events: &mut Section<'_>) -> EventHandlerConfig {
    events.section(H::NAME, |section| {
        let common = Common::read(section);
        let own = H::Config::read(section);
        if let Some(key) = H::missing(&own).filter(|_| common.enabled) {
            let what = format!("needs events.{}.{key}", H::NAME);
            section.require(&["enabled", key], false, &what);
        }
        EventHandlerConfig {
            name: H::NAME,
            common,
            own: Box::new(Configured::<H>(own)),
        }
    })
}

/// A configured event handler that is not started yet.
#[derive(Debug)]
pub struct EventHandlerConfig {
    name: &'static str,
    common: Common,
    own: Box<dyn Start>,
}

impl EventHandlerConfig {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it is enabled.
    pub const fn is_enabled(&self) -> bool {
        self.common.enabled
    }

    /// Returns the keys of its section with their values.
    pub fn keys(&self) -> Result<Table, PrintError> {
        let mut keys = keys_of(&self.common)?;
        keys.extend(self.own.keys()?);
        Ok(keys)
    }

    /// Returns the keys of its section that can change while it runs: none.
    pub const fn live(&self) -> &'static [&'static str] {
        &[]
    }

    /// Finds faults in its section that reading does not find.
    pub fn probe(&self, probe: &mut Probe) {
        self.own.probe(probe);
    }

    /// Starts the handler on `bus`.
    pub async fn start(self, bus: &EventBus) -> Result<(), EventHandlerError> {
        let Common {
            events,
            plugins,
            queue,
            ..
        } = self.common;
        let handler = self.own.start().await?;
        let filter = EventFilter {
            kinds: events,
            plugins,
        };
        bus.start(handler, filter, queue);
        Ok(())
    }
}

/// The error of an event handler that does not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the event handler {name}: {error}")]
pub struct EventHandlerError {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The handler's own error.
    #[source]
    pub error: Box<dyn std::error::Error + Send + Sync>,
}

type Starting =
    Pin<Box<dyn Future<Output = Result<Arc<dyn EventHandler>, EventHandlerError>> + Send>>;

/// The common interface of all handlers' configurations.
trait Start: fmt::Debug + Send + Sync {
    fn keys(&self) -> Result<Table, PrintError>;
    fn probe(&self, probe: &mut Probe);
    fn start(self: Box<Self>) -> Starting;
}

struct Configured<H: ConfiguredEventHandler>(H::Config);

impl<H: ConfiguredEventHandler> Start for Configured<H> {
    fn keys(&self) -> Result<Table, PrintError> {
        match H::Config::HAS_KEYS {
            true => keys_of(&self.0),
            false => Ok(Table::new()),
        }
    }

    fn probe(&self, probe: &mut Probe) {
        self.0.probe(probe);
    }

    fn start(self: Box<Self>) -> Starting {
        Box::pin(async move {
            match H::from_config(self.0).await {
                Ok(handler) => Ok(Arc::new(handler) as Arc<dyn EventHandler>),
                Err(error) => Err(EventHandlerError {
                    name: H::NAME,
                    error: error.into(),
                }),
            }
        })
    }
}

impl<H: ConfiguredEventHandler> fmt::Debug for Configured<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
