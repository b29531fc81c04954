//! Clients of servers: the Janus API and LiveKit's protocol over WebSocket, WHIP and WHEP over HTTP,
//! each with or without TLS.

mod broadcast;
mod error;
mod janus;
pub(crate) mod livekit;
mod tls;

pub use broadcast::Broadcast;
pub use error::ClientError;
pub use janus::{Connection, Credentials, Handle, Session};
pub(crate) use janus::{description, plugin_data};
pub use tls::Trust;
