//! Tests across crates, and their common parts: a whole server without transports, and clients of
//! it with PeerConnections of their own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod caller;
mod http;
pub mod janus_tools;
pub mod layered;
mod ogg;
mod peer;
mod ports;
mod server;
pub mod shape;
mod socket;
mod stage;
mod watcher;

pub use caller::Caller;
pub use http::{header, http, serve};
pub use ogg::ogg_opus;
pub use peer::{Packet, Peer};
pub use ports::free_port;
pub use server::Server;
pub use stage::{Sender, Stage, Viewer, listen, vp8, vp8_ingest};
pub use watcher::Watcher;
