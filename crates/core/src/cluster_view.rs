//! What the core knows of the cluster that the server is a node of.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::Object;

/// The state of the cluster, if it can be had.
pub type ClusterStatus<'a> = Pin<Box<dyn Future<Output = Option<Value>> + Send + 'a>>;

/// Another node of the cluster, to which clients may go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherNode {
    /// Its name.
    pub name: String,
    /// Where it is; may be empty.
    pub region: String,
    /// The URL of its HTTP server.
    pub url: Option<String>,
    /// The URL of its WebSocket server.
    pub websocket_url: Option<String>,
    /// The URL of its server for LiveKit's clients.
    pub livekit_url: Option<String>,
}

impl OtherNode {
    /// Returns the members that tell a client of the Janus API where to go.
    pub(crate) fn to_object(&self) -> Object {
        Object::new()
            .with("node", self.name.as_str())
            .with_some("url", self.url.as_deref())
            .with_some("websocket_url", self.websocket_url.as_deref())
    }
}

/// The node of a cluster that this server is.
pub trait ClusterView: fmt::Debug + Send + Sync {
    /// Returns why the node is degraded, or `None` if it is not. It serves clients all the same.
    fn degraded(&self) -> Option<String>;

    /// Returns the URL of the node with the least load, which may be this one. `None` if it is not
    /// known.
    fn least_loaded(&self) -> Option<String>;

    /// Returns the other nodes that take clients, the least loaded first. Of those with about the
    /// same load another one is first each time.
    fn others(&self) -> Vec<OtherNode>;

    /// Returns the node to which new clients of plain HTTP should go from here, because this one is
    /// busy and that one is clearly less so.
    fn relief(&self) -> Option<OtherNode>;

    /// Returns the nodes, links and homes, for people and programs.
    fn status(&self) -> ClusterStatus<'_>;
}
