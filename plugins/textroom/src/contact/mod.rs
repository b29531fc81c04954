//! The way to a guest, who is a client of this node or of another one.

mod message;
mod outbox;

use std::sync::Arc;

use portunus_core::media::{DataMessage, DataPayload};
use portunus_core::{Handle, HandleId};

pub(crate) use message::{FarAsker, Name, News, Presence, RoomMessage};
pub(crate) use outbox::Outbox;

/// The name of a node.
pub(crate) type NodeName = Arc<str>;

/// The label of the data channel for all messages. The server opens it if the client has not.
const LABEL: &str = "JanusDataChannel";

/// Sends a message to a client. It is lost without a PeerConnection.
pub(crate) fn send(handle: &Handle, text: &str) {
    handle.send_data(DataMessage {
        label: LABEL.to_owned(),
        protocol: String::new(),
        payload: DataPayload::Text(text.to_owned()),
    });
}

/// The way to a guest.
#[derive(Debug, Clone)]
pub(crate) enum Contact {
    /// A client of this node.
    Here(Handle),
    /// A client of another node.
    There(FarGuest),
}

/// Whom a [`Contact`] leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ContactId {
    Here(HandleId),
    /// By its node and the number of its handle there.
    There(NodeName, u64),
}

/// A client of another node.
#[derive(Debug, Clone)]
pub(crate) struct FarGuest {
    pub(crate) node: NodeName,
    /// The number of its handle at that node.
    pub(crate) guest: u64,
    pub(crate) outbox: Arc<Outbox>,
}

impl Contact {
    pub(crate) fn id(&self) -> ContactId {
        match self {
            Contact::Here(handle) => ContactId::Here(handle.id()),
            Contact::There(far) => ContactId::There(far.node.clone(), far.guest),
        }
    }

    /// Returns the handle of a client of this node.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Contact::Here(handle) => Some(handle),
            Contact::There(_) => None,
        }
    }

    /// Returns the node of a client of another node.
    pub(crate) fn node(&self) -> Option<&NodeName> {
        match self {
            Contact::Here(_) => None,
            Contact::There(far) => Some(&far.node),
        }
    }

    /// Sends messages to the client alone.
    pub(crate) fn send_all<'a>(&self, texts: impl Iterator<Item = &'a str>) {
        match self {
            Contact::Here(handle) => texts.for_each(|text| send(handle, text)),
            Contact::There(far) => {
                let texts: Vec<_> = texts.map(str::to_owned).collect();
                if !texts.is_empty() {
                    far.tell(&RoomMessage::Whispered {
                        guest: far.guest,
                        texts,
                    });
                }
            }
        }
    }

    /// Sends a message to the client alone.
    pub(crate) fn send(&self, text: &str) {
        self.send_all(std::iter::once(text));
    }

    /// Sends a message to all members of a room at the node of the client.
    pub(crate) fn publish(&self, room: &str, message: &str, news: &News) {
        if let Contact::There(far) = self {
            far.tell(&RoomMessage::Published {
                room: room.to_owned(),
                message: message.to_owned(),
                news: news.clone(),
            });
        }
    }

    /// Tells the node of the client the history of a room.
    pub(crate) fn tell_history<'a>(&self, room: &str, texts: impl Iterator<Item = &'a str>) {
        if let Contact::There(far) = self {
            far.tell(&RoomMessage::History {
                room: room.to_owned(),
                texts: texts.map(str::to_owned).collect(),
            });
        }
    }

    /// Tells the node of the client all members of a room.
    pub(crate) fn tell_names(&self, room: &str, names: Vec<Name>) {
        if let Contact::There(far) = self {
            let room = room.to_owned();
            far.tell(&RoomMessage::Names { room, names });
        }
    }

    /// Tells the node of the client that the client is a member of a room now.
    pub(crate) fn entered(&self, room: &str, name: &Name) {
        if let Contact::There(far) = self {
            far.tell(&RoomMessage::Entered {
                room: room.to_owned(),
                guest: far.guest,
                name: name.clone(),
            });
        }
    }

    /// Tells the node of the client that the client is no member of a room any more.
    pub(crate) fn left(&self, room: &str) {
        if let Contact::There(far) = self {
            far.tell(&RoomMessage::Left {
                room: room.to_owned(),
                guest: far.guest,
            });
        }
    }
}

impl FarGuest {
    fn tell(&self, message: &RoomMessage) {
        self.outbox.push(&self.node, message);
    }
}
