//! A TURN server (RFC 8656). It relays datagrams between clients that can reach only its port and
//! this server's own media sockets. It relays to no other address, so it is no open relay.
//!
//! [`Client`] is the protocol, sans-IO: a value per client, which takes a datagram and the time and
//! returns an action. [`Turn`] is the server around it: UDP, TCP and TLS sockets on the running
//! tokio runtime.
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
