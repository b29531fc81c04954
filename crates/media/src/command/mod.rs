//! Commands of the control plane and of other workers to a worker: an enum for each part of it.

mod ingests;
mod legs;
mod network;
mod node_links;
mod peers;
mod routes;
mod sources;

use portunus_graph::{PeerId, RouteId, SourceRef};
use tokio::sync::oneshot;

use crate::{LineStats, MediaIdentity, MediaSettings};

pub(crate) use ingests::{IngestCommand, NewIngest};
pub(crate) use legs::{LegCommand, LegSetup};
pub(crate) use network::{NetworkCommand, PassedConnection};
pub(crate) use node_links::{NewNodeLink, NodeLinkCommand};
pub(crate) use peers::PeerCommand;
pub(crate) use routes::{OutletCommand, RouteCommand};
pub(crate) use sources::SourceCommand;

/// A command to a worker.
#[derive(Debug)]
pub(crate) enum Command {
    Peer(PeerId, PeerCommand),
    Route(RouteId, RouteCommand),
    Outlet(OutletCommand),
    Source(SourceRef, SourceCommand),
    Ingest(IngestCommand),
    Leg(LegCommand),
    Network(NetworkCommand),
    NodeLink(NodeLinkCommand),
    /// Reports the statistics of m-lines of many peers.
    LineStats {
        peers: Vec<PeerId>,
        reply: oneshot::Sender<Vec<(PeerId, LineStats)>>,
    },
    /// Applies the settings that administrators changed.
    Configure(MediaSettings),
    /// New peers present this certificate.
    SetIdentity(MediaIdentity),
    Shutdown,
}

impl Command {
    /// Returns the peer whose data the command brings. If carrying the command out leads to a
    /// fault, that peer is ended.
    pub(crate) fn peer(&self) -> Option<PeerId> {
        match self {
            Command::Peer(peer, _) => Some(*peer),
            _ => None,
        }
    }
}
