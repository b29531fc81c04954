//! RabbitMQ (AMQP 0-9-1), by `lapin`.

mod config;
mod task;
mod topology;

pub use config::RabbitServer;
pub use topology::{Exchange, ExchangeType, Queue, Topology};

use bytes::Bytes;

use crate::{BrokerTls, Connection, TlsError};

/// A message that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The exchange. Empty means the broker's own, which sends a message to the queue in its
    /// routing key.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// The content.
    pub payload: Bytes,
    /// The data that identifies the message that it answers.
    pub correlation: Option<Bytes>,
}

/// Connects to `server` and declares `topology`, on the running tokio runtime.
pub fn connect(
    server: &RabbitServer,
    tls: &BrokerTls,
    topology: Topology,
) -> Result<Connection<Outgoing>, TlsError> {
    let plan = task::Plan {
        server: server.clone(),
        tls: tls.client()?,
        topology,
    };
    Ok(Connection::start(|ends| task::run(plan, ends)))
}

/// The expectation of [`is_name`], for people.
pub const NAME: &str = "expected 1 to 255 bytes of text";

/// Returns whether a queue or an exchange can have this name.
pub fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
}
