//! The section `[websocket]`.

use std::net::IpAddr;
use std::time::Duration;

use portunus_config::{Configuration, Probe, Protocol, Section};
use serde::{Deserialize, Serialize};

use super::values::addresses;

/// The WebSocket server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketConfig {
    /// Whether plain WebSocket is served.
    pub enabled: bool,
    /// The addresses to listen on. Empty means all, IPv6 and IPv4.
    pub bind: Vec<IpAddr>,
    /// The port of plain WebSocket. 0 lets the kernel choose.
    pub port: u16,
    /// Whether secure WebSocket is served as well, which needs [`TlsConfig`](crate::TlsConfig).
    pub wss: bool,
    /// The port of secure WebSocket.
    pub wss_port: u16,
    /// The time without a frame from the client after which a ping is sent. 0 disables it.
    #[serde(with = "portunus_config::seconds")]
    pub ping_interval: Duration,
    /// How long after a ping the client may be silent before it counts as gone.
    #[serde(with = "portunus_config::seconds")]
    pub ping_timeout: Duration,
    /// The largest request in bytes. Larger ones get error 454. More than four times this size
    /// closes the connection.
    pub max_message: usize,
    /// How long a client may not read before it is disconnected.
    #[serde(with = "portunus_config::seconds")]
    pub write_timeout: Duration,
    /// The most open connections over all WebSocket ports.
    pub max_connections: usize,
    /// The most open connections of one client address. 0 means no limit.
    pub max_connections_per_address: usize,
    /// Whether connections and disconnections are published as events.
    pub events: bool,
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            bind: Vec::new(),
            port: 8188,
            wss: false,
            wss_port: 8989,
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(10),
            max_message: 1 << 20,
            write_timeout: Duration::from_secs(10),
            max_connections: 10_000,
            max_connections_per_address: 2_500,
            events: true,
        }
    }
}

impl Configuration for WebSocketConfig {
    const LIVE: &'static [&'static str] = &["max_connections", "max_connections_per_address"];

    fn read(section: &mut Section<'_>) -> Self {
        let websocket: Self = section.keys();
        for (on, key, port) in [
            (websocket.enabled, "port", websocket.port),
            (websocket.wss, "wss_port", websocket.wss_port),
        ] {
            if on {
                section.listens(key, Protocol::Tcp, &websocket.bind, port..=port);
            }
        }
        section.range("ping_timeout", websocket.ping_timeout.as_secs(), 1..=600);
        section.range("max_message", websocket.max_message, 1_024..=64 << 20);
        section.range("write_timeout", websocket.write_timeout.as_secs(), 1..=600);
        section.range("max_connections", websocket.max_connections, 1..=1_000_000);
        let per_address = websocket.max_connections_per_address;
        section.range("max_connections_per_address", per_address, 0..=1_000_000);
        websocket
    }

    fn probe(&self, probe: &mut Probe) {
        if self.enabled || self.wss {
            addresses(probe, &self.bind);
        }
    }
}
