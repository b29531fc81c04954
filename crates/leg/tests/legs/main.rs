//! Legs between telephones: what one sends into its leg comes to the other out of its own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]

mod call;
mod keys;
#[path = "../rig/mod.rs"]
mod rig;
mod rtcp;
mod streams;
mod ways;
