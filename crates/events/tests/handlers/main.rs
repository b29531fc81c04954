//! Event handlers, configured and started as in a server, with real peers: sockets, files and
//! programs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod backend;
mod configuration;
mod file;
mod gelf;
mod guide;
mod lifecycle;
mod nanomsg;
mod webhook;
mod webhook_failures;
mod websocket;
