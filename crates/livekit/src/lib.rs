//! The LiveKit door: LiveKit's signalling, data and services, on the rooms of this server.
#![forbid(unsafe_code)]

pub mod limits;
pub mod services;
pub mod token;

/// LiveKit's messages, as its protocol declares them.
pub use livekit_protocol as protocol;
