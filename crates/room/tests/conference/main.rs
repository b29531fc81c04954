//! Conferences without a plugin: what people in them notice, and what the media plane is asked for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod forwarding;
mod moderation;
mod speaking;
mod switching;
mod together;
mod world;
