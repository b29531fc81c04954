//! Servers on ports of their own, for doors of other protocols.

use std::net::IpAddr;

use axum::Router;
use portunus_core::BudgetKeys;

/// A server on a port of its own. Its connections have the limits and the memory of all clients,
/// and its requests have a [`portunus_core::Requester`] as extension.
#[derive(Debug)]
pub struct ExtraServer {
    /// Its name in metrics.
    pub name: &'static str,
    /// The configuration key of the port.
    pub key: &'static str,
    /// The addresses to listen on. Empty means all.
    pub bind: Vec<IpAddr>,
    /// The port. 0 lets the kernel choose.
    pub port: u16,
    /// The configuration key that asks for TLS, or `None` without TLS.
    pub tls: Option<&'static str>,
    /// The most open connections.
    pub max_connections: usize,
    /// The configuration key of that limit.
    pub limit_key: &'static str,
    /// Its paths.
    pub router: Router,
}

impl ExtraServer {
    /// Returns the keys that limit its connections.
    pub(crate) const fn budget_keys(&self) -> BudgetKeys {
        BudgetKeys {
            whole: self.limit_key,
            address: self.limit_key,
        }
    }
}
