//! Recorders of a media plane without workers: disks, manifests, commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod commands;
mod disks;
mod manifests;
mod rig;
