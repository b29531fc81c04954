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
    /// The exchange; empty: the broker's own, by which a message goes to the queue that its routing key names.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// What.
    pub payload: Bytes,
    /// Which message it answers.
    pub correlation: Option<Bytes>,
}

/// Connects to `server` and makes what `topology` says, on the running tokio runtime.
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

/// What [`is_name`] wants, for people.
pub const NAME: &str = "expected 1 to 255 bytes of text";

/// Whether a queue or an exchange can be called so.
pub fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
}
