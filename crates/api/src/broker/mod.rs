//! The Janus API and the Admin API over message brokers. All who ask by a broker are one client of the core, as with Janus: what
//! is to be pushed goes to one place for all of them, and each gets the replies to its own requests if it says where to.
//!
//! While the broker is away the client stays, with its sessions: they end only if no request comes for so long that they time
//! out. What is to be sent to it waits, as much as may wait for any client; one that lets more pile up is cut off, and another
//! takes its place.

mod lane;
mod mqtt;
mod nats;
mod rabbitmq;
mod serve;

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
pub(crate) use serve::{Shared, serve};

use crate::pace::Api;

/// A kind of broker.
pub(crate) trait Broker: Send + Sync + 'static {
    /// The transport's package name.
    const PACKAGE: &'static str;

    /// Its name in the configuration and in logs.
    const NAME: &'static str;

    /// What is published by it.
    type Outgoing: Send + 'static;

    /// What is the same for all kinds.
    fn common(&self) -> &BrokerApi;

    /// Connects. The first subscription is for requests of the Janus API, if that is on; the last one for those of the
    /// Admin API, if that is on.
    fn connect(&self) -> Result<Connection<Self::Outgoing>, TlsError>;

    /// A message of `api`; `reply`: it answers a request, whose sender wants this of it.
    fn outgoing(&self, api: Api, reply: Option<Reply>, payload: Bytes) -> Self::Outgoing;
}

/// What the transports by brokers have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerApi {
    /// Whether the Janus API is served by it.
    pub enabled: bool,
    /// Whether the Admin API is.
    pub admin_enabled: bool,
    /// Whether connections that come and go are told to whoever watches, by events.
    pub events: bool,
    /// Whether who asks by it has all rights, whatever it shows.
    pub trusted: bool,
    /// Bytes of the largest request; a larger one is answered with error 454.
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
    /// Takes its keys of a section.
    fn read(section: &mut Section<'_>) -> Self {
        let api: Self = section.keys();
        section.range("max_message", api.max_message, 1_024..=8 << 20);
        api
    }

    /// Whether the broker is connected to at all.
    pub(crate) fn is_on(&self) -> bool {
        self.enabled || self.admin_enabled
    }

    /// The API that a subscription is for.
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
