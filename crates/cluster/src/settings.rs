//! The settings of a node's state machine.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, NodeId};
use crate::wire::VersionRange;

/// The settings of a [`crate::Node`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// Its name.
    pub id: NodeId,
    /// Its run.
    pub epoch: Epoch,
    /// The name of the cluster. Nodes of others are refused.
    pub cluster: String,
    /// The versions of the control protocol that it speaks.
    pub versions: VersionRange,
    /// Where it is.
    pub region: String,
    /// The addresses of its control port.
    pub control: Vec<SocketAddr>,
    /// The addresses of its media links.
    pub relay: Vec<SocketAddr>,
    /// Where clients reach it.
    pub urls: Urls,
    /// The SHA-256 of its certificate, in hexadecimal.
    pub fingerprint: String,
    /// What becomes of new rooms while the bus is away.
    pub without_bus: WithoutBus,
}

/// Where clients reach a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Urls {
    /// Its HTTP server.
    pub http: Option<String>,
    /// Its WebSocket server.
    pub websocket: Option<String>,
    /// Its server for LiveKit's clients.
    pub livekit: Option<String>,
}

/// What becomes of new rooms while the bus is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WithoutBus {
    /// They are refused, so that no two nodes make one of a name.
    #[default]
    Refuse,
    /// They are opened on this node, and yield to one of the same name when the bus is back.
    Local,
}
