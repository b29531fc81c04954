//! The Admin API on a gateway without a network.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod captures;
mod handle_info;
mod modules;
mod network;
mod overview;
mod requests;
mod sessions;
mod stage;
#[allow(dead_code)]
#[path = "../gateway/world.rs"]
mod world;
