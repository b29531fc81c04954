//! The Video Room, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod changes;
mod configuration;
mod dummy;
mod forwarders;
mod layers;
mod limits;
mod manage;
mod moderation;
mod names;
mod publications;
mod recording;
mod refusals;
mod remote;
mod speakers;
mod strangers;
mod stress;
mod subscriptions;
mod talk;
mod watch_requests;
mod world;
