//! The plugin from its clients' view, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod configuration;
mod configure;
mod info;
mod manage;
mod offers;
mod permanent;
mod publish;
mod recording;
mod refusals;
mod rtsp;
mod seek;
mod strangers;
mod switch;
mod viewers;
mod watch;
mod whep;
mod world;
