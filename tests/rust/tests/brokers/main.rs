//! The Janus API, the Admin API and events by real brokers from Debian, which are stopped and
//! started meanwhile. A broker that is not installed is skipped with a message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod broker;
mod correspondent;
mod mosquitto;
mod nats;
mod rabbitmq;
mod scenario;
mod site;
