//! Event handlers, configured and started as in a server, and others to talk to: real sockets, files and programs.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod backend;
mod configuration;
mod file;
mod gelf;
mod guide;
mod nanomsg;
mod running;
mod webhook;
mod webhook_failures;
mod websocket;
