//! What has to be in the broker before messages can go to and fro.

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

/// What is made when it is not there, and what is listened to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// The exchange by which we publish; none: the broker's own.
    pub exchange: Option<Exchange>,
    /// The queues.
    pub queues: Vec<Queue>,
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Its name.
    pub name: String,
    /// How it finds the queues of a message.
    pub kind: ExchangeType,
}

/// How an exchange finds the queues of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeType {
    /// Those bound with its routing key.
    Direct,
    /// Those bound with a pattern of its routing key.
    Topic,
    /// Those bound with its headers.
    Headers,
    /// All that are bound.
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
    /// It ends when nobody listens to it any more.
    pub auto_delete: bool,
    /// The routing key that binds it to the exchange.
    pub binding: Option<String>,
    /// Whether what comes to it is read. The subscriptions of [`crate::Incoming`] are the queues that are.
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
    /// Makes all of it; gives what comes to the queues that are read, in their order.
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
