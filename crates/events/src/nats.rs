//! Events to NATS. Janus has no such handler; its keys are those of the one by MQTT.

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

/// How long events of quick succession are waited for, so that they go together.
const PAUSE: Duration = Duration::from_millis(20);

/// The handler.
#[derive(Debug)]
pub struct Nats {
    config: NatsSubjects,
    grouping: AtomicBool,
    line: Line<Outgoing>,
}

/// What it can be told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NatsEvents {
    /// Where the broker is.
    #[serde(flatten)]
    pub server: NatsServer,
    /// TLS to it.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// What is told, and where.
    #[serde(flatten)]
    pub subjects: NatsSubjects,
}

/// What is told, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NatsSubjects {
    /// How much white space the JSON has.
    json: JsonForm,
    /// The subject, or where those of the kinds begin.
    subject: String,
    /// Whether each kind of event has a subject of its own below that. Each event then goes by itself.
    addevent: bool,
    /// Without that: whether events that wait together go together, as a JSON array.
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
    /// Each event by itself, on the subject of its kind.
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

    /// All on one subject.
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
