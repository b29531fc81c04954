//! The audio rooms of all nodes: each node tells the others of its own, and carries the messages
//! about clients in rooms of other nodes.
//!
//! All nodes have one thing open, the directory. Its items are the rooms, and the run of each node:
//! the loss of the latter says that a node is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portunus_audiobridge::{ClusterRooms, OtherNodes, OwnRoom, RoomRecord};
use portunus_cluster::{HomeKey, NodeId};
use portunus_core::LogGate;
use portunus_media::SourceRef;
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};
use portunus_span::{Port, PortEvent};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, sleep_until};

/// The kind of the directory, and its name.
pub(super) const KIND: &str = "directory.audiobridge";
const NAME: &str = "rooms";

/// The item with the run of a node, and the start of the names of those of rooms.
const RUN: &str = "run";
const ROOM: &str = "room/";

/// How often all rooms are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The least time between two looks because of changes.
const SPACING: Duration = Duration::from_millis(50);

/// The longest id of a room that other nodes can show, in bytes.
const MAX_ID: usize = 500;

/// The messages that wait for the cluster. The rooms send again those that are lost.
const MESSAGES: usize = 8_192;

/// The messages after which there is a pause: a link is reset where 1,000 wait.
const BURST: usize = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// The other nodes.
#[derive(Debug)]
struct Others {
    port: Port,
    messages: mpsc::Sender<(NodeId, Bytes)>,
    lost: LogGate,
}

impl OtherNodes for Others {
    fn send(&self, node: &str, message: Vec<u8>) {
        let Ok(node) = NodeId::new(node) else { return };
        let sent = self.messages.try_send((node, message.into()));
        if sent.is_err()
            && let Some(suppressed) = self.lost.open()
        {
            tracing::warn!(suppressed, "cluster: too many messages of audio rooms wait");
        }
    }

    fn offer(&self, source: SourceRef, description: SourceDescription) -> Offer {
        self.port.offer(source, description)
    }

    fn withdraw(&self, source: SourceId) {
        self.port.withdraw(source);
    }

    fn sources(&self, node: &str) -> Arc<dyn Sources> {
        match NodeId::new(node) {
            Ok(node) => self.port.sources(&node),
            Err(_) => Arc::new(Nothing),
        }
    }
}

/// The sources of a node that there cannot be.
#[derive(Debug)]
struct Nothing;

impl Sources for Nothing {
    fn take(&self, _: &Offer) -> Option<portunus_media::IngestId> {
        None
    }

    fn release(&self, _: portunus_media::IngestId) {}
}

/// Keeps the directory and carries messages, for as long as the server runs.
pub(super) async fn run(port: Port, mut events: mpsc::Receiver<PortEvent>, rooms: ClusterRooms) {
    let Ok(key) = port.key(NAME) else { return };
    let (messages, waiting) = mpsc::channel(MESSAGES);
    let others = Others {
        port: port.clone(),
        messages,
        lost: LogGate::default(),
    };
    rooms.join_cluster(port.node().as_str(), Arc::new(others));
    tokio::spawn(carry(port.clone(), key.clone(), waiting));
    let mut told = open(&port, &key, &rooms).await;
    let mut ticks = interval(LOOK);
    let mut due: Option<Instant> = None;
    let mut looked = Instant::now();
    loop {
        let pause = due.unwrap_or(looked);
        tokio::select! {
            event = events.recv() => match event {
                // The directory has no end. All is told again.
                Some(PortEvent::Ended { .. }) => told = open(&port, &key, &rooms).await,
                Some(event) => take(&rooms, event),
                None => return,
            },
            () = rooms.changed(), if due.is_none() => due = Some(looked + SPACING),
            () = sleep_until(pause), if due.is_some() => {
                look(&port, &key, &rooms, &mut told).await;
                (due, looked) = (None, Instant::now());
            }
            _ = ticks.tick() => {
                rooms.tick();
                look(&port, &key, &rooms, &mut told).await;
            }
        }
    }
}

async fn carry(port: Port, key: HomeKey, mut waiting: mpsc::Receiver<(NodeId, Bytes)>) {
    let mut left = BURST;
    while let Some((node, message)) = waiting.recv().await {
        left = left.saturating_sub(1);
        if left == 0 {
            sleep(PAUSE).await;
            left = BURST;
        }
        if let Err(error) = port.send(&node, &key, message).await {
            tracing::warn!(%node, %error, "cluster: a message of an audio room is left out");
        }
    }
}

/// What the others were told of the rooms of this node.
type Told = BTreeMap<String, RoomRecord>;

/// Opens the directory, in which nothing is told yet but that this node runs.
async fn open(port: &Port, key: &HomeKey, rooms: &ClusterRooms) -> Told {
    port.open(key).await;
    let run = rooms.run().to_string();
    // It is short.
    let _ = port.set(key, RUN, run.into()).await;
    Told::new()
}

/// Tells the others what has changed.
async fn look(port: &Port, key: &HomeKey, rooms: &ClusterRooms, told: &mut Told) {
    let own = rooms.own().into_iter().filter(|it| it.id.len() <= MAX_ID);
    let own: Told = own.map(|OwnRoom { id, record }| (id, record)).collect();
    for id in told.keys().filter(|id| !own.contains_key(*id)) {
        port.remove(key, &format!("{ROOM}{id}")).await;
    }
    for (id, record) in &own {
        if told.get(id) == Some(record) {
            continue;
        }
        let item = format!("{ROOM}{id}");
        if let Err(error) = port.set(key, &item, record.to_value().into()).await {
            tracing::warn!(id, "an audio room is not shown on other nodes: {error}");
            port.remove(key, &item).await;
        }
    }
    *told = own;
}

fn take(rooms: &ClusterRooms, event: PortEvent) {
    match event {
        PortEvent::Item {
            node, item, value, ..
        } => match (item.strip_prefix(ROOM), value) {
            (Some(id), Some(value)) => match RoomRecord::parse(&value) {
                Ok(record) => rooms.set(node.as_str(), id, record),
                Err(error) => tracing::warn!(%node, id, "cluster: {error}"),
            },
            (Some(id), None) => rooms.remove(node.as_str(), id),
            (None, value) if item == RUN => take_run(rooms, &node, value),
            // Of a later version.
            (None, _) => {}
        },
        PortEvent::Message { from, body, .. } => rooms.take(from.as_str(), &body),
        PortEvent::Linked { node } => rooms.linked(node.as_str()),
        _ => {}
    }
}

fn take_run(rooms: &ClusterRooms, node: &NodeId, value: Option<Bytes>) {
    let Some(value) = value else {
        return rooms.node_lost(node.as_str());
    };
    let run = std::str::from_utf8(&value).ok();
    match run.and_then(|run| run.parse().ok()) {
        Some(run) => rooms.node_is_there(node.as_str(), run),
        None => tracing::warn!(%node, "cluster: the run of a node is no number"),
    }
}
