//! Messages of data channels: they go to the nodes where somebody receives them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId};
use portunus_media::{DataPayload, MediaPlane, RouteOptions, SourceRef, Tap, TapOptions, Tapped};
use portunus_room::{PersonId, State};
use tokio::task::JoinHandle;

use super::message::RoomMessage;
use super::ours::Change;
use crate::{MessagePace, Port};

/// The start of the names of items that say whose data a node wants.
const WANTS: char = 'd';

/// Returns the participant whose data a node wants by an item, or `None` if the item is something
/// else.
pub(crate) fn wanted_of(item: &str) -> Option<PersonId> {
    item.strip_prefix(WANTS).map(PersonId::from)
}

/// The data channels of a room, between this node and the others.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// Whose data this node wants of others, as they know it.
    wanted: BTreeSet<PersonId>,
    /// The nodes that want the data of participants of this one.
    wanting: BTreeMap<PersonId, BTreeSet<NodeId>>,
    /// The data that crosses.
    crossing: HashMap<PersonId, Crossing>,
}

/// The data of a participant that goes to other nodes.
#[derive(Debug)]
struct Crossing {
    source: SourceRef,
    nodes: BTreeSet<NodeId>,
    task: JoinHandle<()>,
}

impl Drop for Crossing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Data {
    /// Another node wants the data of a participant, or does not want it any more.
    pub(crate) fn set(&mut self, id: &PersonId, node: NodeId, is_wanted: bool) {
        let nodes = self.wanting.entry(id.clone()).or_default();
        match is_wanted {
            true => nodes.insert(node),
            false => nodes.remove(&node),
        };
        if nodes.is_empty() {
            self.wanting.remove(id);
        }
    }

    /// Looks at the room, and lets messages cross that are wanted. Returns what has changed of what
    /// this node wants.
    pub(crate) fn look(
        &mut self,
        state: &State,
        key: &HomeKey,
        port: &Port,
        media: &MediaPlane,
    ) -> Vec<Change> {
        let wanting = &self.wanting;
        self.crossing.retain(|id, crossing| {
            let is_same = state.data_source(id) == Some(crossing.source);
            is_same && wanting.get(id) == Some(&crossing.nodes)
        });
        for (id, nodes) in &self.wanting {
            let Some(source) = state.data_source(id) else {
                continue;
            };
            self.crossing.entry(id.clone()).or_insert_with(|| {
                let tap = TapOptions {
                    capacity: MessagePace::WAITING,
                    ..TapOptions::default()
                };
                let (_, tap) = media.tap(source, RouteOptions::default(), tap);
                let way = Way {
                    id: id.clone(),
                    nodes: nodes.iter().cloned().collect(),
                    key: key.clone(),
                    port: port.clone(),
                };
                Crossing {
                    source,
                    nodes: nodes.clone(),
                    task: tokio::spawn(way.pass(tap)),
                }
            });
        }
        let now = state.wanted_data();
        let item = |id: &PersonId| format!("{WANTS}{id}");
        let new = now.difference(&self.wanted).map(|id| Change::Set {
            item: item(id),
            value: Bytes::new(),
            shorter: Bytes::new(),
        });
        let gone = self.wanted.difference(&now);
        let gone = gone.map(|id| Change::Remove { item: item(id) });
        let changes = new.chain(gone).collect();
        self.wanted = now;
        changes
    }

    /// Ends all that crosses, as the room is no longer used here.
    pub(crate) fn end(&mut self) {
        *self = Data::default();
    }
}

/// The way of a participant's messages.
struct Way {
    id: PersonId,
    nodes: Vec<NodeId>,
    key: HomeKey,
    port: Port,
}

impl Way {
    /// Sends messages, until their source ends.
    async fn pass(self, mut tap: Tap) {
        let mut pace = MessagePace::new(Instant::now());
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
            let message = of_payload(&self.id, &message.payload);
            let body = Bytes::from(message.to_bytes());
            for node in &self.nodes {
                // It fits, since data channels take shorter messages.
                let _ = self.port.send(node, &self.key, body.clone()).await;
            }
        }
    }
}

fn of_payload(id: &PersonId, payload: &DataPayload) -> RoomMessage {
    let (text, bytes) = match payload {
        DataPayload::Text(text) => (Some(text.clone()), None),
        DataPayload::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
    };
    let id = id.to_string();
    RoomMessage::Data { id, text, bytes }
}

/// Returns the content of a message, or `None` if it is malformed.
pub(crate) fn payload(text: Option<String>, bytes: Option<String>) -> Option<DataPayload> {
    match text {
        Some(text) => Some(DataPayload::Text(text)),
        None => STANDARD.decode(bytes?).ok().map(DataPayload::Binary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_the_same_when_they_were_written_and_read() {
        let id = PersonId::from("7".to_owned());
        for sent in [
            DataPayload::Text("hi".to_owned()),
            DataPayload::Binary(vec![0, 255]),
        ] {
            let RoomMessage::Data { text, bytes, .. } = of_payload(&id, &sent) else {
                continue;
            };
            assert_eq!(payload(text, bytes), Some(sent));
        }
        assert_eq!(payload(None, None), None);
        assert_eq!(payload(None, Some("?".to_owned())), None);
        assert_eq!(wanted_of("d7"), Some(id));
        assert_eq!(wanted_of("p7"), None);
    }
}
