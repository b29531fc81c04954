//! A server whose transports and event handlers are configured as in its file.

use std::sync::Arc;
use std::time::Duration;

use portunus_admin::{AdminOptions, Administration};
use portunus_api::{ApiConfig, MqttConfig, NatsConfig, RabbitConfig, Transports};
use portunus_core::ServerFacts;
use portunus_core::configuration::{self, Configuration, Section};
use portunus_core::events::{
    EventAddress, EventBus, EventHandlerConfig, EventHandlerRegistration, EventKind,
};
use portunus_echotest::EchoTest;
use portunus_events::{Mqtt, Nats, RabbitMq};
use portunus_tests::Server;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// The secret of the Admin API.
pub const SECRET: &str = "s3";

const HANDLERS: [EventHandlerRegistration; 3] = [
    EventHandlerRegistration::of::<Mqtt>(),
    EventHandlerRegistration::of::<RabbitMq>(),
    EventHandlerRegistration::of::<Nats>(),
];

/// The server.
#[derive(Debug)]
pub struct Site {
    server: Server,
    transports: Transports,
}

impl Site {
    /// Starts it with these sections of its configuration.
    pub async fn start(config: &str) -> Self {
        let facts = ServerFacts::default();
        let (api, handlers) = configuration::read(config, sections).unwrap();
        for handler in handlers {
            if handler.is_enabled() {
                handler.start(&facts.events).await.unwrap();
            }
        }
        let server = Server::with_facts(1, facts, Arc::new(EchoTest));
        let mut options = AdminOptions::default();
        options.config.secret = Some(SECRET.into());
        let administration = Administration::new(server.gateway.clone(), options);
        let transports = Transports::start(api, administration, Vec::new());
        let transports = transports.await.unwrap();
        Site { server, transports }
    }

    pub fn bus(&self) -> &EventBus {
        self.server.gateway.events()
    }

    pub fn transports(&self) -> &Transports {
        &self.transports
    }

    /// Publishes events of the kind `core` with these numbers.
    pub fn publish(&self, numbers: std::ops::Range<u64>) {
        for n in numbers {
            let body = || json!({ "n": n });
            let bus = self.bus();
            bus.publish(EventKind::Core, Some(1), EventAddress::default, body);
        }
    }

    /// Returns the handler's counter.
    pub fn counted(&self, name: &str) -> u64 {
        let counters = self.bus().counters();
        let handler = counters.handlers.first().expect("a handler");
        match name {
            "dropped" => handler.dropped,
            name => {
                let found = handler.own.iter().find(|counter| counter.name == name);
                found.expect("a counter").value
            }
        }
    }

    /// Waits until the handler's counter has this value.
    pub async fn until_counted(&self, name: &str, value: u64) {
        let waiting = async {
            while self.counted(name) < value {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = timeout(Duration::from_secs(20), waiting).await;
        waited.unwrap_or_else(|_| panic!("{name} is {} of {value}", self.counted(name)));
    }

    /// Waits until the API's connection to a broker has published and lost this number of messages.
    pub async fn until_api_counted(&self, published: u64, lost: u64) {
        let counted = || {
            let brokers = self.transports.counters().brokers();
            let (_, counters) = brokers.first().expect("a broker");
            (counters.published(), counters.lost())
        };
        let waiting = async {
            while counted() < (published, lost) || counted().1 < lost {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = timeout(Duration::from_secs(20), waiting).await;
        waited.unwrap_or_else(|_| panic!("{:?} of {:?}", counted(), (published, lost)));
    }

    /// Returns the content of `/metrics`.
    pub async fn metrics(&self) -> String {
        let at = self.transports.metrics().first().expect("an address");
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Ends it like the program does.
    pub async fn end(self) {
        let bus = self.bus().clone();
        self.server.gateway.shutdown().await;
        self.transports.shutdown().await;
        bus.end().await;
    }
}

fn sections(file: &mut Section<'_>) -> (ApiConfig, Vec<EventHandlerConfig>) {
    let mut api = ApiConfig {
        mqtt: file.section("mqtt", MqttConfig::read),
        rabbitmq: file.section("rabbitmq", RabbitConfig::read),
        nats: file.section("nats", NatsConfig::read),
        ..ApiConfig::default()
    };
    api.http.enabled = false;
    api.http.metrics_bind = Some(([127, 0, 0, 1], 0).into());
    api.admin.enabled = false;
    api.websocket.enabled = false;
    let handlers = file.section("events", |section| {
        let read = |handler: &EventHandlerRegistration| handler.read(section);
        HANDLERS.iter().map(read).collect()
    });
    (api, handlers)
}
