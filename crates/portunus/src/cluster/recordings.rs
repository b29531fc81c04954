//! The lists of recordings of all nodes: the messages between their nodes.

use portunus_cluster::{HomeKey, NodeId};
use portunus_recordplay::Recordings;
use portunus_span::{Port, PortEvent};
use tokio::sync::mpsc;

/// The kind of what the messages are about, and its name.
pub(super) const KIND: &str = "directory.recordplay";
const NAME: &str = "recordings";

/// Carries the messages, for as long as the server runs.
pub(super) async fn run(
    port: Port,
    mut events: mpsc::Receiver<PortEvent>,
    recordings: Recordings,
    url: Option<String>,
) {
    let Ok(key) = port.key(NAME) else { return };
    let messages = recordings.join_cluster(port.node().as_str(), url);
    tokio::spawn(send(port, key, messages));
    while let Some(event) = events.recv().await {
        match event {
            PortEvent::Message { from, body, .. } => recordings.take(from.as_str(), &body),
            PortEvent::Resumed { node } => recordings.node_is_there(node.as_str()),
            PortEvent::Lost { node } => recordings.node_lost(node.as_str()),
            _ => {}
        }
    }
}

/// Sends what this node has for others, for as long as the server runs.
async fn send(port: Port, key: HomeKey, mut messages: mpsc::Receiver<(String, Vec<u8>)>) {
    while let Some((node, message)) = messages.recv().await {
        // The names of nodes are those that have sent messages.
        let Ok(node) = NodeId::new(&node) else {
            continue;
        };
        if let Err(error) = port.send(&node, &key, message.into()).await {
            tracing::warn!(%node, %error, "cluster: a list of recordings is left out");
        }
    }
}
