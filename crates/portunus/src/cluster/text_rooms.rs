//! The text rooms of all nodes: the messages between their nodes.

use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId};
use portunus_span::{Port, PortEvent};
use portunus_textroom::TextRooms;
use tokio::sync::mpsc;
use tokio::time::interval;

/// The kind of what the messages are about, and its name.
pub(super) const KIND: &str = "directory.textroom";
const NAME: &str = "rooms";

/// How often all rooms are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Carries the messages, for as long as the server runs.
pub(super) async fn run(port: Port, mut events: mpsc::Receiver<PortEvent>, rooms: TextRooms) {
    let (Ok(key), Some(mut changes)) = (port.key(NAME), rooms.begin(port.node().as_str())) else {
        // No part of the server has rooms.
        while events.recv().await.is_some() {}
        return;
    };
    tokio::spawn(send(port, key, rooms.clone()));
    let mut ticks = interval(LOOK);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => take(&rooms, event),
                None => return,
            },
            Ok(()) = changes.changed() => rooms.look(),
            _ = ticks.tick() => rooms.tidy(),
        }
    }
}

/// Sends what the rooms have for other nodes, for as long as the server runs.
async fn send(port: Port, key: HomeKey, rooms: TextRooms) {
    loop {
        let (node, message) = rooms.next_message().await;
        // The names of nodes are those that have sent messages.
        let Ok(node) = NodeId::new(&node) else {
            continue;
        };
        if let Err(error) = port.send(&node, &key, message).await {
            tracing::warn!(%node, %error, "cluster: a message about a text room is left out");
        }
    }
}

fn take(rooms: &TextRooms, event: PortEvent) {
    match event {
        PortEvent::Message { from, body, .. } => rooms.take(from.as_str(), &body),
        PortEvent::Resumed { node } => rooms.resumed(node.as_str()),
        PortEvent::Lost { node } => rooms.lost(node.as_str()),
        _ => {}
    }
}
