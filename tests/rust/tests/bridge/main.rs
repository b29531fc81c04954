//! Audio rooms end to end: people who talk and hear, over the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod announcements;
mod beside;
mod files;
mod http;
mod people;
mod phone;
mod quality;
mod rough;
mod world;
