//! The transports with a real gateway, over real sockets of this machine.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod admin;
mod budget;
mod events;
mod files;
mod http;
mod polling;
mod secure;
mod server;
mod trust;
mod unix;
mod websocket;
mod whip;
