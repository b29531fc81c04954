//! The Janus API and the Admin API over message brokers. As in Janus, all requesters at a broker
//! are one client of the core: events go to one place for all of them, and each requester gets its
//! replies where it wants them.
//!
//! While the broker is unreachable the client and its sessions remain, until the sessions time out.
//! Messages to it wait, as many as for any client. A client with a larger backlog is disconnected
//! and replaced.

mod lane;
mod mqtt;
mod nats;
mod rabbitmq;
mod transport;

pub use mqtt::{MqttApi, MqttConfig};
pub use nats::{NatsApi, NatsConfig};
pub use rabbitmq::{RabbitApi, RabbitConfig};

use bytes::Bytes;
use portunus_brokers::{Connection, Reply, TlsError};
use portunus_config::Section;
use serde::{Deserialize, Serialize};

pub(crate) use mqtt::{MQTT, Mqtt};
pub(crate) use nats::{NATS, Nats};
pub(crate) use rabbitmq::{RABBITMQ, Rabbit};
pub(crate) use transport::{Shared, serve};

use crate::pace::Api;

/// A kind of broker.
pub(crate) trait Broker: Send + Sync + 'static {
    /// The transport's package name.
    const PACKAGE: &'static str;

    /// Its name in the configuration and in logs.
    const NAME: &'static str;

    /// A message for the broker.
    type Outgoing: Send + 'static;

    /// The common configuration.
    fn common(&self) -> &BrokerApi;

    /// Connects. The first subscription is for requests of the Janus API, if enabled; the last one
    /// for those of the Admin API, if enabled.
    fn connect(&self) -> Result<Connection<Self::Outgoing>, TlsError>;

    /// Makes the message for a reply or event of `api`. `reply` are the reply options of the
    /// answered request.
    fn outgoing(&self, api: Api, reply: Option<Reply>, payload: Bytes) -> Self::Outgoing;
}

/// The common configuration of transports by brokers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerApi {
    /// Whether the Janus API is served by it.
    pub enabled: bool,
    /// Whether the Admin API is served by it.
    pub admin_enabled: bool,
    /// Whether connections and disconnections are published as events.
    pub events: bool,
    /// Whether all its requesters have all rights, without credentials.
    pub trusted: bool,
    /// The largest request in bytes. Larger ones get error 454.
    pub max_message: usize,
}

impl Default for BrokerApi {
    fn default() -> Self {
        BrokerApi {
            enabled: false,
            admin_enabled: false,
            events: true,
            trusted: false,
            max_message: 1 << 20,
        }
    }
}

impl BrokerApi {
    /// Reads its keys of a section.
    fn read(section: &mut Section<'_>) -> Self {
        let api: Self = section.keys();
        section.range("max_message", api.max_message, 1_024..=8 << 20);
        api
    }

    /// Whether the broker is used at all.
    pub(crate) fn is_on(&self) -> bool {
        self.enabled || self.admin_enabled
    }

    /// Returns the API of a subscription.
    fn api(&self, subscription: usize) -> Api {
        match (self.enabled, subscription) {
            (true, 0) => Api::Janus,
            _ => Api::Admin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_belong_to_the_apis_that_are_on() {
        let api = |enabled, admin_enabled| BrokerApi {
            enabled,
            admin_enabled,
            ..BrokerApi::default()
        };
        assert_eq!(api(true, true).api(0), Api::Janus);
        assert_eq!(api(true, true).api(1), Api::Admin);
        assert_eq!(api(false, true).api(0), Api::Admin);
        assert!(!api(false, false).is_on());
    }
}
