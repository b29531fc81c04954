//! The answers of plugins, and their events for clients, event handlers and administrators: member
//! by member, with real peers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod administrators;
mod audiobridge;
mod echotest;
mod nosip;
mod participants;
mod sip;
mod streaming;
mod subscribers;
mod videocall;
mod world;
