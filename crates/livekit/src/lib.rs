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
//! | `saved` | trunks, rules and ingresses over a restart |
//! | `egress` | recordings and streams that the services start |
//! | `sip` | telephones: trunks, rules and calls |
//! | `ingress`, `whip`, `guest` | media that comes by WHIP and by programs, and its participants |
//! | `session` | one participant: its requests, its PeerConnections, its subscriptions |
//! | `plugin`, `link` | the handles of participants |
#![forbid(unsafe_code)]
#![allow(
    deprecated,
    reason = "clients of former versions send and read fields that LiveKit has replaced"
)]

mod administration;
mod agents;
mod cluster;
mod config;
mod door;
mod drain;
mod edge;
mod egress;
mod ffmpeg;
mod frame;
mod guest;
mod hall;
mod happening;
mod ids;
mod ingress;
mod join_parameters;
pub mod limits;
mod link;
mod livekit;
mod plugin;
mod refusals;
mod rpc;
mod saved;
pub mod services;
mod session;
mod sip;
#[cfg(feature = "testing")]
pub mod testing;
pub mod token;
mod webhook;
mod whip;

pub use config::{ClientIceServer, KeysError, LiveKitConfig};
pub use door::Means;
pub use egress::EgressConfig;
pub use ingress::IngressConfig;
pub use livekit::LiveKit;
/// LiveKit's messages, as its protocol declares them.
pub use livekit_protocol as protocol;
pub use portunus_resources::SavedError;
#[cfg(feature = "testing")]
pub use saved::rewrite as rewrite_saved;
pub use webhook::WebhookConfig;
