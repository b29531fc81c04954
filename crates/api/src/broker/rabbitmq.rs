//! The transport by RabbitMQ, with the keys and queues of Janus.

use bytes::Bytes;
use portunus_brokers::rabbitmq::{
    self, Exchange, ExchangeType, Outgoing, Queue, RabbitServer, Topology,
};
use portunus_brokers::{BrokerTls, Connection, Reply, TlsError};
use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

use super::{Broker, BrokerApi};
use crate::pace::Api;

/// Its package name, as in Janus.
pub(crate) const RABBITMQ: &str = "janus.transport.rabbitmq";

/// The transport by RabbitMQ.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RabbitConfig {
    /// The common configuration.
    #[serde(flatten)]
    pub common: BrokerApi,
    /// The broker's address.
    #[serde(flatten)]
    pub server: RabbitServer,
    /// The configuration of TLS.
    #[serde(flatten)]
    pub tls: BrokerTls,
    /// The queues.
    #[serde(flatten)]
    pub api: RabbitApi,
}

/// The queues of requests, replies and events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RabbitApi {
    /// The exchange for published messages, which is declared. Without it the default exchange is
    /// used.
    #[serde(with = "portunus_config::optional")]
    pub janus_exchange: Option<String>,
    /// The type of the exchange.
    pub janus_exchange_type: ExchangeType,
    /// The queue of requests, bound by `to_janus` to an exchange of type topic or direct. Without
    /// it the queue is named `to_janus`.
    #[serde(with = "portunus_config::optional")]
    pub queue_name: Option<String>,
    /// The name or routing key of requests.
    pub to_janus: String,
    /// The routing key and queue of replies and events.
    pub from_janus: String,
    /// Whether that queue is declared.
    pub declare_outgoing_queue: bool,
    /// Whether the queue of requests is durable.
    pub queue_durable: bool,
    /// Whether it is deleted without a consumer.
    pub queue_autodelete: bool,
    /// Whether it is exclusive to this connection.
    pub queue_exclusive: bool,
    /// As `queue_name`, for the Admin API.
    #[serde(with = "portunus_config::optional")]
    pub queue_name_admin: Option<String>,
    /// As `to_janus`, for the Admin API.
    pub to_janus_admin: String,
    /// As `from_janus`, for the Admin API.
    pub from_janus_admin: String,
    /// As `declare_outgoing_queue`, for the Admin API.
    pub declare_outgoing_queue_admin: bool,
    /// As `queue_durable`, for the Admin API.
    pub queue_durable_admin: bool,
    /// As `queue_autodelete`, for the Admin API.
    pub queue_autodelete_admin: bool,
    /// As `queue_exclusive`, for the Admin API.
    pub queue_exclusive_admin: bool,
    /// Whether a reply goes to the queue in `reply_to` of its request.
    pub use_reply_to: bool,
}

impl Default for RabbitApi {
    fn default() -> Self {
        RabbitApi {
            janus_exchange: None,
            janus_exchange_type: ExchangeType::Fanout,
            queue_name: None,
            to_janus: "to-janus".to_owned(),
            from_janus: "from-janus".to_owned(),
            declare_outgoing_queue: true,
            queue_durable: false,
            queue_autodelete: false,
            queue_exclusive: false,
            queue_name_admin: None,
            to_janus_admin: "to-janus-admin".to_owned(),
            from_janus_admin: "from-janus-admin".to_owned(),
            declare_outgoing_queue_admin: true,
            queue_durable_admin: false,
            queue_autodelete_admin: false,
            queue_exclusive_admin: false,
            use_reply_to: false,
        }
    }
}

impl Configuration for RabbitConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let common = BrokerApi::read(section);
        let server = RabbitServer::read(section);
        let tls = BrokerTls::read(section);
        let api: RabbitApi = section.keys();
        for (key, name) in [
            ("to_janus", &api.to_janus),
            ("from_janus", &api.from_janus),
            ("to_janus_admin", &api.to_janus_admin),
            ("from_janus_admin", &api.from_janus_admin),
        ] {
            section.require(&[key], rabbitmq::is_name(name), rabbitmq::NAME);
        }
        for (key, name) in [
            ("janus_exchange", &api.janus_exchange),
            ("queue_name", &api.queue_name),
            ("queue_name_admin", &api.queue_name_admin),
        ] {
            let right = name.as_deref().is_none_or(rabbitmq::is_name);
            section.require(&[key], right, rabbitmq::NAME);
        }
        let janus = api.queue_name.as_ref().unwrap_or(&api.to_janus);
        let admin = api.queue_name_admin.as_ref().unwrap_or(&api.to_janus_admin);
        section.require(
            &[
                "to_janus_admin",
                "to_janus",
                "queue_name_admin",
                "queue_name",
            ],
            janus != admin,
            "expected a queue of its own, other than that of the Janus API",
        );
        RabbitConfig {
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
pub(crate) struct Rabbit(pub(crate) RabbitConfig);

impl RabbitConfig {
    fn topology(&self) -> Topology {
        let api = &self.api;
        let exchange = api.janus_exchange.clone().map(|name| Exchange {
            name,
            kind: api.janus_exchange_type,
        });
        let is_bound = matches!(
            api.janus_exchange_type,
            ExchangeType::Topic | ExchangeType::Direct
        );
        let incoming = |name: &Option<String>, key: &String| Queue {
            name: name.clone().unwrap_or_else(|| key.clone()),
            binding: name.as_ref().filter(|_| is_bound).map(|_| key.clone()),
            is_read: true,
            ..Queue::default()
        };
        let outgoing = |declare: bool, name: &String| {
            declare.then(|| Queue {
                name: name.clone(),
                ..Queue::default()
            })
        };
        let janus = Queue {
            durable: api.queue_durable,
            auto_delete: api.queue_autodelete,
            exclusive: api.queue_exclusive,
            ..incoming(&api.queue_name, &api.to_janus)
        };
        let admin = Queue {
            durable: api.queue_durable_admin,
            auto_delete: api.queue_autodelete_admin,
            exclusive: api.queue_exclusive_admin,
            ..incoming(&api.queue_name_admin, &api.to_janus_admin)
        };
        let from_janus = outgoing(api.declare_outgoing_queue, &api.from_janus);
        let from_admin = outgoing(api.declare_outgoing_queue_admin, &api.from_janus_admin);
        let (is_janus, is_admin) = (self.common.enabled, self.common.admin_enabled);
        let queues = [
            Some(janus).filter(|_| is_janus),
            from_janus.filter(|_| is_janus),
            Some(admin).filter(|_| is_admin),
            from_admin.filter(|_| is_admin),
        ];
        Topology {
            exchange,
            queues: queues.into_iter().flatten().collect(),
        }
    }
}

impl Broker for Rabbit {
    const PACKAGE: &'static str = RABBITMQ;
    const NAME: &'static str = "rabbitmq";
    type Outgoing = Outgoing;

    fn common(&self) -> &BrokerApi {
        &self.0.common
    }

    fn connect(&self) -> Result<Connection<Outgoing>, TlsError> {
        rabbitmq::connect(&self.0.server, &self.0.tls, self.0.topology())
    }

    fn outgoing(&self, api: Api, reply: Option<Reply>, payload: Bytes) -> Outgoing {
        let config = &self.0.api;
        let key = match api {
            Api::Janus => &config.from_janus,
            Api::Admin => &config.from_janus_admin,
        };
        let Reply { to, correlation } = reply.unwrap_or_default();
        let to = to.filter(|to| config.use_reply_to && rabbitmq::is_name(to));
        let (exchange, routing_key) = match to {
            Some(queue) => (String::new(), queue),
            None => (
                config.janus_exchange.clone().unwrap_or_default(),
                key.clone(),
            ),
        };
        Outgoing {
            exchange,
            routing_key,
            payload,
            correlation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_with_a_name_of_its_own_is_bound_by_the_routing_key() {
        let mut config = RabbitConfig::default();
        config.common.enabled = true;
        let names = |config: &RabbitConfig| {
            let queues = config.topology().queues.into_iter();
            queues
                .map(|queue| (queue.name, queue.binding))
                .collect::<Vec<_>>()
        };
        let own = |name: &str| (name.to_owned(), None);
        assert_eq!(names(&config), [own("to-janus"), own("from-janus")]);
        config.api.queue_name = Some("requests".to_owned());
        config.api.janus_exchange = Some("janus".to_owned());
        config.api.janus_exchange_type = ExchangeType::Topic;
        config.api.declare_outgoing_queue = false;
        let bound = ("requests".to_owned(), Some("to-janus".to_owned()));
        assert_eq!(names(&config), [bound]);
    }

    #[test]
    fn replies_go_where_the_configuration_lets_them() {
        let reply = || Reply {
            to: Some("mine".to_owned()),
            correlation: Some(Bytes::from_static(b"7")),
        };
        let mut config = RabbitConfig::default();
        let to = |config: &RabbitConfig| {
            let rabbit = Rabbit(config.clone());
            let outgoing = rabbit.outgoing(Api::Janus, Some(reply()), Bytes::new());
            assert_eq!(outgoing.correlation, reply().correlation);
            outgoing.routing_key
        };
        assert_eq!(to(&config), "from-janus");
        config.api.use_reply_to = true;
        assert_eq!(to(&config), "mine");
    }
}
