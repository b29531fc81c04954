//! Legs between telephones: media from one leg comes out of the other.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by a panic"
)]

mod call;
mod keys;
#[path = "../rig/mod.rs"]
mod rig;
mod rtcp;
mod streams;
mod ways;
