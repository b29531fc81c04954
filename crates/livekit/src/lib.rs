//! The LiveKit door: LiveKit's signalling, data and services, on the rooms of this server.
//!
//! A participant of LiveKit is a participant of a [`portunus_room::Room`], which clients of the
//! Janus API join, too. Its PeerConnections are handles of an internal plugin, so limits, events
//! and the Admin API see them like those of any client.
//!
//! | part | contents |
//! |---|---|
//! | `edge` | the HTTP paths and the WebSockets |
//! | `administration`, `rpc` | rooms and participants for the services |
//! | `hall` | what this door knows of a room besides the room itself: ids, states, attributes |
//! | `token` | access tokens |
//! | `services` | Twirp: rooms and participants, as server SDKs see them |
//! | `agents` | workers of agents, their jobs and dispatches |
//! | `webhook` | what happens in rooms, posted to URLs |
//! | `session` | one participant: its requests, its PeerConnections, its subscriptions |
//! | `plugin`, `link` | the handles of participants |
#![forbid(unsafe_code)]
#![allow(
    deprecated,
    reason = "clients of former versions send and read fields that LiveKit has replaced"
)]

mod administration;
mod agents;
mod config;
mod door;
mod drain;
mod edge;
mod frame;
mod hall;
mod happening;
mod ids;
mod join_parameters;
pub mod limits;
mod link;
mod livekit;
mod plugin;
mod rpc;
pub mod services;
mod session;
#[cfg(feature = "testing")]
pub mod testing;
pub mod token;
mod webhook;

pub use config::{KeysError, LiveKitConfig};
pub use livekit::LiveKit;
/// LiveKit's messages, as its protocol declares them.
pub use livekit_protocol as protocol;
pub use webhook::WebhookConfig;
