//! Errors at the start of the media plane.

use std::io;
use std::net::SocketAddr;

/// Why the media plane could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The socket of a worker could not be opened.
    #[error(
        "cannot open the media socket {address}/udp: {error} (is the port in use? set media.port)"
    )]
    Socket {
        /// The address to bind.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// A worker could not listen for connections.
    #[error(
        "cannot listen for ICE-TCP on {address}/tcp: {error} (is the port in use? set media.ice_tcp_port)"
    )]
    Listener {
        /// The address to bind.
        address: SocketAddr,
        /// The system's error.
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
    /// The socket of a worker for links to other nodes could not be opened.
    #[error(
        "cannot open the socket {address}/udp for links to other nodes: {error} (is the port in use?)"
    )]
    NodeLinkSocket {
        /// The address to bind.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// There are more workers than ports for links to other nodes.
    #[error(
        "port {port} for links to other nodes leaves none for worker {index}: choose a lower one"
    )]
    NodeLinkPort {
        /// The port of worker 0.
        port: u16,
        /// The worker without one.
        index: usize,
    },
    /// The certificate could not be generated or read.
    #[error("cannot use the DTLS certificate: {0}")]
    Certificate(String),
    /// A worker thread could not be started.
    #[error("cannot start a media worker: {0}")]
    Thread(io::Error),
    /// The system has no usable address, and none is configured.
    #[error("no usable network address was found: set media.bind or media.announced")]
    NoAddress,
}
