//! Events to an MQTT broker, with the keys and topics of Janus's handler. Each event is a message,
//! with its kind as `eventtype`.

use std::sync::Arc;

use portunus_brokers::mqtt::{self, MqttServer, Outgoing, Presence, qos};
use portunus_brokers::{BrokerTls, TlsError};
use portunus_config::{Configuration, Probe, Section};
use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, ServerEvent, Subscription,
    TweakError,
};
use portunus_core::{Fields, JsonForm, Object, PluginCounter};
use serde::{Deserialize, Serialize};

use crate::line::Line;

/// Our default name.
const CLIENT_ID: &str = "portunus-events";

/// The handler.
#[derive(Debug)]
pub struct Mqtt {
    config: MqttTopics,
    line: Line<Outgoing>,
}

/// The configuration of the handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MqttEvents {
    /// The broker.
    #[serde(flatten)]
    pub server: MqttServer,
    /// The TLS options.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// The messages and their topics.
    #[serde(flatten)]
    pub topics: MqttTopics,
}

/// The messages and their topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MqttTopics {
    /// The white space in the JSON.
    json: JsonForm,
    /// The topic, or the prefix of the topics of the kinds.
    topic: String,
    /// Whether each kind of event has a topic of its own below that.
    addevent: bool,
    /// Whether the broker keeps the last event of a topic.
    retain: bool,
    /// The quality of service of events: 0, 1 or 2.
    qos: u8,
    /// The message to `status` below the topic when we connect. Empty means none.
    #[serde(with = "portunus_config::optional")]
    connect_status: Option<String>,
    /// The message there when we disconnect. Empty means none.
    #[serde(with = "portunus_config::optional")]
    disconnect_status: Option<String>,
    /// Whether the broker publishes that too when we are lost.
    will_enabled: bool,
    /// Whether the broker keeps what it says of us.
    will_retain: bool,
    /// The quality of service of these messages.
    will_qos: u8,
    /// The properties of each message, as pairs of name and value (MQTT 5).
    add_user_properties: Vec<(String, String)>,
}

impl Default for MqttTopics {
    fn default() -> Self {
        MqttTopics {
            json: JsonForm::default(),
            topic: "/janus/events".to_owned(),
            addevent: true,
            retain: false,
            qos: 1,
            connect_status: Some(
                r#"{"event":"connected","eventhandler":"janus.eventhandler.mqttevh"}"#.to_owned(),
            ),
            disconnect_status: Some(
                r#"{"event":"disconnected","eventhandler":"janus.eventhandler.mqttevh"}"#
                    .to_owned(),
            ),
            will_enabled: false,
            will_retain: true,
            will_qos: 0,
            add_user_properties: Vec::new(),
        }
    }
}

impl Default for MqttEvents {
    fn default() -> Self {
        MqttEvents {
            server: MqttServer::named(CLIENT_ID),
            tls: BrokerTls::default(),
            topics: MqttTopics::default(),
        }
    }
}

impl Configuration for MqttEvents {
    fn read(section: &mut Section<'_>) -> Self {
        let server = MqttServer::read(section, CLIENT_ID);
        let tls = BrokerTls::read(section);
        let topics: MqttTopics = section.keys();
        section.range("qos", topics.qos, 0..=2);
        section.range("will_qos", topics.will_qos, 0..=2);
        section.require(&["topic"], mqtt::is_topic(&topics.topic), mqtt::TOPIC);
        MqttEvents {
            server,
            tls,
            topics,
        }
    }

    fn probe(&self, probe: &mut Probe) {
        self.server.probe(&self.tls, probe);
    }
}

impl ConfiguredEventHandler for Mqtt {
    const NAME: &'static str = "mqtt";
    type Config = MqttEvents;
    type Error = TlsError;

    async fn from_config(config: MqttEvents) -> Result<Self, TlsError> {
        let MqttEvents {
            server,
            tls,
            topics,
        } = config;
        let connection = mqtt::connect(&server, &tls, Vec::new(), topics.presence())?;
        Ok(Mqtt {
            config: topics,
            line: Line::new(connection),
        })
    }
}

impl MqttTopics {
    fn presence(&self) -> Presence {
        let status = |text: &Option<String>| {
            Some(Outgoing {
                topic: format!("{}/status", self.topic),
                payload: text.clone()?.into(),
                qos: qos(self.will_qos),
                retain: self.will_retain,
                correlation: None,
                user_properties: self.add_user_properties.clone(),
            })
        };
        Presence {
            on_connect: status(&self.connect_status),
            on_disconnect: status(&self.disconnect_status),
            will: status(&self.disconnect_status).filter(|_| self.will_enabled),
        }
    }

    fn message(&self, events: &Subscription, event: &ServerEvent) -> Outgoing {
        let label = event.kind.label();
        let mut json = events.to_json(event);
        if let Some(members) = json.as_object_mut() {
            members.insert("eventtype".to_owned(), label.into());
        }
        let mut payload = Vec::new();
        self.json.write(&mut payload, &json);
        Outgoing {
            topic: match self.addevent {
                true => format!("{}/{label}", self.topic),
                false => self.topic.clone(),
            },
            payload: payload.into(),
            qos: qos(self.qos),
            retain: self.retain,
            correlation: None,
            user_properties: self.add_user_properties.clone(),
        }
    }
}

impl EventHandler for Mqtt {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: "janus.eventhandler.mqttevh",
            name: "MQTT",
            description: "Publishes events by an MQTT broker.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            let Some(publisher) = self.line.take() else {
                return;
            };
            while let Some(event) = events.recv().await {
                publisher
                    .publish(self.config.message(&events, &event))
                    .await;
            }
            publisher.finish().await;
        })
    }

    fn query(&self, name: &str, _: Fields<'_>) -> Result<Object, TweakError> {
        self.line.query(name)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.line.counters()
    }
}
