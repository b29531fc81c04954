//! The links to other nodes, with what waits for each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::id::{Epoch, NodeId};
use crate::key::HomeKey;
use crate::path::Path;
use crate::wire::{Frame, VersionRange};

/// The number of a connection, chosen by the edge. It is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Something that comes from the links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A connection is open, and the other side has shown a certificate with this name.
    Opened {
        /// The connection.
        conn: ConnId,
        /// The node.
        node: NodeId,
        /// Whether this node has dialled.
        is_dialled: bool,
    },
    /// A node could not be connected to.
    Failed {
        /// The node.
        node: NodeId,
    },
    /// A frame, without its length.
    Frame {
        /// The connection.
        conn: ConnId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A connection is closed by the other side or by the network.
    Closed {
        /// The connection.
        conn: ConnId,
    },
}

/// Why a connection is closed by this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// A newer connection to the same node has replaced it.
    #[error("a newer connection has replaced it")]
    Replaced,
    /// The first frame names another node or cluster than expected.
    #[error("the other side is of another cluster, or not the node of its certificate")]
    Stranger,
    /// No version is common.
    #[error("no version of the control protocol is common")]
    Version,
    /// Nothing was heard for 2 s, or for 1.5 s while another node hears it.
    #[error("nothing was heard by this connection for up to 2 s")]
    Silent,
    /// A frame could not be read, or came out of order.
    #[error("a frame could not be read")]
    Malformed,
    /// The queue of messages is full.
    #[error("1,000 messages wait for it")]
    Overflow,
    /// It sends more than allowed.
    #[error("it sends more than 20,000 frames a second")]
    Flood,
    /// This node has left the cluster.
    #[error("this node has left the cluster")]
    Left,
}

/// The state of the direct connection of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// There is none. The other side may be dialled from this moment on.
    Down(Instant),
    /// It is dialled.
    Dialling,
    /// It is open, and the first frame is awaited.
    Greeting(ConnId),
    /// It is up.
    Up(ConnId, u32),
}

/// What waits to be sent about a room.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// The items, by owner and name.
    pub(crate) items: BTreeSet<ItemName>,
    /// Whether the end of all items is to be marked.
    pub(crate) sync: bool,
}

/// The name of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ItemName {
    pub(crate) owner: NodeId,
    pub(crate) name: String,
}

/// The link to a node: a direct connection, or else a path through another node.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) wire: Wire,
    /// The path. There is none while the direct connection is up.
    pub(crate) path: Option<Path>,
    /// The run of the node on the last connection that was up, and the versions that it speaks.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) versions: Option<VersionRange>,
    /// Failed attempts in a row.
    pub(crate) tries: u32,
    /// The same for paths, the last node in the middle, and when the next path may be opened.
    pub(crate) detours: u32,
    pub(crate) last_middle: Option<NodeId>,
    pub(crate) detour_from: Instant,
    /// From when on silence counts: when something was heard last, or later if this node was
    /// stopped since.
    pub(crate) heard: Instant,
    /// When something came last.
    pub(crate) came: Instant,
    pub(crate) pinged: Instant,
    /// When the direct connection was opened, and when the path was.
    pub(crate) opened: Instant,
    pub(crate) detoured: Instant,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) is_suspect: bool,
    /// Whether the node counts as lost.
    pub(crate) is_lost: bool,
    /// When the last connection came up.
    pub(crate) up_since: Option<Instant>,
    /// The first frame on the direct connection, until it is sent.
    pub(crate) hello: Option<Frame>,
    /// Messages in their order.
    pub(crate) outbox: VecDeque<Frame>,
    /// What the other side has to be asked to register.
    pub(crate) registers: BTreeSet<HomeKey>,
    /// Items that have changed, each once.
    pub(crate) unsent: BTreeMap<HomeKey, Unsent>,
    /// The room whose items were sent last, so that all take turns.
    pub(crate) turn: Option<HomeKey>,
    /// Frames in the present second of either direction.
    pub(crate) received: Pace,
    pub(crate) shared: Pace,
    /// The nodes that the node hears by direct connections.
    pub(crate) hears: BTreeMap<NodeId, Epoch>,
    /// Frames of other nodes for the node.
    pub(crate) carried: VecDeque<Frame>,
    /// Whether one of them is sent before one of this node.
    pub(crate) carries_next: bool,
    /// Frames in the present second that this node has carried to the node, and that the node has to
    /// carry for this one.
    pub(crate) carries: Pace,
    pub(crate) carries_ours: Pace,
}

impl Link {
    pub(crate) fn new(now: Instant) -> Self {
        Link {
            wire: Wire::Down(now),
            path: None,
            epoch: None,
            versions: None,
            tries: 0,
            detours: 0,
            last_middle: None,
            detour_from: now,
            heard: now,
            came: now,
            pinged: now,
            opened: now,
            detoured: now,
            round_trip: None,
            is_suspect: false,
            is_lost: true,
            up_since: None,
            hello: None,
            outbox: VecDeque::new(),
            registers: BTreeSet::new(),
            unsent: BTreeMap::new(),
            turn: None,
            received: Pace::new(now),
            shared: Pace::new(now),
            hears: BTreeMap::new(),
            carried: VecDeque::new(),
            carries_next: false,
            carries: Pace::new(now),
            carries_ours: Pace::new(now),
        }
    }

    /// Returns the direct connection, whether it is up or not.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self.wire {
            Wire::Greeting(conn) | Wire::Up(conn, _) => Some(conn),
            Wire::Down(_) | Wire::Dialling => None,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_direct() || self.middle().is_some()
    }

    /// Returns whether the direct connection is up.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.wire, Wire::Up(..))
    }

    /// Returns the node that carries the frames of this link.
    pub(crate) fn middle(&self) -> Option<&NodeId> {
        let path = self.path.as_ref().filter(|path| path.is_up())?;
        Some(&path.middle)
    }

    /// Returns the version that is spoken.
    pub(crate) fn version(&self) -> Option<u32> {
        match self.wire {
            Wire::Up(_, version) => Some(version),
            Wire::Down(_) | Wire::Dialling | Wire::Greeting(_) => self.path.as_ref()?.version,
        }
    }

    /// Returns whether frames for others can go by the direct connection.
    pub(crate) fn may_carry(&self) -> bool {
        self.is_direct() && self.version() >= Some(VersionRange::CARRIES)
    }

    /// Notes that something came.
    pub(crate) fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.came = now;
        self.is_suspect = false;
    }

    /// Forgets all that waits.
    pub(crate) fn clear(&mut self) {
        self.outbox.clear();
        self.registers.clear();
        self.unsent.clear();
        self.turn = None;
    }

    /// Marks items as changed.
    pub(crate) fn share(&mut self, key: &HomeKey, items: impl IntoIterator<Item = ItemName>) {
        let unsent = self.unsent.entry(key.clone()).or_default();
        unsent.items.extend(items);
    }

    /// Takes the next item, or the mark after the last one.
    pub(crate) fn next_unsent(&mut self) -> Option<(HomeKey, Option<ItemName>)> {
        let after = self.turn.take().and_then(|turn| {
            use std::ops::Bound::{Excluded, Unbounded};
            let mut after = self.unsent.range((Excluded(turn), Unbounded));
            after.next().map(|(key, _)| key.clone())
        });
        let key = after.or_else(|| self.unsent.keys().next().cloned())?;
        let unsent = self.unsent.get_mut(&key)?;
        let item = unsent.items.pop_first();
        let is_done = unsent.items.is_empty() && (item.is_none() || !unsent.sync);
        if is_done {
            self.unsent.remove(&key);
        }
        self.turn = Some(key.clone());
        Some((key, item))
    }
}

/// A count within a second.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    count: u32,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Pace {
            since: now,
            count: 0,
        }
    }

    /// Counts one. Returns false if there were `most` in this second already.
    pub(crate) fn take(&mut self, now: Instant, most: u32) -> bool {
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            *self = Pace::new(now);
        }
        if self.count >= most {
            return false;
        }
        self.count = self.count.saturating_add(1);
        true
    }

    /// Returns whether one more fits into this second.
    pub(crate) fn has_room(&self, now: Instant, most: u32) -> bool {
        let is_over = now.saturating_duration_since(self.since) >= Duration::from_secs(1);
        is_over || self.count < most
    }

    /// Returns when the next second begins.
    pub(crate) fn next(&self) -> Instant {
        self.since + Duration::from_secs(1)
    }
}

/// All links, by node and by connection.
#[derive(Debug, Default)]
pub(crate) struct Links {
    by_node: BTreeMap<NodeId, Link>,
    by_conn: BTreeMap<ConnId, NodeId>,
    /// The nodes to which a path leads, by the node in the middle.
    through: BTreeMap<NodeId, BTreeSet<NodeId>>,
}

impl Links {
    pub(crate) fn get(&self, node: &NodeId) -> Option<&Link> {
        self.by_node.get(node)
    }

    pub(crate) fn get_mut(&mut self, node: &NodeId) -> Option<&mut Link> {
        self.by_node.get_mut(node)
    }

    pub(crate) fn entry(&mut self, node: &NodeId, now: Instant) -> &mut Link {
        let entry = self.by_node.entry(node.clone());
        entry.or_insert_with(|| Link::new(now))
    }

    pub(crate) fn remove(&mut self, node: &NodeId) {
        self.take_path(node);
        self.by_node.remove(node);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeId, &Link)> {
        self.by_node.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&NodeId, &mut Link)> {
        self.by_node.iter_mut()
    }

    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.by_node.keys().cloned().collect()
    }

    /// Gives a link a path.
    pub(crate) fn set_path(&mut self, node: &NodeId, path: Path) {
        self.take_path(node);
        if let Some(link) = self.by_node.get_mut(node) {
            let through = self.through.entry(path.middle.clone()).or_default();
            through.insert(node.clone());
            link.path = Some(path);
        }
    }

    pub(crate) fn take_path(&mut self, node: &NodeId) -> Option<Path> {
        let path = self.by_node.get_mut(node)?.path.take()?;
        if let Some(nodes) = self.through.get_mut(&path.middle) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.through.remove(&path.middle);
            }
        }
        Some(path)
    }

    /// Returns the nodes to which a path leads through this one.
    pub(crate) fn through(&self, middle: &NodeId) -> Vec<NodeId> {
        let nodes = self.through.get(middle);
        nodes.map_or(Vec::new(), |nodes| nodes.iter().cloned().collect())
    }

    /// Returns the node of a connection.
    pub(crate) fn node_of(&self, conn: ConnId) -> Option<NodeId> {
        self.by_conn.get(&conn).cloned()
    }

    pub(crate) fn bind(&mut self, conn: ConnId, node: NodeId) {
        self.by_conn.insert(conn, node);
    }

    pub(crate) fn unbind(&mut self, conn: ConnId) {
        self.by_conn.remove(&conn);
    }

    /// Returns the link to a node if it is up.
    pub(crate) fn up(&self, node: &NodeId) -> Option<&Link> {
        self.by_node.get(node).filter(|link| link.is_up())
    }

    pub(crate) fn up_mut(&mut self, node: &NodeId) -> Option<&mut Link> {
        self.by_node.get_mut(node).filter(|link| link.is_up())
    }

    /// Returns whether this run of the node is heard of.
    pub(crate) fn hears(&self, node: &NodeId, epoch: Epoch) -> bool {
        let link = self.by_node.get(node);
        link.is_some_and(|link| !link.is_lost && link.epoch == Some(epoch))
    }
}
