//! The sockets on which a node waits for others.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::error::StartError;
use crate::config::ClusterConfig;

/// Listens on the addresses of the configuration, or on all.
pub(super) async fn listen(config: &ClusterConfig) -> Result<Vec<TcpListener>, StartError> {
    let port = config.node.port;
    let addresses: Vec<SocketAddr> = match config.node.bind.is_empty() {
        true => vec![SocketAddr::from(([0_u16; 8], port))],
        false => config
            .node
            .bind
            .iter()
            .map(|ip| SocketAddr::new(*ip, port))
            .collect(),
    };
    let mut listeners = Vec::new();
    for address in addresses {
        let bound = match TcpListener::bind(address).await {
            // A machine without IPv6.
            Err(_) if config.node.bind.is_empty() => {
                TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], port))).await
            }
            bound => bound,
        };
        listeners.push(bound.map_err(|error| StartError::Listen { address, error })?);
    }
    Ok(listeners)
}
