//! Counters of the transports.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portunus_brokers::BrokerCounters;
use portunus_core::LogGate;
use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Its value.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A present number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicU64>);

/// One of the counted things. Dropping it reduces the number.
#[derive(Debug)]
pub(crate) struct Held(Gauge);

impl Gauge {
    pub(crate) fn hold(&self) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self.clone())
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counters of the transports since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Janus API requests over HTTP, long polls excluded.
    pub http_requests: Counter,
    /// Long polls.
    pub http_polls: Counter,
    /// WebSocket connections.
    pub websocket_connections: Counter,
    /// Messages received over WebSocket.
    pub websocket_messages: Counter,
    /// Clients of the Unix socket.
    pub unix_connections: Counter,
    /// Messages received over the Unix socket.
    pub unix_messages: Counter,
    /// Connections to message brokers.
    pub broker_connections: Counter,
    /// Messages received by message brokers.
    pub broker_messages: Counter,
    /// Publishers that came by WHIP.
    pub whip_sessions: Counter,
    /// Viewers that came by WHEP.
    pub whep_sessions: Counter,
    /// Requests of WHIP and WHEP that were refused.
    pub whip_refused: Counter,
    /// Requests refused before the gateway: invalid JSON, too large, or contradicting their path.
    pub refused: Counter,
    /// Clients disconnected because they did not read.
    pub slow_clients: Counter,
    /// WebSocket clients disconnected because they did not answer a ping.
    pub silent_clients: Counter,
    /// Connections refused because all clients or one address had too many, or for lack of memory.
    pub connections_refused: Counter,
    /// Connections that could not be accepted, mostly for lack of file descriptors.
    pub accept_failures: Counter,
    accept_gate: LogGate,
    pub(crate) open_websockets: Gauge,
    pub(crate) open_unix: Gauge,
    brokers: Mutex<Vec<(&'static str, Arc<BrokerCounters>)>>,
}

impl Counters {
    /// Counts a connection that could not be accepted, and logs one per second at most.
    pub(crate) fn accept_failed(&self, error: &io::Error) {
        self.accept_failures.add(1);
        if let Some(suppressed) = self.accept_gate.open() {
            tracing::warn!(%error, suppressed, "cannot accept a connection");
        }
    }

    /// Adds the counters of the connection to this kind of broker.
    pub(crate) fn add_broker(&self, kind: &'static str, counters: Arc<BrokerCounters>) {
        let mut brokers = self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        brokers.push((kind, counters));
    }

    /// Returns the counters of connections to brokers, by the kind of broker.
    pub fn brokers(&self) -> Vec<(&'static str, Arc<BrokerCounters>)> {
        let brokers = self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        brokers.clone()
    }

    /// Returns all counters with their names at `/metrics` and their descriptions.
    pub(crate) fn all(&self) -> [(&'static str, &'static str, u64); 16] {
        let entry = |name, help, counter: &Counter| (name, help, counter.value());
        [
            entry(
                "http_requests",
                "Janus API requests over HTTP",
                &self.http_requests,
            ),
            entry("http_polls", "Long polls", &self.http_polls),
            entry(
                "websocket_connections",
                "WebSocket connections",
                &self.websocket_connections,
            ),
            entry(
                "websocket_messages",
                "Messages received over WebSocket",
                &self.websocket_messages,
            ),
            entry(
                "unix_connections",
                "Clients of the Unix socket",
                &self.unix_connections,
            ),
            entry(
                "unix_messages",
                "Messages received over the Unix socket",
                &self.unix_messages,
            ),
            entry(
                "broker_connections",
                "Connections to message brokers",
                &self.broker_connections,
            ),
            entry(
                "broker_messages",
                "Messages received by message brokers",
                &self.broker_messages,
            ),
            entry(
                "whip_sessions",
                "Publishers that came by WHIP",
                &self.whip_sessions,
            ),
            entry(
                "whep_sessions",
                "Viewers that came by WHEP",
                &self.whep_sessions,
            ),
            entry(
                "whip_refused",
                "Requests of WHIP and WHEP that were refused",
                &self.whip_refused,
            ),
            entry(
                "refused_requests",
                "Requests that are no valid JSON, too large or contradict their path",
                &self.refused,
            ),
            entry(
                "slow_clients",
                "Clients disconnected because they did not read",
                &self.slow_clients,
            ),
            entry(
                "silent_clients",
                "Clients disconnected because they did not answer a ping",
                &self.silent_clients,
            ),
            entry(
                "refused_connections",
                "Connections refused because too many were open, or no memory was left for them",
                &self.connections_refused,
            ),
            entry(
                "accept_failures",
                "Connections that could not be accepted, mostly for lack of file descriptors",
                &self.accept_failures,
            ),
        ]
    }
}

impl MetricsSource for Counters {
    fn write(&self, page: &mut MetricsPage) {
        for (name, help, value) in self.all() {
            page.counter(&format!("{name}_total"), help, value);
        }
        let brokers = self.brokers();
        let help = "Whether the broker is connected (0: it is away, and tried again)";
        let connected = brokers.iter();
        let connected = connected.map(|(kind, it)| (*kind, u8::from(it.is_connected())));
        page.labelled(
            MetricKind::Gauge,
            "broker_connected",
            help,
            "broker",
            connected,
        );
        let mut of_brokers = |name, help, read: fn(&BrokerCounters) -> u64| {
            let values = brokers.iter().map(|(kind, it)| (*kind, read(it)));
            page.labelled(MetricKind::Counter, name, help, "broker", values);
        };
        of_brokers(
            "broker_published_messages_total",
            "Replies and events that the broker has got, or with NATS that were handed over",
            BrokerCounters::published,
        );
        of_brokers(
            "broker_lost_messages_total",
            "Replies and events that the broker has refused, or that were left at the end",
            BrokerCounters::lost,
        );
    }
}
