//! A client of another node, as a room of this one sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::ClusterRooms;
use super::message::{FarMessage, StayId};

/// A client of another node. Its node passes on what it is sent.
#[derive(Debug, Clone)]
pub(crate) struct FarClient {
    pub(crate) cluster: ClusterRooms,
    node: Arc<str>,
    stay: StayId,
}

impl FarClient {
    pub(crate) fn new(cluster: ClusterRooms, node: &str, stay: StayId) -> Self {
        FarClient {
            cluster,
            node: node.into(),
            stay,
        }
    }

    /// The name of its node.
    pub(crate) fn node(&self) -> &Arc<str> {
        &self.node
    }

    /// The number of its stay at its node.
    pub(crate) fn stay(&self) -> StayId {
        self.stay
    }

    /// Sends an event to the client.
    pub(crate) fn push(&self, event: Value) {
        let stays = vec![self.stay];
        self.send(&FarMessage::Tell { stays, event });
    }

    /// Ends its stay. It loses its PeerConnection.
    pub(crate) fn close(&self) {
        self.cluster.forget_stay(&self.node, self.stay);
        self.send(&FarMessage::Closed { stay: self.stay });
    }

    /// Sends a message to its node.
    pub(crate) fn send(&self, message: &FarMessage) {
        self.cluster.send(&self.node, message);
    }
}

/// Sends an event to clients of other nodes: once to each node.
pub(crate) fn send_to_all<'a>(clients: impl Iterator<Item = &'a FarClient>, event: &Value) {
    let mut nodes: BTreeMap<&str, (&FarClient, Vec<StayId>)> = BTreeMap::new();
    for client in clients {
        let (_, stays) = nodes.entry(&client.node).or_insert((client, Vec::new()));
        stays.push(client.stay);
    }
    for (client, stays) in nodes.into_values() {
        let event = event.clone();
        client.send(&FarMessage::Tell { stays, event });
    }
}
