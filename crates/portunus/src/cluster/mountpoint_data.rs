//! The messages of mountpoints' data streams: they go to the nodes where somebody watches.
//!
//! All nodes have one thing open. Its items say which node wants the messages of which mountpoint.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId};
use portunus_media::{
    DataPayload, MediaPlane, RouteOptions, SourceRef, Tap, TapOptions, Tapped, TappedMessage,
};
use portunus_span::{MessagePace, Port, PortEvent};
use portunus_streaming::{Mountpoints, OwnMountpoint, StreamMessage};
use tokio::task::JoinHandle;

/// The name of the thing.
const NAME: &str = "data";

/// The most mountpoints whose messages one node can want.
const MAX_WANTED: usize = 10_000;

/// The messages of mountpoints, between this node and the others.
#[derive(Debug)]
pub(super) struct MountpointData {
    key: HomeKey,
    port: Port,
    media: MediaPlane,
    /// The mountpoints whose messages this node wants, each with its node, as the others know it.
    wanted: BTreeMap<String, String>,
    /// The mountpoints of this node whose messages others want.
    wanting: HashMap<NodeId, HashSet<String>>,
    crossing: HashMap<StreamWay, Crossing>,
}

/// A data stream of this node, and the node that its messages go to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StreamWay {
    mountpoint: String,
    mid: String,
    to: NodeId,
}

/// The messages of a stream that go to a node.
#[derive(Debug)]
struct Crossing {
    source: SourceRef,
    task: JoinHandle<()>,
}

impl Drop for Crossing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MountpointData {
    /// Opens the thing. Returns `None` if its name is no key.
    pub(super) async fn open(port: Port, media: MediaPlane) -> Option<Self> {
        let key = port.key(NAME).ok()?;
        port.open(&key).await;
        Some(MountpointData {
            key,
            port,
            media,
            wanted: BTreeMap::new(),
            wanting: HashMap::new(),
            crossing: HashMap::new(),
        })
    }

    /// Returns whether an event is about the messages, and not about the mountpoints.
    pub(super) fn is_about(&self, event: &PortEvent) -> bool {
        match event {
            PortEvent::Item { key, .. }
            | PortEvent::Message { key, .. }
            | PortEvent::Ended { key } => *key == self.key,
            PortEvent::Resumed { .. } => true,
            _ => false,
        }
    }

    /// Takes such an event.
    pub(super) async fn take(&mut self, event: PortEvent, mountpoints: &Mountpoints) {
        match event {
            PortEvent::Item {
                node, item, value, ..
            } => {
                let own = self.port.node().as_str().as_bytes();
                let is_wanted = value.is_some_and(|node| node == own);
                self.set(node, item, is_wanted);
                self.cross(&mountpoints.own());
            }
            PortEvent::Message { from, body, .. } => match StreamMessage::parse(&body) {
                Ok(message) => mountpoints.give(from.as_str(), &message),
                Err(error) => tracing::warn!(%from, "cluster: {error}"),
            },
            PortEvent::Ended { .. } => {
                // The thing has no end. All is told again.
                self.port.open(&self.key).await;
                self.wanted.clear();
                self.wanting.clear();
                self.crossing.clear();
            }
            PortEvent::Resumed { node } => {
                // Messages may be lost: the last one is sent again.
                self.crossing.retain(|way, _| way.to != node);
                self.cross(&mountpoints.own());
            }
            _ => {}
        }
    }

    fn set(&mut self, node: NodeId, mountpoint: String, is_wanted: bool) {
        let of_node = self.wanting.entry(node.clone()).or_default();
        if !is_wanted {
            of_node.remove(&mountpoint);
        } else if of_node.len() < MAX_WANTED {
            of_node.insert(mountpoint);
        } else {
            tracing::warn!(%node, "cluster: a node wants the messages of too many mountpoints");
        }
        if of_node.is_empty() {
            self.wanting.remove(&node);
        }
    }

    /// Lets messages of this node cross that are wanted, and tells what this node wants.
    pub(super) async fn look(&mut self, own: &[OwnMountpoint], mountpoints: &Mountpoints) {
        self.cross(own);
        let wanted = mountpoints.wanted_data();
        for (id, node) in &wanted {
            if self.wanted.get(id) != Some(node) {
                let value = Bytes::from(node.clone());
                // It fits: names of nodes are short.
                let _ = self.port.set(&self.key, id, value).await;
            }
        }
        for id in self.wanted.keys().filter(|id| !wanted.contains_key(*id)) {
            self.port.remove(&self.key, id).await;
        }
        self.wanted = wanted;
    }

    fn cross(&mut self, own: &[OwnMountpoint]) {
        let mut due = HashMap::new();
        for mountpoint in own.iter().filter(|it| !it.data.is_empty()) {
            let wanting = self.wanting.iter();
            for (node, _) in wanting.filter(|(_, ids)| ids.contains(&mountpoint.id)) {
                for data in &mountpoint.data {
                    let way = StreamWay {
                        mountpoint: mountpoint.id.clone(),
                        mid: data.mid.clone(),
                        to: node.clone(),
                    };
                    due.insert(way, data.source);
                }
            }
        }
        self.crossing
            .retain(|way, crossing| due.get(way) == Some(&crossing.source));
        for (way, source) in due {
            if self.crossing.contains_key(&way) {
                continue;
            }
            let options = TapOptions {
                capacity: MessagePace::WAITING,
                from_last: true,
                ..TapOptions::default()
            };
            let since = Instant::now();
            let (_, tap) = self.media.tap(source, RouteOptions::default(), options);
            let (port, key) = (self.port.clone(), self.key.clone());
            let task = tokio::spawn(pass(way.clone(), tap, since, (port, key)));
            self.crossing.insert(way, Crossing { source, task });
        }
    }
}

/// Sends messages, until their source ends.
async fn pass(way: StreamWay, mut tap: Tap, since: Instant, (port, key): (Port, HomeKey)) {
    let mut pace = MessagePace::new(since);
    while let Some(tapped) = tap.recv().await {
        let Tapped::Message(message) = tapped else {
            continue;
        };
        let size = match &message.payload {
            DataPayload::Text(text) => text.len(),
            DataPayload::Binary(bytes) => bytes.len(),
        };
        if !pace.admits(size, Instant::now()) {
            continue;
        }
        let message = way.message(message, since);
        // It fits, since streams have messages of 1,800 bytes at most.
        let _ = port.send(&way.to, &key, message.to_bytes().into()).await;
    }
}

impl StreamWay {
    /// Returns a message for the other node, which has asked `since` then.
    fn message(&self, message: TappedMessage, since: Instant) -> StreamMessage {
        StreamMessage {
            mountpoint: self.mountpoint.clone(),
            mid: self.mid.clone(),
            is_kept: message.arrival < since,
            payload: message.payload,
        }
    }
}
