//! The Text Room, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod api_requests;
mod cluster;
mod configuration;
mod limits;
mod manage;
mod messages;
mod observer_events;
mod permanent;
mod posts;
mod refusals;
mod setup;
mod strangers;
mod world;
