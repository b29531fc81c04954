//! The transport by MQTT, with the keys and topics of Janus.

use bytes::Bytes;
use portunus_brokers::mqtt::{self, MqttServer, MqttVersion, Outgoing, Presence, Topic, qos};
use portunus_brokers::{BrokerTls, Connection, Reply, TlsError};
use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

use super::{Broker, BrokerApi};
use crate::pace::Api;

/// Its package name, as in Janus.
pub(crate) const MQTT: &str = "janus.transport.mqtt";

/// The default client id.
const CLIENT_ID: &str = "portunus";

/// The transport by MQTT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MqttConfig {
    /// The common configuration.
    #[serde(flatten)]
    pub common: BrokerApi,
    /// The broker's address.
    #[serde(flatten)]
    pub server: MqttServer,
    /// The configuration of TLS.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// The topics.
    #[serde(flatten)]
    pub api: MqttApi,
}

/// The topics of requests, replies and events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MqttApi {
    /// The topic of requests.
    pub subscribe_topic: String,
    /// The QoS of requests: 0, 1 or 2.
    pub subscribe_qos: u8,
    /// The topic of replies and events.
    pub publish_topic: String,
    /// The QoS of replies and events.
    pub publish_qos: u8,
    /// The topic of requests of the Admin API.
    pub admin_subscribe_topic: String,
    /// The QoS of requests of the Admin API.
    pub admin_subscribe_qos: u8,
    /// The topic of replies and events of the Admin API.
    pub admin_publish_topic: String,
    /// The QoS of replies and events of the Admin API.
    pub admin_publish_qos: u8,
    /// Whether the presence of the server is published.
    pub status_enabled: bool,
    /// The message of its presence. Empty means none.
    #[serde(with = "portunus_config::optional")]
    pub connect_message: Option<String>,
    /// The message of its absence, published by the broker if necessary. Empty means none.
    #[serde(with = "portunus_config::optional")]
    pub disconnect_message: Option<String>,
    /// The topic of these messages.
    pub status_topic: String,
    /// Their QoS.
    pub status_qos: u8,
    /// Whether the broker retains them.
    pub status_retain: bool,
}

impl Default for MqttApi {
    fn default() -> Self {
        MqttApi {
            subscribe_topic: "to-janus".to_owned(),
            subscribe_qos: 1,
            publish_topic: "from-janus".to_owned(),
            publish_qos: 1,
            admin_subscribe_topic: "to-janus-admin".to_owned(),
            admin_subscribe_qos: 1,
            admin_publish_topic: "from-janus-admin".to_owned(),
            admin_publish_qos: 1,
            status_enabled: false,
            connect_message: None,
            disconnect_message: None,
            status_topic: "status".to_owned(),
            status_qos: 1,
            status_retain: false,
        }
    }
}

impl Default for MqttConfig {
    fn default() -> Self {
        MqttConfig {
            common: BrokerApi::default(),
            server: MqttServer::named(CLIENT_ID),
            tls: BrokerTls::default(),
            api: MqttApi::default(),
        }
    }
}

impl Configuration for MqttConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let common = BrokerApi::read(section);
        let server = MqttServer::read(section, CLIENT_ID);
        let tls = BrokerTls::read(section);
        let api: MqttApi = section.keys();
        for (key, qos) in [
            ("subscribe_qos", api.subscribe_qos),
            ("publish_qos", api.publish_qos),
            ("admin_subscribe_qos", api.admin_subscribe_qos),
            ("admin_publish_qos", api.admin_publish_qos),
            ("status_qos", api.status_qos),
        ] {
            section.range(key, qos, 0..=2);
        }
        for (key, topic) in [
            ("subscribe_topic", &api.subscribe_topic),
            ("publish_topic", &api.publish_topic),
            ("admin_subscribe_topic", &api.admin_subscribe_topic),
            ("admin_publish_topic", &api.admin_publish_topic),
            ("status_topic", &api.status_topic),
        ] {
            section.require(&[key], mqtt::is_topic(topic), mqtt::TOPIC);
        }
        section.require(
            &["admin_subscribe_topic", "subscribe_topic"],
            api.subscribe_topic != api.admin_subscribe_topic,
            "expected a topic of its own, other than subscribe_topic",
        );
        MqttConfig {
            common,
            server,
            tls,
            api,
        }
    }

    fn probe(&self, probe: &mut Probe) {
        if self.common.is_on() {
            self.server.probe(&self.tls, probe);
        }
    }
}

/// The transport.
#[derive(Debug)]
pub(crate) struct Mqtt(pub(crate) MqttConfig);

impl Broker for Mqtt {
    const PACKAGE: &'static str = MQTT;
    const NAME: &'static str = "mqtt";
    type Outgoing = Outgoing;

    fn common(&self) -> &BrokerApi {
        &self.0.common
    }

    fn connect(&self) -> Result<Connection<Outgoing>, TlsError> {
        let MqttConfig {
            common,
            server,
            tls,
            api,
        } = &self.0;
        let topic = |filter: &String, number| Topic {
            filter: filter.clone(),
            qos: qos(number),
        };
        let janus = topic(&api.subscribe_topic, api.subscribe_qos);
        let admin = topic(&api.admin_subscribe_topic, api.admin_subscribe_qos);
        let topics = [(common.enabled, janus), (common.admin_enabled, admin)];
        let topics = topics
            .into_iter()
            .filter_map(|(on, topic)| on.then_some(topic));
        mqtt::connect(server, tls, topics.collect(), api.presence())
    }

    fn outgoing(&self, api: Api, reply: Option<Reply>, payload: Bytes) -> Outgoing {
        let config = &self.0.api;
        let (topic, number) = match api {
            Api::Janus => (&config.publish_topic, config.publish_qos),
            Api::Admin => (&config.admin_publish_topic, config.admin_publish_qos),
        };
        let Reply { to, correlation } = reply.unwrap_or_default();
        // The requester chooses the reply topic, but must not break the connection.
        let to =
            to.filter(|to| self.0.server.mqtt_version == MqttVersion::V5 && mqtt::is_topic(to));
        Outgoing {
            topic: to.unwrap_or_else(|| topic.clone()),
            payload,
            qos: qos(number),
            retain: false,
            correlation,
            user_properties: Vec::new(),
        }
    }
}

impl MqttApi {
    fn presence(&self) -> Presence {
        let message = |text: &Option<String>| {
            let text = text.clone().filter(|_| self.status_enabled)?;
            Some(Outgoing {
                topic: self.status_topic.clone(),
                payload: text.into(),
                qos: qos(self.status_qos),
                retain: self.status_retain,
                correlation: None,
                user_properties: Vec::new(),
            })
        };
        Presence {
            on_connect: message(&self.connect_message),
            on_disconnect: message(&self.disconnect_message),
            will: message(&self.disconnect_message),
        }
    }
}
