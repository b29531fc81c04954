//! What happens in the server, for those who watch it: the event bus, and the handlers that take events from it elsewhere.
//!
//! Clients are told what concerns them by events of another kind, which are in [`crate::Handle::push`].

mod bus;
mod config;
mod event;
mod filter;
mod handler;
mod kind;
pub(crate) mod lifecycle;
pub(crate) mod media;
mod registration;
mod server;
pub(crate) mod statistics;
mod subscription;
pub(crate) mod webrtc;

pub use bus::{EventBus, EventCounters, HandlerCounters, PluginEvents};
pub use config::EventsConfig;
pub use event::{EventAddress, ServerEvent};
pub use filter::EventFilter;
pub use handler::{EventHandler, EventHandlerInfo, Handling, TweakError};
pub use kind::{EventKind, EventMask};
pub use registration::{
    ConfiguredEventHandler, EventHandlerConfig, EventHandlerError, EventHandlerRegistration,
};
pub(crate) use server::ServerFigures;
pub use subscription::Subscription;
