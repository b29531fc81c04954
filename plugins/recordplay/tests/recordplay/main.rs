//! The plugin's requests, errors, events and files, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod lists;
mod play;
mod record;
mod refusals;
mod watched;
mod world;
