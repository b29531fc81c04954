//! The Audio Bridge, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod cluster;
mod configuration;
mod descriptions;
mod files;
mod forwarding;
mod joining;
mod listening;
mod manage;
mod moderation;
mod moving;
mod recording;
mod refusals;
mod rtp;
mod strangers;
mod suspension;
mod vectors;
mod world;
