//! Nodes with a real nats-server, which is killed and stopped, and with real connections between
//! them. Skipped with a message where no nats-server of 2.11 or newer is installed (`scripts/setup
//! cluster`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod intruder;
mod logins;
mod outages;
mod site;
