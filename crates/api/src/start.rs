//! Starts and stops the transports.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portunus_admin::Administration;
use portunus_core::{Budget, BudgetKeys, Gateway, TransportInfo};
use portunus_metrics::MetricsSource;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::admin::Reach;
use crate::broker::{self, Broker, MQTT, Mqtt, NATS, Nats, RABBITMQ, Rabbit};
use crate::counters::Gauge;
use crate::http::metrics::Sources;
use crate::kept_sockets::KeptSockets;
use crate::listener::{self, Server};
use crate::pace::Api;
use crate::packages::{HTTP, UNIX, WEBSOCKET};
use crate::reload::{self, TransportsReload};
use crate::requester::{Locality, OwnPorts};
use crate::tls::Tls;
use crate::{
    ApiConfig, Counters, ExtraServer, HttpConfig, StartError, TlsConfig, UnixConfig,
    WebSocketConfig, admin, control, http, notifications, tls, unix, websocket,
};

/// How long requests may continue after [`Transports::shutdown`].
const GRACE: Duration = Duration::from_secs(1);

/// The most connections to the metrics address.
const METRICS_CONNECTIONS: usize = 100;

/// Returns the descriptions of all enabled transports for `info`.
pub fn transport_infos(config: &ApiConfig) -> Vec<TransportInfo> {
    let all = [
        (
            config.http.enabled || config.http.https,
            TransportInfo {
                package: HTTP,
                name: "HTTP",
                description: "The Janus API by HTTP and long polling.",
            },
        ),
        (
            config.websocket.enabled || config.websocket.wss,
            TransportInfo {
                package: WEBSOCKET,
                name: "WebSocket",
                description: "The Janus API by WebSocket.",
            },
        ),
        (
            config.unix.path.is_some(),
            TransportInfo {
                package: UNIX,
                name: "Unix socket",
                description: "The Janus API by a Unix socket.",
            },
        ),
        (
            config.mqtt.common.is_on(),
            TransportInfo {
                package: MQTT,
                name: "MQTT",
                description: "The Janus API by an MQTT broker.",
            },
        ),
        (
            config.rabbitmq.common.is_on(),
            TransportInfo {
                package: RABBITMQ,
                name: "RabbitMQ",
                description: "The Janus API by RabbitMQ.",
            },
        ),
        (
            config.nats.common.is_on(),
            TransportInfo {
                package: NATS,
                name: "NATS",
                description: "The Janus API by NATS.",
            },
        ),
    ];
    all.into_iter()
        .filter_map(|(on, info)| on.then_some(info))
        .collect()
}

/// Returns the kinds and addresses of all connected brokers.
pub fn brokers(config: &ApiConfig) -> Vec<(&'static str, String)> {
    let ApiConfig {
        mqtt,
        rabbitmq,
        nats,
        ..
    } = config;
    let all = [
        (mqtt.common.is_on(), "MQTT", mqtt.server.url.clone()),
        (
            rabbitmq.common.is_on(),
            "RabbitMQ",
            rabbitmq.server.address(),
        ),
        (nats.common.is_on(), "NATS", nats.server.address.url.clone()),
    ];
    let on = all.into_iter().filter(|(on, ..)| *on);
    on.map(|(_, name, address)| (name, address)).collect()
}

/// The running transports.
#[derive(Debug)]
pub struct Transports {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    counters: Arc<Counters>,
    addresses: Addresses,
    reload: TransportsReload,
}

/// The addresses of the transports.
#[derive(Debug, Clone, Default)]
struct Addresses {
    http: Vec<SocketAddr>,
    https: Vec<SocketAddr>,
    metrics: Vec<SocketAddr>,
    ws: Vec<SocketAddr>,
    wss: Vec<SocketAddr>,
    unix: Option<PathBuf>,
    admin: AdminAddresses,
    /// The addresses of further servers, such as that of LiveKit's clients, by name.
    extra: Vec<(&'static str, Vec<SocketAddr>)>,
}

/// The addresses of the Admin API.
#[derive(Debug, Clone, Default)]
pub struct AdminAddresses {
    /// Plain HTTP, and WebSocket.
    pub http: Vec<SocketAddr>,
    /// HTTPS, and secure WebSocket.
    pub https: Vec<SocketAddr>,
    /// Plain WebSocket on a port of its own.
    pub ws: Vec<SocketAddr>,
    /// Secure WebSocket on a port of its own.
    pub wss: Vec<SocketAddr>,
    /// The Unix socket.
    pub unix: Option<PathBuf>,
}

impl Addresses {
    /// Returns the ports of pages that may use an API like programs of this machine. The pages for
    /// calls may not use the Admin API, since they show data of strangers.
    fn pages(&self, api: Api) -> OwnPorts {
        let ports = |calls: &[SocketAddr], admin: &[SocketAddr]| {
            let calls = calls.iter().filter(|_| api == Api::Janus);
            calls.chain(admin).map(SocketAddr::port).collect()
        };
        OwnPorts {
            http: ports(&self.http, &self.admin.http),
            https: ports(&self.https, &self.admin.https),
        }
    }
}

impl Transports {
    /// Binds all sockets, then serves on the running tokio runtime. If one cannot be bound, none is
    /// served. `metrics` are shown beside those of the gateway, the Admin API and the transports.
    pub async fn start(
        config: ApiConfig,
        administration: Administration,
        metrics: Vec<Arc<dyn MetricsSource>>,
    ) -> Result<Self, StartError> {
        Self::start_with(config, administration, metrics, Vec::new()).await
    }

    /// As [`Transports::start`], with servers for doors of other protocols.
    pub async fn start_with(
        config: ApiConfig,
        administration: Administration,
        metrics: Vec<Arc<dyn MetricsSource>>,
        extra: Vec<ExtraServer>,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = watch::channel(false);
        let counters = Arc::<Counters>::default();
        let kept = KeptSockets::take_over();
        let gateway = administration.gateway().clone();
        let own: [Arc<dyn MetricsSource>; 3] = [
            counters.clone(),
            Arc::new(gateway.clone()),
            Arc::new(administration.clone()),
        ];
        let others: [Arc<dyn MetricsSource>; 2] = [counters.clone(), Arc::new(gateway.clone())];
        administration.set_metrics(others.into_iter().chain(metrics.iter().cloned()).collect());
        let sources: Sources = own.into_iter().chain(metrics).collect();
        notifications::mute(gateway.events(), &config);
        let mut bound = Bound::default();
        let mut addresses = Addresses::default();
        let locality = || Arc::new(Locality::new(&gateway.trusted_proxies()));
        let (locality, admin_locality) = (locality(), locality());

        let server = |router, places: Budget, api: Api, locality: &Arc<Locality>| Server {
            router,
            places,
            memory: api.memory(&gateway).clone(),
            open: Gauge::default(),
            counters: counters.clone(),
            locality: locality.clone(),
            stop: stopped.clone(),
        };
        let (http, websocket) = (&config.http, &config.websocket);
        let shared = websocket::Shared::new(
            Api::Janus,
            websocket,
            administration.clone(),
            counters.clone(),
            &stopped,
        );
        let router = http::router(
            http,
            &config.whip,
            shared.clone(),
            gateway.clone(),
            counters.clone(),
            sources.clone(),
        );
        let mut tls = SharedTls::new(&config.tls);
        let (of_http, of_websocket) = (
            http_places(http, &gateway),
            websocket_places(websocket, &gateway),
        );
        let (of_admin_http, of_admin_websocket) = (
            http_places(http, &gateway),
            websocket_places(websocket, &gateway),
        );
        let http_server = server(router, of_http.clone(), Api::Janus, &locality);
        let metrics = http::metrics_router(gateway.clone(), sources);
        // Separate places, so that metrics can be read when other clients hold all connections.
        let of_metrics = places(METRICS_CONNECTIONS, 0, &gateway, METRICS_KEYS);
        let metrics_server = server(metrics, of_metrics, Api::Admin, &locality);
        let router = websocket::router(shared);
        let ws_server = server(router, of_websocket.clone(), Api::Janus, &locality);

        if http.enabled {
            let listeners = listener::bind(&http.bind, http.port, "http.port", &kept).await?;
            addresses.http = bound.add("http", listeners, None, &http_server);
        }
        if http.https {
            let tls = tls.get("http.https")?;
            let listeners =
                listener::bind(&http.bind, http.https_port, "http.https_port", &kept).await?;
            addresses.https = bound.add("https", listeners, Some(tls), &http_server);
        }
        if let Some(own) = http.metrics_bind.filter(|_| http.metrics) {
            let listeners =
                listener::bind(&[own.ip()], own.port(), "http.metrics_bind", &kept).await?;
            addresses.metrics = bound.add("metrics", listeners, None, &metrics_server);
        }
        if websocket.enabled {
            let port = websocket.port;
            let listeners = listener::bind(&websocket.bind, port, "websocket.port", &kept).await?;
            addresses.ws = bound.add("ws", listeners, None, &ws_server);
        }
        if websocket.wss {
            let tls = tls.get("websocket.wss")?;
            let port = websocket.wss_port;
            let listeners =
                listener::bind(&websocket.bind, port, "websocket.wss_port", &kept).await?;
            addresses.wss = bound.add("wss", listeners, Some(tls), &ws_server);
        }
        for door in extra {
            let tls = door.tls.map(|key| tls.get(key)).transpose()?;
            let listeners = listener::bind(&door.bind, door.port, door.key, &kept).await?;
            let places = places(door.max_connections, 0, &gateway, door.budget_keys());
            let own = server(door.router, places, Api::Janus, &locality);
            let bound = bound.add(door.name, listeners, tls, &own);
            addresses.extra.push((door.name, bound));
        }
        if let Some(turn) = gateway.turn().filter(|turn| turn.has_tls()) {
            let tls = tls.get("turn.tls")?;
            turn.set_tls(move || tls.turn_acceptor());
        }
        let shared = websocket::Shared::new(
            Api::Admin,
            websocket,
            administration.clone(),
            counters.clone(),
            &stopped,
        );
        let router = admin::router(
            &config,
            shared.clone(),
            administration.clone(),
            counters.clone(),
        );
        let ws_router = websocket::router(shared);
        let servers = AdminServers {
            http: server(router, of_admin_http.clone(), Api::Admin, &admin_locality),
            websocket: server(
                ws_router,
                of_admin_websocket.clone(),
                Api::Admin,
                &admin_locality,
            ),
            has_secret: administration.has_secret(),
        };
        addresses.admin = servers.bind(&config, &mut tls, &mut bound, &kept).await?;
        kept.close_unused();
        locality.set_ports(addresses.pages(Api::Janus));
        admin_locality.set_ports(addresses.pages(Api::Admin));
        let http_places = vec![of_http, of_admin_http];
        let websocket_places = vec![of_websocket, of_admin_websocket];
        let reload = TransportsReload::new(tls.shared, http_places, websocket_places);
        let mut tasks = JoinSet::new();
        if let Some(path) = &config.unix.path {
            let socket = unix::bind(Api::Janus, &config.unix, path)?;
            tasks.spawn(socket.serve(administration.clone(), counters.clone(), stopped.clone()));
            addresses.unix = Some(path.clone());
        }
        if let Some(path) = &config.admin.unix_path {
            let unix = UnixConfig {
                mode: config.admin.unix_mode,
                ..config.unix.clone()
            };
            let socket = unix::bind(Api::Admin, &unix, path)?;
            tasks.spawn(socket.serve(administration.clone(), counters.clone(), stopped.clone()));
            addresses.admin.unix = Some(path.clone());
        }
        let has_unix = addresses.unix.is_some() || addresses.admin.unix.is_some();
        control::register(&administration, &counters, bound.open, has_unix);
        let shared = broker::Shared {
            administration,
            counters: counters.clone(),
            stop: stopped,
        };
        connect(&mut tasks, Mqtt(config.mqtt), &shared)?;
        connect(&mut tasks, Rabbit(config.rabbitmq), &shared)?;
        connect(&mut tasks, Nats(config.nats), &shared)?;
        // Every connection holds a receiver.
        drop(shared);
        for (listener, tls, server) in bound.listeners {
            tasks.spawn(listener::serve(listener, tls, server));
        }
        Ok(Self {
            tasks,
            stop,
            counters,
            addresses,
            reload,
        })
    }

    /// The addresses of plain HTTP.
    pub fn http(&self) -> &[SocketAddr] {
        &self.addresses.http
    }

    /// The addresses of HTTPS.
    pub fn https(&self) -> &[SocketAddr] {
        &self.addresses.https
    }

    /// The addresses of metrics, if they are separate.
    pub fn metrics(&self) -> &[SocketAddr] {
        &self.addresses.metrics
    }

    /// The addresses of plain WebSocket.
    pub fn ws(&self) -> &[SocketAddr] {
        &self.addresses.ws
    }

    /// The addresses of secure WebSocket.
    pub fn wss(&self) -> &[SocketAddr] {
        &self.addresses.wss
    }

    /// The addresses of the door of another protocol with this name. They are empty without it.
    pub fn extra(&self, name: &str) -> &[SocketAddr] {
        let mut extra = self.addresses.extra.iter();
        let found = extra.find(|(known, _)| *known == name);
        found.map_or(&[], |(_, addresses)| addresses)
    }

    /// The path of the Unix socket.
    pub fn unix(&self) -> Option<&PathBuf> {
        self.addresses.unix.as_ref()
    }

    /// The addresses of the Admin API.
    pub fn admin(&self) -> &AdminAddresses {
        &self.addresses.admin
    }

    /// Changes running transports.
    pub fn reload(&self) -> &TransportsReload {
        &self.reload
    }

    /// The counters of the transports.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Stops accepting, lets requests in progress end for a second, and closes all connections.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        let ended = async {
            while self.tasks.join_next().await.is_some() {}
            // Every connection holds a receiver.
            self.stop.closed().await;
        };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::debug!("some connections did not end in time");
        }
    }
}

const HTTP_KEYS: BudgetKeys = BudgetKeys {
    whole: "http.max_connections",
    address: "http.max_connections_per_address",
};
const WEBSOCKET_KEYS: BudgetKeys = BudgetKeys {
    whole: "websocket.max_connections",
    address: "websocket.max_connections_per_address",
};
/// Their number is not configurable.
const METRICS_KEYS: BudgetKeys = BudgetKeys {
    whole: "http.metrics_bind",
    address: "http.metrics_bind",
};

fn http_places(http: &HttpConfig, gateway: &Gateway) -> Budget {
    let (most, of_address) = (http.max_connections, http.max_connections_per_address);
    places(most, of_address, gateway, HTTP_KEYS)
}

fn websocket_places(websocket: &WebSocketConfig, gateway: &Gateway) -> Budget {
    let (most, of_address) = (
        websocket.max_connections,
        websocket.max_connections_per_address,
    );
    places(most, of_address, gateway, WEBSOCKET_KEYS)
}

/// A budget of connections, `most` in all. 0 for `of_address` means no limit for one address.
fn places(most: usize, of_address: usize, gateway: &Gateway, keys: BudgetKeys) -> Budget {
    let limits = reload::limits(most, of_address);
    gateway.memory().with_limits(limits, keys)
}

/// Serves the enabled APIs by a broker.
fn connect<B: Broker>(
    tasks: &mut JoinSet<()>,
    broker: B,
    shared: &broker::Shared,
) -> Result<(), StartError> {
    let events = shared.administration.gateway().events();
    events.mute(B::PACKAGE, !broker.common().events);
    if broker.common().is_on() {
        let section = B::NAME;
        let connection = broker
            .connect()
            .map_err(|error| StartError::Broker { section, error })?;
        let counted = connection.counters().clone();
        shared.counters.add_broker(B::NAME, counted);
        tasks.spawn(broker::serve(broker, connection, shared.clone()));
    }
    Ok(())
}

/// The certificate of all listeners, read by the first one that needs it.
struct SharedTls<'c> {
    config: &'c TlsConfig,
    shared: Option<Tls>,
}

impl<'c> SharedTls<'c> {
    fn new(config: &'c TlsConfig) -> Self {
        SharedTls {
            config,
            shared: None,
        }
    }

    /// Returns the certificate. `user` is the configuration key that needs it.
    fn get(&mut self, user: &'static str) -> Result<Tls, StartError> {
        if let Some(shared) = &self.shared {
            return Ok(shared.clone());
        }
        let tls = Tls::new(tls::read(self.config, user)?);
        Ok(self.shared.insert(tls).clone())
    }
}

/// The servers of the Admin API.
struct AdminServers {
    http: Server,
    websocket: Server,
    has_secret: bool,
}

impl AdminServers {
    /// Binds the configured ports.
    async fn bind(
        &self,
        config: &ApiConfig,
        certificate: &mut SharedTls<'_>,
        bound: &mut Bound,
        kept: &KeptSockets,
    ) -> Result<AdminAddresses, StartError> {
        let admin = &config.admin;
        let listen = async |is_secure, port, key| match admin.reach(is_secure, self.has_secret) {
            Reach::Loopback => listener::bind_loopback(port, key, kept).await,
            Reach::Bound => listener::bind(&admin.bind, port, key, kept).await,
        };
        let mut addresses = AdminAddresses::default();
        if admin.enabled {
            let listeners = listen(false, admin.port, "admin.port").await?;
            addresses.http = bound.add("admin_http", listeners, None, &self.http);
        }
        if admin.https {
            let tls = Some(certificate.get("admin.https")?);
            let listeners = listen(true, admin.https_port, "admin.https_port").await?;
            addresses.https = bound.add("admin_https", listeners, tls, &self.http);
        }
        if admin.ws {
            let listeners = listen(false, admin.ws_port, "admin.ws_port").await?;
            addresses.ws = bound.add("admin_ws", listeners, None, &self.websocket);
        }
        if admin.wss {
            let tls = Some(certificate.get("admin.wss")?);
            let listeners = listen(true, admin.wss_port, "admin.wss_port").await?;
            addresses.wss = bound.add("admin_wss", listeners, tls, &self.websocket);
        }
        Ok(addresses)
    }
}

/// Bound sockets that are not served yet.
#[derive(Default)]
struct Bound {
    listeners: Vec<(TcpListener, Option<Tls>, Server)>,
    /// The number of connections of each kind of port.
    open: Vec<(&'static str, Gauge)>,
}

impl Bound {
    /// Adds sockets of a kind, and returns their addresses.
    fn add(
        &mut self,
        kind: &'static str,
        listeners: Vec<TcpListener>,
        tls: Option<Tls>,
        server: &Server,
    ) -> Vec<SocketAddr> {
        let address = |listener: &TcpListener| listener.local_addr().ok();
        let addresses = listeners.iter().filter_map(address).collect();
        let open = Gauge::default();
        let server = Server {
            open: open.clone(),
            ..server.clone()
        };
        self.open.push((kind, open));
        let entry = |listener| (listener, tls.clone(), server.clone());
        self.listeners.extend(listeners.into_iter().map(entry));
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_names_the_transports_that_are_on() {
        let mut config = ApiConfig::default();
        config.http.enabled = false;
        let names: Vec<_> = transport_infos(&config).iter().map(|t| t.package).collect();
        assert_eq!(names, [WEBSOCKET]);
        config.mqtt.common.enabled = true;
        config.rabbitmq.common.admin_enabled = true;
        config.nats.common.enabled = true;
        let names: Vec<_> = transport_infos(&config).iter().map(|t| t.package).collect();
        assert_eq!(names, [WEBSOCKET, MQTT, RABBITMQ, NATS]);
        let brokers: Vec<_> = brokers(&config).into_iter().map(|(_, at)| at).collect();
        assert_eq!(brokers.get(1).map(String::as_str), Some("localhost:5672"));
    }
}
