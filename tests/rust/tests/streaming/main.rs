//! Mountpoints, end to end, and viewers on several workers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod fed;
mod published;
mod world;
