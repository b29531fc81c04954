//! The section `[http]`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use portunus_config::{Configuration, Probe, Protocol, Section};
use portunus_core::Network;
use serde::{Deserialize, Serialize};

use super::values::{addresses, base_path, visible};

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Whether plain HTTP is served.
    pub enabled: bool,
    /// The addresses to listen on. Empty means all, IPv6 and IPv4.
    pub bind: Vec<IpAddr>,
    /// The port of plain HTTP. 0 lets the kernel choose.
    pub port: u16,
    /// Whether HTTPS is served as well, which needs [`TlsConfig`](crate::TlsConfig).
    pub https: bool,
    /// The port of HTTPS.
    pub https_port: u16,
    /// The path of the Janus API. It starts with a slash, and does not end with one.
    pub base_path: String,
    /// Whether the web pages are served at `/`.
    pub pages: bool,
    /// Whether metrics are served at `/metrics`.
    pub metrics: bool,
    /// The address and port of metrics, by plain HTTP. `None` serves them on the ports of HTTP and
    /// HTTPS.
    #[serde(with = "portunus_config::optional")]
    pub metrics_bind: Option<SocketAddr>,
    /// Networks that may read metrics at the ports of HTTP and HTTPS, beside programs on this
    /// machine.
    pub metrics_networks: Vec<Network>,
    /// The origins whose pages may show the server's pages in a frame, beside the server's own.
    pub frame_ancestors: Vec<String>,
    /// The value of `Access-Control-Allow-Origin`: `*`, or one origin.
    pub allow_origin: String,
    /// Whether API requests of another origin are refused with 403.
    pub enforce_origin: bool,
    /// The largest request body in bytes.
    pub max_body: usize,
    /// The most open connections over all HTTP ports.
    pub max_connections: usize,
    /// The most open connections of one client address. 0 means no limit.
    pub max_connections_per_address: usize,
    /// How long the body of a request may take to arrive. The answer has no limit.
    #[serde(with = "portunus_config::seconds")]
    pub request_timeout: Duration,
    /// How long a long poll waits for events before it gets a keepalive.
    #[serde(with = "portunus_config::seconds")]
    pub long_poll: Duration,
    /// Whether each request is published as an event.
    pub events: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            bind: Vec::new(),
            port: 8088,
            https: false,
            https_port: 8089,
            base_path: "/janus".into(),
            pages: true,
            metrics: true,
            metrics_bind: None,
            metrics_networks: Vec::new(),
            frame_ancestors: Vec::new(),
            allow_origin: "*".into(),
            enforce_origin: false,
            max_body: 1 << 20,
            max_connections: 10_000,
            max_connections_per_address: 2_500,
            request_timeout: Duration::from_secs(10),
            // janus.js allows 60 s for a long poll, and many proxies close connections after 60 s.
            long_poll: Duration::from_secs(30),
            events: true,
        }
    }
}

impl Configuration for HttpConfig {
    const LIVE: &'static [&'static str] = &["max_connections", "max_connections_per_address"];

    fn read(section: &mut Section<'_>) -> Self {
        let http: Self = section.keys();
        section.check(&["base_path"], base_path(&http.base_path));
        let text = "expected * or an origin such as https://example.org";
        section.require(&["allow_origin"], visible(&http.allow_origin), text);
        let ancestors = http.frame_ancestors.iter().try_for_each(|it| ancestor(it));
        section.check(&["frame_ancestors"], ancestors);
        for (on, key, port) in [
            (http.enabled, "port", http.port),
            (http.https, "https_port", http.https_port),
        ] {
            if on {
                section.listens(key, Protocol::Tcp, &http.bind, port..=port);
            }
        }
        if let Some(own) = http.metrics_bind {
            let ports = own.port()..=own.port();
            section.listens("metrics_bind", Protocol::Tcp, &[own.ip()], ports);
        }
        section.range("max_body", http.max_body, 1_024..=64 << 20);
        section.range("max_connections", http.max_connections, 1..=1_000_000);
        let per_address = http.max_connections_per_address;
        section.range("max_connections_per_address", per_address, 0..=1_000_000);
        section.range("request_timeout", http.request_timeout.as_secs(), 1..=600);
        section.range("long_poll", http.long_poll.as_secs(), 1..=600);
        http
    }

    fn probe(&self, probe: &mut Probe) {
        if self.enabled || self.https {
            addresses(probe, &self.bind);
        }
        let Some(own) = self.metrics_bind.filter(|_| self.metrics) else {
            return;
        };
        probe.address("metrics_bind", own.ip());
        if !self.metrics_networks.is_empty() {
            let text = "it has no effect: whoever reaches http.metrics_bind may read the counters";
            probe.warning("metrics_networks", text);
        }
    }
}

/// Refuses what is not an origin. In a Content Security Policy a `;` would start another directive,
/// and a space another source.
fn ancestor(origin: &str) -> Result<(), String> {
    let rest = origin
        .strip_prefix("https://")
        .or(origin.strip_prefix("http://"));
    let host = |it: &str| {
        let part = |b: u8| b.is_ascii_alphanumeric() || b"-._~*:[]".contains(&b);
        !it.is_empty() && it.bytes().all(part)
    };
    match origin == "*" || rest.is_some_and(host) {
        true => Ok(()),
        false => Err(format!(
            "expected \"*\" or origins such as \"https://example.org\" (no slash at the end), got {origin:?}"
        )),
    }
}
