//! TURN (RFC 8656): relays datagrams between clients that reach nothing but this server's TURN port and this server's own
//! media sockets. It relays to no other address, so it is no open relay.
//!
//! [`Client`] is the protocol, sans-IO: one value for each client, which takes a datagram and the time and returns what is
//! to be done. [`Turn`] is the server around it: UDP, TCP and TLS sockets on the running tokio runtime.
//!
//! Messages are read and written by `turn-types`.
#![forbid(unsafe_code)]

mod allocation;
mod answers;
mod client;
mod config;
mod counters;
mod credentials;
mod framing;
mod media;
mod message;
mod metrics;
mod nonces;
mod places;
mod server;
mod shared;
#[cfg(feature = "testing")]
mod testing;

pub use client::{Action, Client, Pending};
pub use config::TurnConfig;
pub use counters::{TurnClosed, TurnRefused, TurnTotals};
pub use credentials::{Keychain, Login};
pub use framing::{FrameError, frame};
pub use media::{MediaAddress, MediaAddresses};
pub use server::{IceServer, StartError, Turn};
pub use shared::{Limits, Now, Shared};
