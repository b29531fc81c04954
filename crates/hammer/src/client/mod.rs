//! Talking to servers: the Janus API over WebSocket, WHIP and WHEP over HTTP.

mod broadcast;
mod error;
mod janus;

pub use broadcast::Broadcast;
pub use error::ClientError;
pub use janus::{Connection, Credentials, Handle, Session};
pub(crate) use janus::{jsep, plugin_data};
