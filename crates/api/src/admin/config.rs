//! The addresses of the Admin API. The defaults are those of Janus.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Protocol, Section};
use serde::{Deserialize, Serialize};

use crate::FileMode;
use crate::config::values::{addresses, base_path, socket};

/// The transports of the Admin API. [`portunus_admin::AdminConfig`] has keys in the same section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminApiConfig {
    /// Whether it is served over plain HTTP, and over WebSocket at the same path.
    pub enabled: bool,
    /// The addresses to listen on. Empty means loopback, or all with TLS and a secret.
    pub bind: Vec<IpAddr>,
    /// The port of plain HTTP. 0 lets the kernel choose.
    pub port: u16,
    /// Whether it is served over HTTPS as well, which needs [`crate::TlsConfig`].
    pub https: bool,
    /// The port of HTTPS.
    pub https_port: u16,
    /// The base path. It starts with a slash, and does not end with one.
    pub base_path: String,
    /// Whether the dashboard is served at `/`.
    pub pages: bool,
    /// Whether plain WebSocket is served on a port of its own as well.
    pub ws: bool,
    /// The port of plain WebSocket. 0 lets the kernel choose.
    pub ws_port: u16,
    /// Whether secure WebSocket is served on a port of its own as well.
    pub wss: bool,
    /// The port of secure WebSocket.
    pub wss_port: u16,
    /// The path of its Unix socket, or `None` to disable it. Its type is that of the Janus API's
    /// socket.
    #[serde(with = "portunus_config::optional")]
    pub unix_path: Option<PathBuf>,
    /// The permissions of the socket's file.
    pub unix_mode: FileMode,
}

impl Default for AdminApiConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            bind: Vec::new(),
            port: 7088,
            https: false,
            https_port: 7889,
            base_path: "/admin".into(),
            pages: true,
            ws: false,
            ws_port: 7188,
            wss: false,
            wss_port: 7989,
            unix_path: None,
            unix_mode: FileMode(0o600),
        }
    }
}

impl Configuration for AdminApiConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let admin: Self = section.keys();
        section.check(&["base_path"], base_path(&admin.base_path));
        admin
    }

    fn probe(&self, probe: &mut Probe) {
        if self.listens() {
            addresses(probe, &self.bind);
        }
        if let Some(path) = &self.unix_path {
            socket(probe, "unix_path", path);
        }
    }
}

impl AdminApiConfig {
    /// Registers the ports that it listens on.
    pub fn listen(&self, has_secret: bool, section: &mut Section<'_>) {
        for (on, key, port, is_secure) in [
            (self.enabled, "port", self.port, false),
            (self.https, "https_port", self.https_port, true),
            (self.ws, "ws_port", self.ws_port, false),
            (self.wss, "wss_port", self.wss_port, true),
        ] {
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            let addresses = match self.reach(is_secure, has_secret) {
                Reach::Loopback => loopback.as_slice(),
                Reach::Bound => self.bind.as_slice(),
            };
            if on {
                section.listens(key, Protocol::Tcp, addresses, port..=port);
            }
        }
    }

    /// Returns the addresses for a port. Without a secret other machines are refused anyway.
    /// Without TLS others could read the secret.
    pub(crate) fn reach(&self, is_secure: bool, has_secret: bool) -> Reach {
        match self.bind.is_empty() && !(is_secure && has_secret) {
            true => Reach::Loopback,
            false => Reach::Bound,
        }
    }

    /// Whether it is served by TCP at all.
    pub fn listens(&self) -> bool {
        self.enabled || self.https || self.ws || self.wss
    }
}

/// The addresses that a port listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The loopback addresses.
    Loopback,
    /// The addresses in `bind`, or all if `bind` is empty.
    Bound,
}
