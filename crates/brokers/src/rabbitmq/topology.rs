//! The exchange and the queues that a connection needs.

use lapin::ExchangeKind;
use lapin::options::{
    BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};
use serde::{Deserialize, Serialize};

/// Messages that the broker sends ahead.
const PREFETCH: u16 = 64;

/// The exchange and the queues to declare, and those to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// The exchange for publishing. `None` means the broker's own.
    pub exchange: Option<Exchange>,
    /// The queues.
    pub queues: Vec<Queue>,
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Its name.
    pub name: String,
    /// The kind of routing.
    pub kind: ExchangeType,
}

/// The routing of messages to queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeType {
    /// To queues bound with the same routing key.
    Direct,
    /// To queues bound with a matching pattern.
    Topic,
    /// To queues bound with matching headers.
    Headers,
    /// To all bound queues.
    Fanout,
}

/// A queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// It outlives the broker's restart.
    pub durable: bool,
    /// It is ours alone, and ends with our connection.
    pub exclusive: bool,
    /// Whether it ends with its last reader.
    pub auto_delete: bool,
    /// The routing key that binds it to the exchange.
    pub binding: Option<String>,
    /// Whether it is read. The subscriptions of [`crate::Incoming`] are the read queues.
    pub is_read: bool,
}

impl ExchangeType {
    fn kind(self) -> ExchangeKind {
        match self {
            ExchangeType::Direct => ExchangeKind::Direct,
            ExchangeType::Topic => ExchangeKind::Topic,
            ExchangeType::Headers => ExchangeKind::Headers,
            ExchangeType::Fanout => ExchangeKind::Fanout,
        }
    }
}

impl Topology {
    /// Declares all. Returns the deliveries of the read queues, in their order.
    pub(super) async fn make(&self, channel: &Channel) -> lapin::Result<Vec<Consumer>> {
        channel
            .basic_qos(PREFETCH, BasicQosOptions::default())
            .await?;
        if let Some(exchange) = &self.exchange {
            let (name, kind) = (exchange.name.as_str().into(), exchange.kind.kind());
            let options = ExchangeDeclareOptions::default();
            channel
                .exchange_declare(name, kind, options, FieldTable::default())
                .await?;
        }
        let mut read = Vec::new();
        for queue in &self.queues {
            let options = QueueDeclareOptions {
                durable: queue.durable,
                exclusive: queue.exclusive,
                auto_delete: queue.auto_delete,
                ..QueueDeclareOptions::default()
            };
            let name = queue.name.as_str();
            channel
                .queue_declare(name.into(), options, FieldTable::default())
                .await?;
            if let (Some(exchange), Some(key)) = (&self.exchange, &queue.binding) {
                let (exchange, key) = (exchange.name.as_str().into(), key.as_str().into());
                let options = QueueBindOptions::default();
                channel
                    .queue_bind(name.into(), exchange, key, options, FieldTable::default())
                    .await?;
            }
            if queue.is_read {
                let options = BasicConsumeOptions::default();
                let consumer = channel
                    .basic_consume(name.into(), "".into(), options, FieldTable::default())
                    .await?;
                read.push(consumer);
            }
        }
        Ok(read)
    }
}
