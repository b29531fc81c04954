//! Event handlers: where what happens in the server is told.
#![forbid(unsafe_code)]

mod backoff;
mod batch;
mod file;
mod gelf;
mod json;
mod nanomsg;
mod stream;
mod tally;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod tweak;
mod webhook;
mod websocket;

pub use file::{File, FileConfig, FileError};
pub use gelf::{Gelf, GelfConfig, GelfError};
pub use nanomsg::{Nanomsg, NanomsgConfig, NanomsgError};
pub use tls::TlsError;
pub use webhook::{Webhook, WebhookConfig, WebhookError};
pub use websocket::{WebSocket, WebSocketConfig, WebSocketError};
