//! What a node tells its server.

use std::net::SocketAddr;

use bytes::Bytes;

use crate::bus::BusRequest;
use crate::id::{Epoch, NodeId, Revision};
use crate::key::HomeKey;
use crate::links::{CloseReason, ConnId};
use crate::record::NodeRecord;
use crate::wire::VersionRange;

/// Something that the edges have to do, or that the server has to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A request to the bus.
    Bus(BusRequest),
    /// Connect to a node. The answer is [`crate::LinkEvent::Opened`] or
    /// [`crate::LinkEvent::Failed`].
    Dial {
        /// The node, which has to show a certificate with this name.
        node: NodeId,
        /// Its addresses, to be tried in this order.
        addresses: Vec<SocketAddr>,
    },
    /// Close a connection.
    Close {
        /// The connection.
        conn: ConnId,
        /// Why.
        reason: CloseReason,
    },
    /// Something for the server.
    Event(Event),
}

/// Something that the server has to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Where something that the server has open is at home, at first and after each change.
    Home {
        /// What.
        key: HomeKey,
        /// Where.
        place: Place,
    },
    /// The home of something has accepted this node's registration, and has all its items.
    Accepted {
        /// What.
        key: HomeKey,
    },
    /// The home has ended it. It is no longer open here.
    Ended {
        /// What.
        key: HomeKey,
    },
    /// At the home: a node has registered.
    Registered {
        /// For what.
        key: HomeKey,
        /// Who.
        node: NodeId,
    },
    /// At the home: a registered node has gone.
    Unregistered {
        /// For what.
        key: HomeKey,
        /// Who.
        node: NodeId,
    },
    /// Another node has an item: a member, a source.
    Item {
        /// Of what.
        key: HomeKey,
        /// Whose.
        node: NodeId,
        /// Its name.
        item: String,
        /// Its value, or `None` if it is gone.
        value: Option<Bytes>,
    },
    /// A message between a home and a registered node.
    Message {
        /// About what.
        key: HomeKey,
        /// The sender.
        from: NodeId,
        /// The content.
        payload: Bytes,
    },
    /// A message from another node about no room.
    Direct {
        /// The sender.
        from: NodeId,
        /// The purpose, as the server numbers it.
        channel: u32,
        /// The content.
        payload: Bytes,
    },
    /// By which way a node is heard from now on. It comes before `NodeUp` and `NodeResumed`.
    Heard {
        /// The node.
        node: NodeId,
        /// The node that carries the frames of the link, or `None` for a direct connection.
        through: Option<NodeId>,
    },
    /// A link to a node is up.
    NodeUp {
        /// The node.
        node: NodeId,
        /// Its run.
        epoch: Epoch,
        /// Its record, if the bus has it.
        record: Option<Box<NodeRecord>>,
    },
    /// The connection to a node that was not lost has been replaced: messages may be missing.
    NodeResumed {
        /// The node.
        node: NodeId,
    },
    /// Nothing was heard of a node for 1 s.
    NodeSuspect {
        /// The node.
        node: NodeId,
    },
    /// Neither this node nor another one has heard of a node for 2 s, or it was started anew:
    /// sources of it have ended.
    NodeLost {
        /// The node.
        node: NodeId,
    },
    /// Another process with this node's name has replaced it. This node leaves the cluster.
    NameTaken,
    /// A node has no version of the control protocol in common with this one.
    VersionRefused {
        /// The node.
        node: NodeId,
        /// The versions that it speaks.
        theirs: VersionRange,
    },
    /// Whether the bus has confirmed this node within 10 s.
    Confirmed(bool),
}

/// Where something is at home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Here.
    Here {
        /// Since which revision.
        revision: Revision,
    },
    /// On another node.
    There {
        /// The home.
        node: NodeId,
        /// Since which revision.
        revision: Revision,
        /// Whether there is a link to it.
        is_reachable: bool,
    },
    /// Nowhere.
    Nowhere(Unplaced),
}

/// Why something has no home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// The bus is away, and nobody is known to have it.
    #[error("the cluster's bus is away, so nothing new can be opened (cluster.without_bus)")]
    NoBus,
    /// Another process has taken this node's name.
    #[error(
        "another process has this node's name (cluster.name), so this one is outside the cluster"
    )]
    NameTaken,
}
