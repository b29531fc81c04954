//! What can go wrong when the media plane starts.

use std::io;
use std::net::SocketAddr;

/// Why the media plane could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// A worker's socket could not be had.
    #[error(
        "cannot open the media socket {address}/udp: {error} (is the port in use? set media.port)"
    )]
    Socket {
        /// What was to be bound.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// A worker could not listen for connections.
    #[error(
        "cannot listen for ICE-TCP on {address}/tcp: {error} (is the port in use? set media.ice_tcp_port)"
    )]
    Listener {
        /// What was to be bound.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// There are more workers than TCP ports.
    #[error("media.ice_tcp_port {port} leaves no port for worker {index}: choose a lower one")]
    TcpPort {
        /// The port of worker 0.
        port: u16,
        /// The worker without one.
        index: usize,
    },
    /// There are more workers than ports.
    #[error("media.port {port} leaves no port for worker {index}: choose a lower one")]
    Port {
        /// The port of worker 0.
        port: u16,
        /// The worker without one.
        index: usize,
    },
    /// The certificate could not be made or read.
    #[error("cannot use the DTLS certificate: {0}")]
    Certificate(String),
    /// A worker thread could not be started.
    #[error("cannot start a media worker: {0}")]
    Thread(io::Error),
    /// The system gave no address, and none is configured.
    #[error("no usable network address was found: set media.bind or media.announced")]
    NoAddress,
}
