//! The transport by NATS. Janus has none; its keys are like those for RabbitMQ.

use bytes::Bytes;
use portunus_brokers::nats::{self, NatsServer, Outgoing};
use portunus_brokers::{BrokerTls, Connection, Reply, TlsError};
use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

use super::{Broker, BrokerApi};
use crate::pace::Api;

/// Its package name.
pub(crate) const NATS: &str = "janus.transport.nats";

/// The transport by NATS.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NatsConfig {
    /// The common configuration.
    #[serde(flatten)]
    pub common: BrokerApi,
    /// The broker's address.
    #[serde(flatten)]
    pub server: NatsServer,
    /// The configuration of TLS.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// The subjects.
    #[serde(flatten)]
    pub api: NatsApi,
}

/// The subjects of requests, replies and events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NatsApi {
    /// The subject of requests.
    pub to_janus: String,
    /// The subject of events, and of replies to requests without a reply subject.
    pub from_janus: String,
    /// The subject of requests of the Admin API.
    pub to_janus_admin: String,
    /// The subject of events and replies of the Admin API.
    pub from_janus_admin: String,
}

impl Default for NatsApi {
    fn default() -> Self {
        NatsApi {
            to_janus: "to-janus".to_owned(),
            from_janus: "from-janus".to_owned(),
            to_janus_admin: "to-janus-admin".to_owned(),
            from_janus_admin: "from-janus-admin".to_owned(),
        }
    }
}

impl Configuration for NatsConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let common = BrokerApi::read(section);
        let server = NatsServer::read(section);
        let tls = BrokerTls::read(section);
        let api: NatsApi = section.keys();
        for (key, subject) in [
            ("to_janus", &api.to_janus),
            ("from_janus", &api.from_janus),
            ("to_janus_admin", &api.to_janus_admin),
            ("from_janus_admin", &api.from_janus_admin),
        ] {
            section.require(&[key], nats::is_subject(subject), nats::SUBJECT);
        }
        section.require(
            &["to_janus_admin", "to_janus"],
            api.to_janus != api.to_janus_admin,
            "expected a subject of its own, other than to_janus",
        );
        NatsConfig {
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
pub(crate) struct Nats(pub(crate) NatsConfig);

impl Broker for Nats {
    const PACKAGE: &'static str = NATS;
    const NAME: &'static str = "nats";
    type Outgoing = Outgoing;

    fn common(&self) -> &BrokerApi {
        &self.0.common
    }

    fn connect(&self) -> Result<Connection<Outgoing>, TlsError> {
        let (common, api) = (&self.0.common, &self.0.api);
        let subjects = [
            (common.enabled, &api.to_janus),
            (common.admin_enabled, &api.to_janus_admin),
        ];
        let subjects = subjects.into_iter().filter(|(on, _)| *on);
        let subjects = subjects.map(|(_, subject)| subject.clone());
        nats::connect(&self.0.server, &self.0.tls, subjects.collect())
    }

    fn outgoing(&self, api: Api, reply: Option<Reply>, payload: Bytes) -> Outgoing {
        let subject = match api {
            Api::Janus => &self.0.api.from_janus,
            Api::Admin => &self.0.api.from_janus_admin,
        };
        let to = reply.and_then(|reply| reply.to);
        let to = to.filter(|to| nats::is_subject(to));
        Outgoing {
            subject: to.unwrap_or_else(|| subject.clone()),
            payload,
        }
    }
}
