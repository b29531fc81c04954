//! Conferences without a plugin: the view of the clients, and the requests to the media plane.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod crowd;
mod elsewhere;
mod forwarders;
mod moderation;
mod own_offers;
mod speakers;
mod switches;
mod world;
