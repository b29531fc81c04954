//! A TURN client (RFC 8656), sans-IO: one allocation of a relayed address at a TURN server, and the
//! channels to its peers.
//!
//! A [`Client`] takes datagrams of the server and the time, and returns datagrams for the server,
//! events and the next deadline. It has no socket, no thread and no clock. After each call that
//! changes it, its owner polls [`Client::poll_transmit`] and [`Client::poll_event`] until both are
//! empty, then asks [`Client::poll_timeout`] when to call [`Client::handle_timeout`].
//!
//! Messages are read and written by `turn-types`.
#![forbid(unsafe_code)]

mod channels;
mod client;
mod fault;
mod login;
mod message;

pub use channels::{Channel, Envelope};
pub use client::{Client, Event, Received};
pub use fault::Fault;
pub use login::Login;

/// The bytes of the head of ChannelData (RFC 8656 section 12.4).
pub const CHANNEL_HEAD: usize = 4;
