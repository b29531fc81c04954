//! What an endpoint is told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::agent::Options;
use crate::flow::Transport;
use crate::message::Host;

/// Where and how an endpoint listens and connects.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Where to listen. TCP, TLS and WebSockets can be connected out without; UDP can not.
    pub listen: Vec<Listen>,
    /// What is written into Via and Contact in place of the addresses listened on, for instance that of a NAT.
    pub public: Option<Host>,
    /// Certificates.
    pub tls: TlsFiles,
    /// The path of WebSockets that we connect to. Empty: `/`.
    pub websocket_path: String,
    /// DNS servers in place of the system's.
    pub name_servers: Vec<SocketAddr>,
    /// Whether nothing is listened on before the first command.
    pub when_needed: bool,
    /// What bounds connections.
    pub limits: Limits,
    /// What the agent is told. To its `locals` those are added that `listen` and `public` make.
    pub agent: Options,
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// What is spoken there.
    pub transport: Transport,
    /// The address. Port 0 is any that is free. `[::]` takes IPv6 only.
    pub address: SocketAddr,
}

/// PEM files.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// The certificate that is shown, with its chain: to those who connect, and to servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// Authorities that are trusted beside the system's.
    pub authorities: Option<PathBuf>,
}

/// What bounds connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once. Beyond, accepted ones are closed, and of ours the one unused for longest. A quarter is kept for ours.
    pub connections: usize,
    /// Accepted connections of one address at once.
    pub connections_per_address: usize,
    /// How long connecting may take, with all handshakes.
    pub connect: Duration,
    /// For how long an accepted connection may bring no whole message or keep-alive.
    pub idle: Duration,
    /// How often a connection that we made is kept alive.
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: 512,
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(900),
            keep_alive: Duration::from_secs(95),
        }
    }
}
