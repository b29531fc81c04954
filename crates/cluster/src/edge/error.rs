//! The reasons why a node does not start.

use std::io;
use std::net::SocketAddr;

use portunus_brokers::nats::ClientError;
use tokio_rustls::rustls;

use crate::authority::AuthorityError;
use crate::id::{IdError, NodeId};

/// The reason why a node does not start. The texts name the key.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no certificate that can be used.
    #[error(
        "cluster.folder: {0}; make a cluster by `portunus cluster init`, or join one by `portunus \
         cluster join`"
    )]
    Authority(#[from] AuthorityError),
    /// A list of revoked certificates cannot be used.
    #[error("the revoked certificates in cluster.folder, or of cluster.revoked: {0}")]
    Revocations(#[source] AuthorityError),
    /// The certificate is for another name.
    #[error("cluster.name: the certificate in cluster.folder is for {0}")]
    OtherName(NodeId),
    /// The name is none.
    #[error("cluster.name: {0}")]
    Name(#[from] IdError),
    /// TLS cannot be set up.
    #[error("cluster.folder: {0}")]
    Tls(#[from] rustls::Error),
    /// The verifier of clients' certificates cannot be made.
    #[error("cluster.folder: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// The port cannot be used.
    #[error("cluster.port: cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The client of the bus cannot be made.
    #[error("cluster.{0}")]
    Bus(#[from] ClientError),
    /// The address of the bus is none.
    #[error("cluster.bus: {0}")]
    Address(String),
}
