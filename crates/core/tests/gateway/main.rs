//! The core driven by JSON, without a network: every verb, error and event.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod auth;
mod drain;
mod errors;
mod events;
mod handles;
mod internal;
mod jwt;
mod peers;
mod polling;
mod recorded;
mod server;
mod sessions;
mod sharing;
mod trust;
mod world;
