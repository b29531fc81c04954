//! The section `[livekit]`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use portunus_config::{Configuration, Probe, Protocol, Secret, Section};
use serde::{Deserialize, Serialize};

use crate::egress::EgressConfig;
use crate::ingress::IngressConfig;
use crate::webhook::{MAX_URLS, WebhookConfig};

/// The port of `livekit-server`, which SDKs expect.
const PORT: u16 = 7880;

/// The LiveKit door. It is closed without keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LiveKitConfig {
    /// The API keys with their secrets, which sign the access tokens. Empty disables the door.
    pub keys: BTreeMap<String, Secret>,
    /// The addresses to listen on. Empty means all, IPv6 and IPv4.
    pub bind: Vec<IpAddr>,
    /// The port. 0 lets the kernel choose.
    pub port: u16,
    /// Whether the port is served by TLS.
    pub tls: bool,
    /// Whether a join makes the room that its token names. Otherwise the room has to exist.
    pub auto_create: bool,
    /// How long a room stays that nobody has joined.
    #[serde(with = "portunus_config::seconds")]
    pub empty_timeout: Duration,
    /// How long a room stays when the last participant has left.
    #[serde(with = "portunus_config::seconds")]
    pub departure_timeout: Duration,
    /// Whether video pauses for a client whose link does not carry its lowest layer. A client can
    /// ask for another way. Otherwise the lowest layer flows.
    pub allow_pause: bool,
    /// Whether the services may unmute a track of somebody else.
    pub enable_remote_unmute: bool,
    /// STUN and TURN servers for clients, besides the TURN server of this server.
    pub ice_servers: Vec<ClientIceServer>,
    /// The most participants of this door.
    pub max_participants: usize,
    /// The most open connections.
    pub max_connections: usize,
    /// The program ffmpeg: a name in PATH, or a path.
    pub ffmpeg: String,
    /// The file of trunks, rules and ingresses. Without it they are forgotten with the server.
    #[serde(with = "portunus_config::optional")]
    pub save: Option<PathBuf>,
    /// The webhooks.
    pub webhook: WebhookConfig,
    /// Recordings and streams.
    pub egress: EgressConfig,
    /// Media that comes in.
    pub ingress: IngressConfig,
}

impl Default for LiveKitConfig {
    fn default() -> Self {
        LiveKitConfig {
            keys: BTreeMap::new(),
            bind: Vec::new(),
            port: PORT,
            tls: false,
            auto_create: true,
            empty_timeout: Duration::from_secs(300),
            departure_timeout: Duration::from_secs(20),
            allow_pause: false,
            enable_remote_unmute: false,
            ice_servers: Vec::new(),
            max_participants: 100_000,
            max_connections: 100_000,
            ffmpeg: "ffmpeg".to_owned(),
            save: None,
            webhook: WebhookConfig::default(),
            egress: EgressConfig::default(),
            ingress: IngressConfig::default(),
        }
    }
}

/// A STUN or TURN server for clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientIceServer {
    /// Its URLs (RFC 7064, RFC 7065), such as `turn:turn.example.org:3478?transport=udp`.
    pub urls: Vec<String>,
    /// The user name for TURN.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The credential for TURN.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub credential: String,
}

impl ClientIceServer {
    fn is_valid(&self) -> bool {
        let has_credential = !self.username.is_empty() && !self.credential.is_empty();
        let is_known = |url: &String| match url.split_once(':') {
            Some(("stun" | "stuns", _)) => true,
            Some(("turn" | "turns", _)) => has_credential,
            Some(_) | None => false,
        };
        !self.urls.is_empty() && self.urls.iter().all(is_known)
    }
}

/// The reason why the text of `LIVEKIT_KEYS` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected keys and secrets as in \"devkey: secret\", one pair a line")]
pub struct KeysError;

impl LiveKitConfig {
    /// Returns whether the door is open.
    pub fn is_on(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Adds the keys of the environment variable `LIVEKIT_KEYS`: lines of `key: secret`.
    pub fn add_keys(&mut self, text: &str) -> Result<(), KeysError> {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (key, secret) = line.split_once(':').ok_or(KeysError)?;
            let (key, secret) = (key.trim(), secret.trim().trim_matches(['"', '\'']));
            if key.is_empty() || secret.is_empty() {
                return Err(KeysError);
            }
            self.keys.insert(key.to_owned(), secret.into());
        }
        Ok(())
    }
}

impl Configuration for LiveKitConfig {
    const LIVE: &'static [&'static str] = &["keys", "webhook"];

    fn read(section: &mut Section<'_>) -> Self {
        let livekit: Self = section.keys();
        let is_filled = |(key, secret): (&String, &Secret)| !key.is_empty() && !secret.is_empty();
        let filled = livekit.keys.iter().all(is_filled);
        section.require(&["keys"], filled, "keys and secrets may not be empty");
        if livekit.is_on() {
            let port = livekit.port;
            section.listens("port", Protocol::Tcp, &livekit.bind, port..=port);
        }
        let webhook = &livekit.webhook;
        let is_http = webhook.has_urls_of_http() && webhook.urls.len() <= MAX_URLS;
        let text = "expected at most 16 URLs that start with http:// or https://";
        section.require(&["webhook"], is_http, text);
        // LIVEKIT_KEYS may add the key later.
        let is_known = webhook.urls.is_empty() || !webhook.api_key.is_empty();
        let text = "expected the name of an API key, which signs the events";
        section.require(&["webhook"], is_known, text);
        let are_valid = livekit.ice_servers.iter().all(ClientIceServer::is_valid);
        let text = "expected URLs with stun:, stuns:, turn: or turns:, the latter with username and credential";
        section.require(&["ice_servers"], are_valid, text);
        let seconds = 0..=86_400;
        section.range(
            "empty_timeout",
            livekit.empty_timeout.as_secs(),
            seconds.clone(),
        );
        section.range(
            "departure_timeout",
            livekit.departure_timeout.as_secs(),
            seconds,
        );
        section.range("max_participants", livekit.max_participants, 1..=10_000_000);
        section.range("max_connections", livekit.max_connections, 1..=1_000_000);
        let text = "expected the name or the path of a program";
        section.require(&["ffmpeg"], !livekit.ffmpeg.is_empty(), text);
        let (egress, ingress) = (&livekit.egress, &livekit.ingress);
        let is_named = !egress.dir.as_os_str().is_empty();
        section.require(&["egress"], is_named, "dir is the name of a folder");
        let text = "stream_restarts is from 0 to 1,000";
        section.require(&["egress"], egress.stream_restarts <= 1_000, text);
        let last = ingress.rtmp_port.checked_add(ingress.rtmp_ports);
        let text = "rtmp_ports is 1 at least, and the last port 65,535 at most";
        let fits = ingress.rtmp_ports > 0 && last.is_some();
        section.require(&["ingress"], fits, text);
        if livekit.is_on() && ingress.rtmp_port > 0 && fits {
            let ports = ingress.rtmp_port..=ingress.rtmp_port + (ingress.rtmp_ports - 1);
            section.listens("ingress", Protocol::Tcp, &[], ports);
        }
        livekit
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(file) = self.save.as_ref().filter(|_| self.is_on()) {
            probe.written_file("save", file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_environment_as_livekit_has_them() {
        let mut config = LiveKitConfig::default();
        assert!(!config.is_on());
        assert_eq!(config.add_keys("devkey: secret\n other:\"s:2\"\n"), Ok(()));
        let keys = config.keys.iter();
        let keys: Vec<(&str, &str)> = keys.map(|(key, secret)| (&**key, &**secret)).collect();
        assert_eq!(keys, [("devkey", "secret"), ("other", "s:2")]);
        assert!(config.is_on());
        for wrong in ["devkey", "devkey:", ": secret"] {
            assert_eq!(config.add_keys(wrong), Err(KeysError), "{wrong}");
        }
    }

    #[test]
    fn turn_servers_need_a_credential() {
        let server = |url: &str, username: &str| ClientIceServer {
            urls: vec![url.to_owned()],
            username: username.to_owned(),
            credential: username.to_owned(),
        };
        assert!(server("stun:stun.example.org", "").is_valid());
        assert!(server("turn:turn.example.org:3478?transport=udp", "al").is_valid());
        assert!(!server("turn:turn.example.org", "").is_valid());
        assert!(!server("http://example.org", "al").is_valid());
        assert!(!server("example.org", "al").is_valid());
    }
}
