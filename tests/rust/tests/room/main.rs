//! A video room, end to end: publishers and viewers with PeerConnections, on several workers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod data;
mod feeds;
mod pictures;
mod remote;
mod rough;
mod world;
