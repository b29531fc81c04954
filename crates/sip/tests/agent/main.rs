//! Agents in a simulated network, in virtual time: what users of phones would notice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod callee;
mod calls;
mod held;
mod large;
mod races;
mod random;
mod refused;
mod registrar;
mod registrars;
mod registration;
mod renegotiation;
mod secrets;
mod setup;
mod subscriptions;
mod told;
mod torture;
mod transfer;
mod world;
