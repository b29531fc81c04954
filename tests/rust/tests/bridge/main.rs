//! Audio rooms end to end: people who talk and hear, over the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod beside;
mod files;
mod people;
mod world;
