//! Audio rooms end to end: people who talk and hear, over the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod announcements;
mod files;
mod http;
mod outsiders;
mod people;
mod phone;
mod quality;
mod rough;
mod world;
