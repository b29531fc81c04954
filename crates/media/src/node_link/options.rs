//! The options of node links and of the streams over them.

use std::net::SocketAddr;
use std::sync::Arc;

use portunus_graph::IngestId;
use portunus_rtp::Ssrc;

use super::{NodeLinkKey, NodeLinkStatus};

/// The highest SSRC of a stream. Those above are for RTCP.
pub const MAX_SSRC: u32 = RTCP_SSRC - 1;
/// The SSRC of the RTCP of worker 0. The others have the next ones.
const RTCP_SSRC: u32 = 0x7fff_0000;
/// The bit of an SSRC that says which of two keys a packet has.
const KEY_BIT: u32 = 1 << 31;

/// The id of a node link on this media plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeLinkId(pub(crate) u64);

/// The options of a node link.
#[derive(Debug, Clone)]
pub struct NodeLinkOptions {
    /// The addresses of the other node's workers, by their index
    /// ([`crate::MediaPlane::open_node_links`]). Packets from elsewhere are dropped.
    pub far: Vec<SocketAddr>,
    /// The key of what this node sends. It must be new.
    pub send: NodeLinkKey,
    /// The key of what the other node sends.
    pub receive: NodeLinkKey,
}

/// A node link that was added.
#[derive(Debug, Clone)]
pub struct NodeLink {
    pub(crate) id: NodeLinkId,
    pub(crate) statuses: Vec<Arc<NodeLinkStatus>>,
}

impl NodeLink {
    /// Its id.
    pub fn id(&self) -> NodeLinkId {
        self.id
    }

    /// Returns what it carried since it was added.
    pub fn stats(&self) -> super::NodeLinkStats {
        let mut sum = super::NodeLinkStats::default();
        for status in &self.statuses {
            status.add_to(&mut sum);
        }
        sum
    }

    /// Returns whether the other node is heard. It is cheaper than [`NodeLink::stats`].
    pub fn signs_of_life(&self) -> super::SignsOfLife {
        let mut sum = super::SignsOfLife::default();
        for status in &self.statuses {
            status.add_signs(&mut sum);
        }
        sum
    }

    /// Pretends that the other node was heard and has answered, for tests of users of the control
    /// plane.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn pretend_life(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        for status in self.statuses.iter().take(1) {
            status.reports.fetch_add(1, Relaxed);
            status.answered.fetch_add(1, Relaxed);
        }
    }
}

/// How a source is sent to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayOptions {
    /// The link.
    pub link: NodeLinkId,
    /// The worker of the other node that takes it.
    pub far: u16,
    /// The SSRC that the other node has chosen, 1 to [`MAX_SSRC`].
    pub ssrc: Ssrc,
    /// The simulcast encoding, 0 the lowest.
    pub encoding: u8,
}

/// A stream of another node, for an ingest of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayedStream {
    /// The link.
    pub link: NodeLinkId,
    /// The worker of the other node that sends it.
    pub far: u16,
    /// The SSRC, 1 to [`MAX_SSRC`]: none that the link had before.
    pub ssrc: Ssrc,
    /// The ingest that takes it.
    pub ingest: IngestId,
    /// The simulcast encoding, 0 the lowest.
    pub encoding: u8,
    /// The stream that carried the encoding until now, maybe over another link. From the first
    /// packet of this one on, its packets are dropped.
    pub replaces: Option<(NodeLinkId, Ssrc)>,
}

/// What a key of a node link is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyUse {
    Send,
    Receive,
}

/// A new key of a node link.
#[derive(Debug, Clone)]
pub(crate) struct KeyChange {
    pub(crate) usage: KeyUse,
    /// The number of the key. Even and odd ones take turns.
    pub(crate) number: u32,
    pub(crate) key: NodeLinkKey,
}

/// The SSRC of the RTCP of a worker.
pub(crate) fn rtcp_ssrc(worker: u16) -> Ssrc {
    Ssrc(RTCP_SSRC | u32::from(worker))
}

/// Returns an SSRC without what it says of the key.
pub(super) fn without_key(ssrc: Ssrc) -> Ssrc {
    Ssrc(ssrc.0 & !KEY_BIT)
}

/// Returns an SSRC with the key of this number.
pub(crate) fn with_key(ssrc: Ssrc, number: u32) -> Ssrc {
    Ssrc(without_key(ssrc).0 | (number & 1) << 31)
}

/// Returns 0 or 1: the place of the key that an SSRC says.
pub(super) fn key_place(ssrc: Ssrc) -> usize {
    (ssrc.0 >> 31) as usize
}
