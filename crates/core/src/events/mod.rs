//! Events of the server for subscribers: the event bus, and the handlers that pass events to other
//! systems.
//!
//! Events for clients are separate: see [`crate::Handle::push`].

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
pub use statistics::{link_quality, media_link_quality};
pub use subscription::Subscription;
