//! The Video Room, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod changing;
mod configuration;
mod dummy;
mod forwarding;
mod layers;
mod limits;
mod manage;
mod moderation;
mod names;
mod publishing;
mod recording;
mod refusals;
mod remote;
mod rough;
mod speakers;
mod strangers;
mod subscribing;
mod talking;
mod watching;
mod world;
