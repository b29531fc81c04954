//! Packets that wait for their time in the pacer of a peer.

use std::sync::Arc;

use portunus_graph::{Packet, Selection};
use portunus_rtc::bandwidth::Pacer;

/// The pacer of a peer.
pub(in crate::worker) type Pacing = Pacer<Queued>;

/// A packet that waits. It is numbered when it leaves, so that dropped packets leave no gap.
#[derive(Debug)]
pub(in crate::worker) struct Queued {
    /// The slot of the route.
    pub(in crate::worker) route: usize,
    pub(in crate::worker) packet: Arc<Packet>,
    /// Whether it is relayed or dropped when its turn comes.
    pub(in crate::worker) selection: Selection,
}
