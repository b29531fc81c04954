//! The Video Room, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod publishing;
mod subscribing;
mod world;
