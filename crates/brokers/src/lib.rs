//! Connections to message brokers: MQTT, RabbitMQ and NATS.
//!
//! A [`Connection`] is there as long as somebody publishes by it. It is made again whenever it is lost, ever more slowly. What is
//! published meanwhile waits with its sender: nothing is taken from it until the broker is there.
#![forbid(unsafe_code)]

mod backoff;
mod connection;
pub mod mqtt;
pub mod nats;
pub mod rabbitmq;
mod stream;
mod tell;
mod tls;
mod verifier;

pub use connection::{Arrival, BrokerCounters, Connection, Incoming, Publisher, Reply};
pub use tls::{BrokerTls, TlsError};
