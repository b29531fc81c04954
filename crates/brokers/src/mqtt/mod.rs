//! MQTT 3.1.1 and 5. Packets are read and written by `rumqttc`; what is under way between them is kept here, so that nothing
//! that waits is lost with a connection, and TLS is the server's own.

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

/// What is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The topic; it may have wildcards.
    pub filter: String,
    /// How surely messages come.
    pub qos: QoS,
}

/// What the broker tells others of this client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence {
    /// What is published first by each connection.
    pub on_connect: Option<Outgoing>,
    /// What is published last, before the connection is ended.
    pub on_disconnect: Option<Outgoing>,
    /// What the broker publishes when the connection is lost.
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

/// The quality of service with this number; the highest for a number that there is not.
pub fn qos(number: u8) -> QoS {
    rumqttc::qos(number).unwrap_or(QoS::ExactlyOnce)
}

/// What [`is_topic`] wants, for people.
pub const TOPIC: &str = "expected a topic without the wildcards + and #";

/// Whether messages can be published there.
pub fn is_topic(topic: &str) -> bool {
    !topic.is_empty()
        && topic.len() <= usize::from(u16::MAX)
        && rumqttc::valid_topic(topic)
        && !topic.contains('\0')
}
