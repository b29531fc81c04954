//! The state of a node, for people.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, NodeId};
use crate::key::HomeKey;
use crate::record::{Load, NodeState};
use crate::settings::Urls;

/// The state of a node, and what it knows of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// This node.
    pub node: NodeId,
    /// Its cluster.
    pub cluster: String,
    /// Whether the bus is connected.
    pub bus_connected: bool,
    /// Whether the bus has confirmed this node within 10 s.
    pub confirmed: bool,
    /// Whether this node has left the cluster, because another process has its name.
    pub outside: bool,
    /// How many days the certificate of this node is valid. Negative after its end.
    pub certificate_days: i64,
    /// All nodes, this one among them.
    pub nodes: Vec<NodeStatus>,
    /// The links of this node.
    pub links: Vec<LinkStatus>,
    /// The homes that the bus has, and those that this node has open.
    pub homes: Vec<HomeStatus>,
    /// The number of homes. At most 1,000 are listed.
    pub home_count: usize,
    /// What disagrees, a sentence each.
    pub disagreements: Vec<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub node: NodeId,
    /// Its run.
    pub epoch: Epoch,
    /// Whether it takes new clients.
    pub state: NodeState,
    /// Where it is.
    pub region: String,
    /// The addresses of its control port.
    pub control: Vec<SocketAddr>,
    /// The SHA-256 of its certificate, in hexadecimal.
    pub fingerprint: String,
    /// Its load.
    pub load: Load,
    /// How long ago its entry was written, in ms, as far as this node has seen.
    pub age_ms: u64,
}

/// Another node, to which clients may go.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherNode {
    /// Its name.
    pub node: NodeId,
    /// Where it is.
    pub region: String,
    /// The share of a core that its busiest media worker uses, 0 to 1.
    pub load: f32,
    /// Where clients reach it.
    pub urls: Urls,
}

/// A link of this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The other node.
    pub node: NodeId,
    /// `up`, `suspect`, `connecting` or `down`.
    pub state: String,
    /// The node that carries the frames of the link, if there is no direct connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<NodeId>,
    /// The version that is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The round trip on the control connection, in µs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// Messages and items that wait to be sent.
    pub queued: usize,
}

/// A home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HomeStatus {
    /// The kind and the name, for people.
    pub what: String,
    /// Of what.
    pub key: HomeKey,
    /// The home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Since which revision.
    pub revision: u64,
    /// Whether this node has it open.
    pub open: bool,
    /// Elsewhere: whether the home has registered this node.
    pub registered: bool,
    /// At the home: which nodes have registered.
    pub members: Vec<NodeId>,
    /// How many items of all nodes this node knows.
    pub items: usize,
}
