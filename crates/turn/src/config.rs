//! The configuration of the TURN server.

use std::net::IpAddr;
use std::time::Duration;

use portunus_config::{Configuration, Probe, Protocol, Secret, Section};
use serde::{Deserialize, Serialize};

/// The TURN server. It is off by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnConfig {
    /// Whether the server runs, on UDP and TCP.
    pub enabled: bool,
    /// The name or IP address for clients. Empty means the first announced address of media.
    pub host: String,
    /// The addresses to listen on. Empty means UDP on those of media, TCP and TLS on all.
    pub bind: Vec<IpAddr>,
    /// The port for UDP and TCP. 0 means that the kernel chooses.
    pub port: u16,
    /// Whether to serve TLS too, which requires a certificate.
    pub tls: bool,
    /// The port for TLS.
    pub tls_port: u16,
    /// The secret for credentials. Empty means a random one at every start.
    pub secret: Secret,
    /// The lifetime of credentials. An allocation may last longer.
    #[serde(with = "portunus_config::seconds")]
    pub credential_lifetime: Duration,
    /// The longest lifetime of an allocation without a refresh.
    #[serde(with = "portunus_config::seconds")]
    pub max_lifetime: Duration,
    /// The most allocations at a time.
    pub max_allocations: usize,
    /// The most allocations of one client address, or of one IPv6 network of 64 bits.
    pub max_allocations_per_address: usize,
    /// The most TCP and TLS connections at a time, including handshakes.
    pub max_connections: usize,
    /// The most connections of one client address, or of one IPv6 network of 64 bits.
    pub max_connections_per_address: usize,
    /// The most bytes that wait for a client of TCP or TLS. More are dropped.
    pub max_queue: usize,
}

impl Default for TurnConfig {
    fn default() -> Self {
        TurnConfig {
            enabled: false,
            host: String::new(),
            bind: Vec::new(),
            port: 3478,
            tls: false,
            tls_port: 5349,
            secret: Secret::default(),
            credential_lifetime: Duration::from_secs(600),
            max_lifetime: Duration::from_secs(3_600),
            max_allocations: 2_000,
            max_allocations_per_address: 200,
            max_connections: 3_000,
            max_connections_per_address: 300,
            max_queue: 128 << 10,
        }
    }
}

impl Configuration for TurnConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let turn: Self = section.keys();
        section.check(&["host"], host(&turn.host));
        if turn.enabled {
            let ports = turn.port..=turn.port;
            section.listens("port", Protocol::Udp, &turn.bind, ports.clone());
            section.listens("port", Protocol::Tcp, &turn.bind, ports);
        }
        if turn.enabled && turn.tls {
            let ports = turn.tls_port..=turn.tls_port;
            section.listens("tls_port", Protocol::Tcp, &turn.bind, ports);
        }
        let text = "needs turn.enabled";
        section.require(&["tls", "enabled"], turn.enabled || !turn.tls, text);
        let text = "expected at least 16 characters, or none";
        let fits = turn.secret.is_empty() || turn.secret.len() >= 16;
        section.require(&["secret"], fits, text);
        let lifetime = turn.credential_lifetime.as_secs();
        section.range("credential_lifetime", lifetime, 60..=86_400);
        section.range("max_lifetime", turn.max_lifetime.as_secs(), 600..=86_400);
        for (key, number) in [
            ("max_allocations", turn.max_allocations),
            (
                "max_allocations_per_address",
                turn.max_allocations_per_address,
            ),
            ("max_connections", turn.max_connections),
            (
                "max_connections_per_address",
                turn.max_connections_per_address,
            ),
        ] {
            section.range(key, number, 1..=1_000_000);
        }
        section.range("max_queue", turn.max_queue, 16 << 10..=64 << 20);
        turn
    }

    fn probe(&self, probe: &mut Probe) {
        if !self.enabled {
            return;
        }
        for address in &self.bind {
            probe.address("bind", *address);
        }
        if self.tls && (self.host.is_empty() || self.host.parse::<IpAddr>().is_ok()) {
            let text = "with turn.tls it has to be the name that the certificate is for: browsers refuse others";
            probe.warning("host", text);
        }
    }
}

/// Refuses a text that cannot be the host of a URL.
fn host(text: &str) -> Result<(), String> {
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty() && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    let is_name = text.len() <= 253 && text.split('.').all(is_label);
    match text.is_empty() || text.parse::<IpAddr>().is_ok() || is_name {
        true => Ok(()),
        false => Err(format!(
            "expected a name such as \"turn.example.org\" or an IP address, got {text:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn read(text: &str) -> Result<TurnConfig, Vec<String>> {
        let read = portunus_config::read(text, |file| file.section("turn", TurnConfig::read));
        read.map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_defaults_are_those_of_turn_and_off() {
        let turn = read("").unwrap();
        assert_eq!(
            (turn.enabled, turn.port, turn.tls_port),
            (false, 3478, 5349)
        );
        assert_eq!(turn, TurnConfig::default());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("host = \"a b\"", "expected a name such as"),
            ("host = \"turn:x\"", "expected a name such as"),
            ("tls = true", "needs turn.enabled"),
            ("secret = \"short\"", "expected at least 16 characters"),
            ("credential_lifetime = 5", "turn.credential_lifetime"),
            ("max_lifetime = 60", "turn.max_lifetime"),
            ("max_allocations = 0", "turn.max_allocations"),
            ("max_queue = 1", "turn.max_queue"),
            ("enabled = true\ntls = true\ntls_port = 3478", "3478"),
        ] {
            let mistakes = read(&format!("[turn]\n{text}")).unwrap_err();
            let found = mistakes.iter().any(|it| it.contains(expected));
            assert!(found, "{text}: {mistakes:?}");
        }
        for host in [
            "turn.example.org",
            "203.0.113.7",
            "2001:db8::7",
            "localhost",
        ] {
            assert!(
                read(&format!("[turn]\nhost = \"{host}\"")).is_ok(),
                "{host}"
            );
        }
    }
}
