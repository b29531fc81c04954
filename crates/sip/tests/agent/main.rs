//! Agents in a simulated network, in virtual time: what users of phones would notice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod callee;
mod calls;
mod events;
mod extensions;
mod holds;
mod large;
mod races;
mod random;
mod refusals;
mod registrar;
mod registrars;
mod registration;
mod renegotiation;
mod secrets;
mod setup;
mod subscriptions;
mod torture;
mod transfer;
mod world;
