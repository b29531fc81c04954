//! What the core knows of the cluster that the server is a node of.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

/// The state of the cluster, if it can be had.
pub type ClusterStatus<'a> = Pin<Box<dyn Future<Output = Option<Value>> + Send + 'a>>;

/// The node of a cluster that this server is.
pub trait ClusterView: fmt::Debug + Send + Sync {
    /// Returns why the node is degraded, or `None` if it is not. It serves clients all the same.
    fn degraded(&self) -> Option<String>;

    /// Returns the URL of the node with the least load, which may be this one. `None` if it is not
    /// known.
    fn least_loaded(&self) -> Option<String>;

    /// Returns the nodes, links and homes, for people and programs.
    fn status(&self) -> ClusterStatus<'_>;
}
