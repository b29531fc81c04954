//! The plugin with a SIP stack that is played by the tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod conversations;
mod counters;
mod incoming_calls;
mod lines;
mod locks;
mod outgoing_calls;
mod registrations;
mod subscriptions;
mod transfers;
mod world;
