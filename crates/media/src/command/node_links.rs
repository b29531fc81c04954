//! Commands that concern links to other nodes.

use std::sync::Arc;

use portunus_rtp::Ssrc;

use crate::node_link::{KeyChange, NodeLinkId, NodeLinkOptions, NodeLinkStatus, RelayedStream};
use crate::sys::MediaSocket;

/// A command that concerns links to other nodes.
#[derive(Debug)]
pub(crate) enum NodeLinkCommand {
    /// The worker's socket for all links.
    Open(Box<MediaSocket>),
    Add(Box<NewNodeLink>),
    SetKey(NodeLinkId, Box<KeyChange>),
    Remove(NodeLinkId),
    /// Expects a stream for an ingest of the worker.
    Receive(RelayedStream),
    /// Refuses the packets of a stream from now on.
    Forget(NodeLinkId, Ssrc),
}

/// A new link to another node.
#[derive(Debug)]
pub(crate) struct NewNodeLink {
    pub(crate) id: NodeLinkId,
    pub(crate) options: NodeLinkOptions,
    pub(crate) status: Arc<NodeLinkStatus>,
}
