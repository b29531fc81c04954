//! What happens in the server, for those who watch it: the event bus, and the handlers that take events from it elsewhere.
//!
//! Clients are told what concerns them by events of another kind, which are in [`crate::Handle::push`].

mod bus;
mod config;
mod event;
mod filter;
mod handler;
mod kind;
mod registration;
mod subscription;

pub use bus::{EventBus, EventCounters, HandlerCounters, PluginEvents};
pub use config::EventsConfig;
pub use event::{EventAddress, ServerEvent, WrittenEvent};
pub use filter::EventFilter;
pub use handler::{EventHandler, EventHandlerInfo, Handling, TweakError};
pub use kind::{EventKind, EventMask};
pub use registration::{
    ConfiguredEventHandler, EventHandlerConfig, EventHandlerError, EventHandlerRegistration,
};
pub use subscription::Subscription;
