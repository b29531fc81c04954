//! What plugins answer, tell their clients, tell event handlers and tell administrators: member by member, with real peers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
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
