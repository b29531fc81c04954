//! The sockets: UDP, TCP, TLS and WebSockets on tokio, DNS, and an [`Endpoint`] that drives an agent with them.

mod config;
mod connection;
mod endpoint;
mod error;
mod locals;
mod ping;
mod resolver;
mod sockets;
mod stream;
#[cfg(test)]
mod testing;
mod tls;
mod udp;
mod websocket;

pub use config::{Config, Limits, Listen, TlsFiles};
pub use endpoint::{Endpoint, Status};
pub use error::StartError;
pub use ping::{PingError, ping};
