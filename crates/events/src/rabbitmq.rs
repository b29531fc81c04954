//! Events to RabbitMQ, with the keys of Janus's handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portunus_brokers::rabbitmq::{
    self, Exchange, ExchangeType, Outgoing, Queue, RabbitServer, Topology,
};
use portunus_brokers::{BrokerTls, TlsError};
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
pub struct RabbitMq {
    config: RabbitRoute,
    grouping: AtomicBool,
    line: Line<Outgoing>,
}

/// The configuration of the handler.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RabbitEvents {
    /// The broker.
    #[serde(flatten)]
    pub server: RabbitServer,
    /// The TLS options.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// The messages and their routing.
    #[serde(flatten)]
    pub route: RabbitRoute,
}

/// The messages and their routing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RabbitRoute {
    /// Whether events that wait together go together, as a JSON array.
    grouping: bool,
    /// The white space in the JSON.
    json: JsonForm,
    /// The exchange to declare. `None` means the broker's own.
    #[serde(with = "portunus_config::optional")]
    exchange: Option<String>,
    /// The kind of routing.
    exchange_type: ExchangeType,
    /// The routing key. Without an exchange, the queue.
    route_key: String,
    /// Whether a queue with the name of the routing key is made.
    declare_outgoing_queue: bool,
}

impl Default for RabbitRoute {
    fn default() -> Self {
        RabbitRoute {
            grouping: true,
            json: JsonForm::default(),
            exchange: None,
            exchange_type: ExchangeType::Fanout,
            route_key: "janus-events".to_owned(),
            declare_outgoing_queue: true,
        }
    }
}

impl Configuration for RabbitEvents {
    fn read(section: &mut Section<'_>) -> Self {
        let server = RabbitServer::read(section);
        let tls = BrokerTls::read(section);
        let route: RabbitRoute = section.keys();
        let exchange = route.exchange.as_deref().is_none_or(rabbitmq::is_name);
        section.require(&["exchange"], exchange, rabbitmq::NAME);
        section.require(
            &["route_key"],
            rabbitmq::is_name(&route.route_key),
            rabbitmq::NAME,
        );
        RabbitEvents { server, tls, route }
    }

    fn probe(&self, probe: &mut Probe) {
        self.server.probe(&self.tls, probe);
    }
}

impl RabbitRoute {
    fn topology(&self) -> Topology {
        let exchange = self.exchange.clone().map(|name| Exchange {
            name,
            kind: self.exchange_type,
        });
        let queue = self.declare_outgoing_queue.then(|| Queue {
            name: self.route_key.clone(),
            ..Queue::default()
        });
        Topology {
            exchange,
            queues: queue.into_iter().collect(),
        }
    }
}

impl ConfiguredEventHandler for RabbitMq {
    const NAME: &'static str = "rabbitmq";
    type Config = RabbitEvents;
    type Error = TlsError;

    async fn from_config(config: RabbitEvents) -> Result<Self, TlsError> {
        let RabbitEvents { server, tls, route } = config;
        let connection = rabbitmq::connect(&server, &tls, route.topology())?;
        Ok(RabbitMq {
            grouping: AtomicBool::new(route.grouping),
            config: route,
            line: Line::new(connection),
        })
    }
}

impl EventHandler for RabbitMq {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: "janus.eventhandler.rabbitmqevh",
            name: "RabbitMQ",
            description: "Publishes events by RabbitMQ.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            let Some(publisher) = self.line.take() else {
                return;
            };
            let mut batches = Batches::new(PAUSE);
            loop {
                let layout = Layout::grouping(self.grouping.load(Ordering::Relaxed));
                let Some(batch) = batches.next(&events, layout, self.config.json).await else {
                    break;
                };
                let outgoing = Outgoing {
                    exchange: self.config.exchange.clone().unwrap_or_default(),
                    routing_key: self.config.route_key.clone(),
                    payload: batch.body,
                    correlation: None,
                };
                publisher.publish(outgoing).await;
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
