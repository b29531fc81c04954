//! Event handlers: the outputs of the server's events.
#![forbid(unsafe_code)]

mod backoff;
mod batch;
mod file;
mod gelf;
mod line;
mod mqtt;
mod nanomsg;
mod nats;
mod rabbitmq;
mod stream;
mod tally;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod tweak;
mod webhook;
mod websocket;

pub use backoff::Backoff;
pub use file::{File, FileConfig, FileError};
pub use gelf::{Gelf, GelfConfig, GelfError};
pub use mqtt::{Mqtt, MqttEvents, MqttTopics};
pub use nanomsg::{Nanomsg, NanomsgConfig, NanomsgError};
pub use nats::{Nats, NatsEvents, NatsSubjects};
pub use rabbitmq::{RabbitEvents, RabbitMq, RabbitRoute};
pub use tls::{TlsError, client as tls_client};
pub use webhook::{Webhook, WebhookConfig, WebhookError, http_client};
pub use websocket::{WebSocket, WebSocketConfig, WebSocketError};
