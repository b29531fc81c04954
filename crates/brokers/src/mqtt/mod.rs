//! MQTT 3.1.1 and 5. `rumqttc` encodes and decodes packets. The session state is here, so that no
//! message is lost with a connection, and TLS is the server's own.

mod codec;
mod config;
mod frame;
mod session;
mod task;
mod v4;
mod v5;

pub use config::{MqttServer, MqttVersion};
pub use frame::Outgoing;
pub use rumqttc::QoS;

use crate::{BrokerTls, Connection, TlsError};

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The topic, which may contain wildcards.
    pub filter: String,
    /// The quality of service of its messages.
    pub qos: QoS,
}

/// The messages about our own presence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence {
    /// The first message of each connection.
    pub on_connect: Option<Outgoing>,
    /// The last message before the connection is closed.
    pub on_disconnect: Option<Outgoing>,
    /// The message that the broker publishes when the connection is lost.
    pub will: Option<Outgoing>,
}

/// Connects to `server`, on the running tokio runtime.
pub fn connect(
    server: &MqttServer,
    tls: &BrokerTls,
    topics: Vec<Topic>,
    presence: Presence,
) -> Result<Connection<Outgoing>, TlsError> {
    let address = server.address();
    let tls = BrokerTls {
        tls_enable: tls.tls_enable || address.is_secure,
        ..tls.clone()
    };
    let plan = task::Plan {
        server: server.clone(),
        address,
        tls: tls.client()?,
        topics,
        presence,
    };
    Ok(Connection::start(|ends| task::run(plan, ends)))
}

/// Returns the QoS level `number`, or the highest level if there is no such level.
pub fn qos(number: u8) -> QoS {
    rumqttc::qos(number).unwrap_or(QoS::ExactlyOnce)
}

/// The expectation of [`is_topic`], for people.
pub const TOPIC: &str = "expected a topic without the wildcards + and #";

/// Returns whether messages can be published there.
pub fn is_topic(topic: &str) -> bool {
    !topic.is_empty()
        && topic.len() <= usize::from(u16::MAX)
        && rumqttc::valid_topic(topic)
        && !topic.contains('\0')
}
