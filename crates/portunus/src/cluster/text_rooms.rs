//! The text rooms of all nodes: each node tells the others of its own, and their members talk to
//! each other.
//!
//! All nodes have one thing open, the directory. Its items are the rooms, and messages about it are
//! those between the nodes of members and the homes of rooms.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId};
use portunus_span::{Port, PortEvent};
use portunus_textroom::{OwnRoom, TextRooms};
use tokio::sync::mpsc;
use tokio::time::interval;

/// The kind of the directory, and its name.
pub(super) const KIND: &str = "directory.textroom";
const NAME: &str = "rooms";

/// How often all rooms are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The longest id of a room that other nodes can show, in bytes.
const MAX_ID: usize = 512;

/// Keeps the directory, for as long as the server runs.
pub(super) async fn run(port: Port, mut events: mpsc::Receiver<PortEvent>, rooms: TextRooms) {
    let (Ok(key), Some(mut changes)) = (port.key(NAME), rooms.begin(port.node().as_str())) else {
        // No part of the server has rooms, so nothing is opened.
        while events.recv().await.is_some() {}
        return;
    };
    port.open(&key).await;
    tokio::spawn(send(port.clone(), key.clone(), rooms.clone()));
    let mut told = Told::default();
    let mut ticks = interval(LOOK);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(PortEvent::Ended { .. }) => {
                    // The directory has no end. All is told again.
                    port.open(&key).await;
                    told = Told::default();
                }
                Some(event) => take(&rooms, event),
                None => return,
            },
            Ok(()) = changes.changed() => told.look(&port, &key, rooms.own()).await,
            _ = ticks.tick() => {
                rooms.tidy();
                told.look(&port, &key, rooms.own()).await;
            }
        }
    }
}

/// Sends what the rooms have for other nodes, for as long as the server runs.
async fn send(port: Port, key: HomeKey, rooms: TextRooms) {
    loop {
        let (node, message) = rooms.next_message().await;
        // The names of nodes are those that have told of rooms, or sent messages.
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
        PortEvent::Item {
            node,
            item,
            value: Some(value),
            ..
        } => rooms.set(node.as_str(), &item, &value),
        PortEvent::Item {
            node,
            item,
            value: None,
            ..
        } => rooms.remove(node.as_str(), &item),
        PortEvent::Message { from, body, .. } => rooms.take(from.as_str(), &body),
        PortEvent::Resumed { node } => rooms.resumed(node.as_str()),
        PortEvent::Lost { node } => rooms.lost(node.as_str()),
        _ => {}
    }
}

/// What the others were told of the rooms of this node.
#[derive(Debug, Default)]
struct Told(BTreeMap<String, Bytes>);

impl Told {
    /// Tells the others what has changed.
    async fn look(&mut self, port: &Port, key: &HomeKey, own: Vec<OwnRoom>) {
        let own = own.into_iter().filter(|room| room.id.len() <= MAX_ID);
        let own: BTreeMap<_, _> = own.map(|room| (room.id, room.value)).collect();
        let before = std::mem::take(&mut self.0);
        for id in before.keys().filter(|id| !own.contains_key(*id)) {
            port.remove(key, id).await;
        }
        for (id, value) in own {
            if before.get(&id) != Some(&value)
                && let Err(error) = port.set(key, &id, value.clone()).await
            {
                tracing::warn!(id, "a text room is not shown on other nodes: {error}");
                port.remove(key, &id).await;
            }
            self.0.insert(id, value);
        }
    }
}
