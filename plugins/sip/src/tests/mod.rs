//! The plugin with a SIP stack that is played by the tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod called;
mod calling;
mod counted;
mod lines;
mod registering;
mod subscribing;
mod talking;
mod transfers;
mod world;
