//! Clients of LiveKit's protocol at the door: joins, tracks, data, reconnects, and what is refused.
#![allow(
    deprecated,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod agents;
mod bad_input;
mod data;
mod data_tracks;
mod identities;
mod joins;
mod media;
mod moves;
mod services;
mod single;
mod tracks;
mod world;
