//! The Admin API on a gateway without a network.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod captures;
mod handle_info;
mod modules;
mod network;
mod overview;
mod requests;
mod sessions;
mod stage;
mod stored_tokens;
#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "../../../core/tests/gateway/world.rs"]
mod world;
