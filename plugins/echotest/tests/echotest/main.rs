//! The plugin's requests, errors and events, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod media;
mod requests;
mod world;
