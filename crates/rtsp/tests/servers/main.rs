//! Servers that lie, hang and send garbage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod faults;
mod keep_alive;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod transport;
