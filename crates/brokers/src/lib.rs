//! Connections to message brokers: MQTT, RabbitMQ and NATS.
//!
//! A [`Connection`] lasts as long as its [`Publisher`]. It reconnects after a loss, with growing
//! waits. Meanwhile messages stay with their senders: none is accepted until the broker is there.
#![forbid(unsafe_code)]

mod backoff;
mod connection;
pub mod mqtt;
pub mod nats;
pub mod rabbitmq;
mod reports;
mod stream;
mod tls;
mod verifier;

pub use connection::{Arrival, BrokerCounters, Connection, Incoming, Publisher, Reply};
pub use tls::{BrokerTls, TlsError};
