//! Events to an MQTT broker, with the keys and topics of Janus's handler: each event by itself, with its kind as `eventtype`.

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

/// Who we are by default.
const CLIENT_ID: &str = "portunus-events";

/// The handler.
#[derive(Debug)]
pub struct Mqtt {
    config: MqttTopics,
    line: Line<Outgoing>,
}

/// What it can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MqttEvents {
    /// Where the broker is.
    #[serde(flatten)]
    pub server: MqttServer,
    /// TLS to it.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// What is told, and where.
    #[serde(flatten)]
    pub topics: MqttTopics,
}

/// What is told, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MqttTopics {
    /// How much white space the JSON has.
    json: JsonForm,
    /// The topic, or where those of the kinds begin.
    topic: String,
    /// Whether each kind of event has a topic of its own below that.
    addevent: bool,
    /// Whether the broker keeps the last event of a topic.
    retain: bool,
    /// How surely events arrive: 0, 1 or 2.
    qos: u8,
    /// What is published to `status` below the topic when we are there; empty: nothing.
    #[serde(with = "portunus_config::optional")]
    connect_status: Option<String>,
    /// The same when we end.
    #[serde(with = "portunus_config::optional")]
    disconnect_status: Option<String>,
    /// Whether the broker publishes that too when we are lost.
    will_enabled: bool,
    /// Whether the broker keeps what it says of us.
    will_retain: bool,
    /// How surely that arrives.
    will_qos: u8,
    /// What is told with each message, as pairs of a name and a value (MQTT 5).
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
