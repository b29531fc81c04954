//! The Text Room, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod by_api;
mod configuration;
mod limits;
mod manage;
mod messages;
mod permanent;
mod posts;
mod refusals;
mod setup;
mod strangers;
mod watched;
mod world;
