//! Errors at the start of the transports.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why a transport could not start. The texts name the configuration key to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A TCP port could not be bound.
    #[error("cannot listen on {address}/tcp: {error} ({hint} {key})", hint = hint(error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
        /// The configuration key of the port.
        key: &'static str,
    },
    /// The Unix socket could not be bound.
    #[error("cannot listen on the Unix socket {}: {error} (set {key})", path.display())]
    Unix {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
        /// The configuration key of the path.
        key: &'static str,
    },
    /// Another server listens on the Unix socket.
    #[error("the Unix socket {} is in use by another process (set {key})", path.display())]
    UnixInUse {
        /// Its path.
        path: PathBuf,
        /// The configuration key of the path.
        key: &'static str,
    },
    /// TLS to a message broker cannot be set up.
    #[error("cannot connect to the broker of [{section}]: {error}")]
    Broker {
        /// The configuration section.
        section: &'static str,
        /// The reason.
        error: portunus_brokers::TlsError,
    },
    /// HTTPS or secure WebSocket is on, but tls.certificate or tls.key is not given.
    #[error("{0} needs a certificate: set tls.certificate and tls.key")]
    NoCertificate(&'static str),
    /// The certificate or its key could not be used.
    #[error("cannot use the certificate {} with the key {}: {reason}", certificate.display(), key.display())]
    Certificate {
        /// tls.certificate
        certificate: PathBuf,
        /// tls.key
        key: PathBuf,
        /// The reason.
        reason: String,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process uses this port: stop it, or set",
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE: grant it, or set"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address: correct the bind of",
        _ => "see",
    }
}
