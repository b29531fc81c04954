//! The configuration of an endpoint.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::agent::Options;
use crate::flow::Transport;
use crate::message::Host;

/// Where and how an endpoint listens and connects.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The addresses to listen on. TCP, TLS and WebSockets can connect without one, UDP cannot.
    pub listen: Vec<Listen>,
    /// The host for Via and Contact that replaces the addresses listened on, for instance that of a
    /// NAT.
    pub public: Option<Host>,
    /// Certificates.
    pub tls: TlsFiles,
    /// The path of WebSockets to connect to. Empty means `/`.
    pub websocket_path: String,
    /// DNS servers that replace the system's.
    pub name_servers: Vec<SocketAddr>,
    /// Whether sockets are opened only by the first command.
    pub when_needed: bool,
    /// The limits of connections.
    pub limits: Limits,
    /// The options of the agent. `listen` and `public` add to its `locals`.
    pub agent: Options,
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// The transport.
    pub transport: Transport,
    /// The address. Port 0 means any free port. `[::]` takes IPv6 only.
    pub address: SocketAddr,
}

/// PEM files.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// The certificate with its chain, for peers that connect and for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// Authorities to trust beside the system's.
    pub authorities: Option<PathBuf>,
}

/// What bounds connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once. Beyond that, accepted ones are closed, and of ours the one unused for
    /// longest. A quarter is reserved for ours.
    pub connections: usize,
    /// Accepted connections of one address at once.
    pub connections_per_address: usize,
    /// The time limit of connecting, with all handshakes.
    pub connect: Duration,
    /// The time after which an accepted connection without a whole message or keep-alive is closed.
    pub idle: Duration,
    /// The interval of keep-alives on our connections.
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
