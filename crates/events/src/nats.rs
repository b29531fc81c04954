//! Events to NATS. Janus has no such handler. Its keys are those of the MQTT handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portunus_brokers::nats::{self, NatsServer, Outgoing};
use portunus_brokers::{BrokerTls, Publisher, TlsError};
use portunus_config::{Configuration, Probe, Section};
use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, Subscription, TweakError,
};
use portunus_core::{Fields, JsonForm, Object, PluginCounter};
use serde::{Deserialize, Serialize};

use crate::batch::{Batches, Layout};
use crate::line::Line;

/// The time in which events in quick succession are collected.
const PAUSE: Duration = Duration::from_millis(20);

/// The handler.
#[derive(Debug)]
pub struct Nats {
    config: NatsSubjects,
    grouping: AtomicBool,
    line: Line<Outgoing>,
}

/// The configuration of the handler.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NatsEvents {
    /// The server.
    #[serde(flatten)]
    pub server: NatsServer,
    /// The TLS options.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// The messages and their subjects.
    #[serde(flatten)]
    pub subjects: NatsSubjects,
}

/// The messages and their subjects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NatsSubjects {
    /// The white space in the JSON.
    json: JsonForm,
    /// The subject, or the prefix of the subjects of the kinds.
    subject: String,
    /// Whether each kind of event has its own subject below that. Each event is then a message.
    addevent: bool,
    /// Otherwise, whether waiting events are sent together, as a JSON array.
    grouping: bool,
}

impl Default for NatsSubjects {
    fn default() -> Self {
        NatsSubjects {
            json: JsonForm::default(),
            subject: "janus.events".to_owned(),
            addevent: true,
            grouping: true,
        }
    }
}

impl Configuration for NatsEvents {
    fn read(section: &mut Section<'_>) -> Self {
        let server = NatsServer::read(section);
        let tls = BrokerTls::read(section);
        let subjects: NatsSubjects = section.keys();
        let right = nats::is_subject(&subjects.subject);
        section.require(&["subject"], right, nats::SUBJECT);
        NatsEvents {
            server,
            tls,
            subjects,
        }
    }

    fn probe(&self, probe: &mut Probe) {
        self.server.probe(&self.tls, probe);
    }
}

impl ConfiguredEventHandler for Nats {
    const NAME: &'static str = "nats";
    type Config = NatsEvents;
    type Error = TlsError;

    async fn from_config(config: NatsEvents) -> Result<Self, TlsError> {
        let NatsEvents {
            server,
            tls,
            subjects,
        } = config;
        let connection = nats::connect(&server, &tls, Vec::new())?;
        Ok(Nats {
            grouping: AtomicBool::new(subjects.grouping),
            config: subjects,
            line: Line::new(connection),
        })
    }
}

impl Nats {
    /// Sends each event to the subject of its kind.
    async fn by_kind(&self, events: &Subscription, publisher: &Publisher<Outgoing>) {
        while let Some(event) = events.recv().await {
            let mut payload = Vec::new();
            event.write(self.config.json, &mut payload);
            let outgoing = Outgoing {
                subject: format!("{}.{}", self.config.subject, event.kind.label()),
                payload: payload.into(),
            };
            publisher.publish(outgoing).await;
        }
    }

    /// Sends all events to one subject.
    async fn together(&self, events: &Subscription, publisher: &Publisher<Outgoing>) {
        let mut batches = Batches::new(PAUSE);
        loop {
            let layout = Layout::grouping(self.grouping.load(Ordering::Relaxed));
            let Some(batch) = batches.next(events, layout, self.config.json).await else {
                return;
            };
            let outgoing = Outgoing {
                subject: self.config.subject.clone(),
                payload: batch.body,
            };
            publisher.publish(outgoing).await;
        }
    }
}

impl EventHandler for Nats {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: "janus.eventhandler.natsevh",
            name: "NATS",
            description: "Publishes events by NATS.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            let Some(publisher) = self.line.take() else {
                return;
            };
            match self.config.addevent {
                true => self.by_kind(&events, &publisher).await,
                false => self.together(&events, &publisher).await,
            }
            publisher.finish().await;
        })
    }

    fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
        if let Some(grouping) = members.boolean("grouping")? {
            self.grouping.store(grouping, Ordering::Relaxed);
        }
        Ok(())
    }

    fn query(&self, name: &str, _: Fields<'_>) -> Result<Object, TweakError> {
        self.line.query(name)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.line.counters()
    }
}
