//! The edges of a node: NATS as its bus, connections by TLS as its links, and the task that drives
//! it.

mod bus;
mod credentials;
mod driver;
mod error;
mod event_log;
mod expiry;
mod join;
mod link;
mod listeners;
mod metrics;
mod refusals;
mod revocations;
mod tls;

pub use driver::{Cluster, Facts};
pub use error::StartError;
pub use join::{JoinError, join, renew};
