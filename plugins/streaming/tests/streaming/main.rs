//! The plugin as its clients see it, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod configuration;
mod configure;
mod manage;
mod offers;
mod permanent;
mod publish;
mod recording;
mod refusals;
mod rtsp;
mod seek;
mod shown;
mod strangers;
mod switch;
mod viewers;
mod watch;
mod whep;
mod world;
