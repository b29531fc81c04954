//! The configuration of a RabbitMQ server.

use std::time::Duration;

use portunus_config::{Probe, Secret, Section};
use serde::{Deserialize, Serialize};

use crate::{BrokerTls, stream};

/// A RabbitMQ server, and our login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RabbitServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The part of the server that we use.
    pub vhost: String,
    /// The user name.
    pub username: String,
    /// The user's password.
    pub password: Secret,
    /// The silence after which the server counts as gone. Zero means as the server wants.
    #[serde(with = "portunus_config::seconds")]
    pub heartbeat: Duration,
}

impl Default for RabbitServer {
    fn default() -> Self {
        RabbitServer {
            host: "localhost".to_owned(),
            port: 5672,
            vhost: "/".to_owned(),
            username: "guest".to_owned(),
            password: "guest".into(),
            heartbeat: Duration::ZERO,
        }
    }
}

impl RabbitServer {
    /// Takes its keys of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        let server: Self = section.keys();
        section.require(
            &["host"],
            !server.host.is_empty(),
            "expected a name or an address",
        );
        section.range("port", server.port, 1..=u16::MAX);
        section.range("heartbeat", server.heartbeat.as_secs(), 0..=65_535);
        server
    }

    /// Checks the files of `tls`, and declares the broker's address.
    pub fn probe(&self, tls: &BrokerTls, probe: &mut Probe) {
        tls.probe(probe);
        let (host, port, tls) = (self.host.clone(), self.port, tls.clone());
        probe.connects("host", self.address(), async move {
            stream::attempt(&host, port, &tls).await.map(drop)
        });
    }

    /// Returns its address, for people.
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}
