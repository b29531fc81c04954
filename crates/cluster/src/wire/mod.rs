//! The frames of the control link: protobuf messages, each after its length in 4 bytes.
//!
//! Protobuf, since a reader skips fields and frames that it does not know, so that neighbouring
//! versions work together.

mod parts;

use bytes::Bytes;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use crate::id::{Epoch, IdError, NodeId, Revision};
use crate::key::{HomeKey, KeyError};

use parts::{Body, Envelope};

/// The largest frame in bytes, without its length.
pub const MAX_FRAME: usize = 65_536;

/// The longest name of an item in bytes.
pub(crate) const MAX_ITEM: usize = 512;

/// The largest content of a message or an item in bytes, which leaves room for the rest.
pub(crate) const MAX_PAYLOAD: usize = MAX_FRAME - 2_048;

/// The most nodes in a frame that says who is heard.
pub(crate) const MAX_HEARD: usize = 500;

/// A range of versions of the control protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The lowest one.
    pub min: u32,
    /// The highest one.
    pub max: u32,
}

impl VersionRange {
    /// The versions that this program speaks. Each release speaks that of the one before, too.
    pub const OURS: VersionRange = VersionRange { min: 1, max: 2 };

    /// The lowest version with frames that a third node carries.
    pub(crate) const CARRIES: u32 = 2;

    /// Returns the versions of this program up to `max`. 0 means all of them.
    pub fn up_to(max: u32) -> Self {
        let VersionRange { min, max: newest } = VersionRange::OURS;
        VersionRange {
            min,
            max: if max == 0 {
                newest
            } else {
                max.clamp(min, newest)
            },
        }
    }

    /// Returns the highest version that both speak.
    pub fn common(self, other: VersionRange) -> Option<u32> {
        let version = self.max.min(other.max);
        (version >= self.min.max(other.min)).then_some(version)
    }
}

impl std::fmt::Display for VersionRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.min == self.max {
            true => write!(f, "{}", self.min),
            false => write!(f, "{} to {}", self.min, self.max),
        }
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The first frame of each side.
    Hello {
        /// The sender.
        node: NodeId,
        /// Its run.
        epoch: Epoch,
        /// The name of its cluster.
        cluster: String,
        /// The versions that it speaks.
        versions: VersionRange,
    },
    /// A sign of life, each 500 ms.
    Ping {
        /// The sender's clock, in µs since any moment.
        clock: u64,
    },
    /// The answer to a ping.
    Pong {
        /// The clock in the ping.
        clock: u64,
    },
    /// To a home: the sender has this open.
    Register(About),
    /// From a home: the registration holds. All items of the others follow.
    Registered(About),
    /// From a node that is not the home at that revision.
    Refused {
        /// About what, with the revision that was asked for.
        about: About,
        /// The home that it knows, if that is a later one.
        home: Option<KnownHome>,
    },
    /// To a home: the sender has it no longer open.
    Unregister(About),
    /// An item: to the home from its owner, from the home to all others.
    Item {
        /// Of what.
        about: About,
        /// Whose.
        owner: NodeId,
        /// Its name, up to 512 bytes.
        name: String,
        /// Its value, or `None` if it is gone.
        value: Option<Bytes>,
    },
    /// All items of the sender have been sent. What was not among them is gone.
    Synced(About),
    /// From a home: it has ended.
    Ended(About),
    /// A message between a home and a registered node.
    Message {
        /// About what.
        about: About,
        /// The content.
        payload: Bytes,
    },
    /// A message about no room.
    Direct {
        /// The purpose, as the server numbers it.
        channel: u32,
        /// The content.
        payload: Bytes,
    },
    /// The nodes that the sender hears by direct connections. Since version 2.
    Hears {
        /// Whether these are all of them. Otherwise they are changes.
        is_all: bool,
        /// The nodes.
        nodes: Vec<Hearing>,
    },
    /// A frame between two nodes without a direct connection, which a third one carries. Since
    /// version 2.
    Via(Via),
}

/// Whether a node is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hearing {
    /// The node.
    pub node: NodeId,
    /// Its run, or `None` if it is no longer heard.
    pub epoch: Option<Epoch>,
}

/// A part of a path: a connection between two nodes through a third one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The number of the path, which the node that has opened it has chosen.
    pub path: u64,
    /// The number of the frame on this path, from 1 on. 0 means that there is no frame.
    pub number: u64,
    /// The number of the last frame that the sender has received on this path.
    pub received: u64,
    /// Whether the path is closed.
    pub is_closed: bool,
    /// The frame, which is no `Via` itself.
    pub frame: Bytes,
}

/// What a frame is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// What.
    pub key: HomeKey,
    /// The revision of its home: the fencing token.
    pub revision: Revision,
}

/// A home that somebody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHome {
    /// Since when.
    pub revision: Revision,
    /// The home.
    pub node: NodeId,
    /// Its run.
    pub epoch: Epoch,
}

/// A frame cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It is larger than 64 KiB.
    #[error("a frame of {0} bytes, and 65,536 are allowed")]
    Long(usize),
    /// It is no protobuf message.
    #[error("a malformed frame: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The name of a node in it is none.
    #[error(transparent)]
    Node(#[from] IdError),
    /// The key in it is none.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A part is missing or too long.
    #[error("a frame lacks a part, or one is too long")]
    Part,
}

impl Frame {
    /// Reads a frame, without its length. Returns `None` for a frame of a later version.
    pub fn decode(bytes: Bytes) -> Result<Option<Self>, FrameError> {
        if bytes.len() > MAX_FRAME {
            return Err(FrameError::Long(bytes.len()));
        }
        let Some(body) = Envelope::decode(bytes)?.body else {
            return Ok(None);
        };
        body.read().map(Some)
    }

    /// Returns the bytes, without the length.
    pub fn encode(self) -> Bytes {
        let body = Some(Body::of(self));
        Envelope { body }.encode_to_vec().into()
    }
}

#[cfg(test)]
mod tests;
