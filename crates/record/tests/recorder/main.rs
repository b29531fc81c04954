//! Recorders on a media plane without workers: disks, shared files, manifests, commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod commands;
mod disks;
mod joint;
mod manifests;
mod rig;
mod schema;
