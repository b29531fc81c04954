//! The nodes of a cluster: who is there, where each room is at home, and the control links between
//! nodes.
//!
//! [`Cluster`] is a node with its edges: NATS, TLS and a task. [`Node`] is its state machine without
//! sockets and clock. It takes events of the bus (a key-value store with revisions) and of links,
//! demands of the server and the time. It returns requests to the bus, frames for links, events and
//! the next deadline. See docs/architecture/cluster.md.
#![forbid(unsafe_code)]

mod authority;
mod bus;
mod config;
mod counters;
mod edge;
mod event;
mod homes;
mod id;
mod key;
mod links;
mod members;
mod node;
mod path;
mod places;
mod record;
mod settings;
mod status;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use authority::{AuthorityError, Folder, Identity, Invitation, RevocationError};
pub use bus::{Bucket, BusEvent, BusRequest, Entry, OpId, Outcome, Write};
pub use config::{ClusterConfig, NodeConfig};
pub use counters::Counters;
pub use edge::{Cluster, Facts, JoinError, StartError, join, renew};
pub use event::{Event, Output, Place, Unplaced};
pub use id::{Epoch, IdError, NodeId, Revision};
pub use key::{HomeKey, KeyError};
pub use links::{CloseReason, ConnId, LinkEvent};
pub use node::{Demand, DemandError, Node, Sizes};
pub use record::{HomeRecord, Load, MAX_WORKERS, NodeRecord, NodeState, RecordError};
pub use settings::{NodeSettings, Urls, WithoutBus};
pub use status::{HomeStatus, LinkStatus, NodeStatus, OtherNode, Status};
pub use wire::{About, Frame, FrameError, Hearing, KnownHome, MAX_FRAME, VersionRange, Via};
