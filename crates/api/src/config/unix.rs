//! The section `[unix]`.

use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

use super::values::{FileMode, socket};

/// The Unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnixConfig {
    /// The path of the socket. `None` disables the transport.
    #[serde(with = "portunus_config::optional")]
    pub path: Option<PathBuf>,
    /// Its type.
    pub kind: UnixKind,
    /// The permissions of the socket's file.
    pub mode: FileMode,
    /// The largest request in bytes. Larger ones get error 454.
    pub max_message: usize,
    /// The most clients.
    pub max_connections: usize,
    /// Whether clients that come and go are published as events.
    pub events: bool,
}

impl Default for UnixConfig {
    fn default() -> Self {
        Self {
            path: None,
            kind: UnixKind::Seqpacket,
            mode: FileMode(0o660),
            // Below Linux's default limit of a packet (net.core.wmem_default, 212992).
            max_message: 128 << 10,
            max_connections: 1_000,
            events: true,
        }
    }
}

impl Configuration for UnixConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let unix: Self = section.keys();
        section.range("max_message", unix.max_message, 1_024..=1 << 20);
        section.range("max_connections", unix.max_connections, 1..=1_000_000);
        unix
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(path) = &self.path {
            socket(probe, "path", path);
        }
    }
}

/// The type of the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnixKind {
    /// SOCK_SEQPACKET: a connection for each client.
    Seqpacket,
    /// SOCK_DGRAM: clients are identified by the paths that they bound.
    Datagram,
}
