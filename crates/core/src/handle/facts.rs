//! What the core knows of a handle, for administrators.

use std::sync::Arc;

use portunus_media::{IceCause, PeerId};
use portunus_sdp::{Fingerprint, Negotiated, Signaling};
use tokio::time::Instant;

use super::Handle;
use crate::RidOrder;

/// A handle at one moment.
#[derive(Debug)]
pub(crate) struct HandleFacts {
    /// The package of its plugin.
    pub(crate) plugin: &'static str,
    pub(crate) opaque_id: Option<Arc<str>>,
    /// What the client showed when it attached the handle.
    pub(crate) token: Option<Box<str>>,
    pub(crate) created: Instant,
    /// Our candidates go to the client one by one.
    pub(crate) full_trickle: bool,
    /// Candidates of the client that wait until they can be used.
    pub(crate) early: usize,
    /// The PeerConnection is gone, but not everybody has been told.
    pub(crate) closing: bool,
    /// There was a PeerConnection, and it is gone.
    pub(crate) had_connection: bool,
    /// Why ICE failed for the last PeerConnection, if it did and there is none now.
    pub(crate) last_cause: Option<IceCause>,
    pub(crate) connection: Option<ConnectionFacts>,
}

/// Its PeerConnection.
#[derive(Debug)]
pub(crate) struct ConnectionFacts {
    pub(crate) peer: PeerId,
    /// Of the certificate that the server presents.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) created: Instant,
    /// When the first offer and answer were exchanged.
    pub(crate) started: Option<Instant>,
    pub(crate) negotiated: Option<Negotiated>,
    pub(crate) signaling: Signaling,
    /// New ICE credentials wait for the other side's.
    pub(crate) restarting: bool,
    pub(crate) up: bool,
    pub(crate) e2ee: bool,
    /// The client has said that it has no more candidates.
    pub(crate) all_trickled: bool,
    pub(crate) rid_order: RidOrder,
    /// Our last description.
    pub(crate) local: Option<Arc<str>>,
    /// The client's last description.
    pub(crate) remote: Option<Arc<str>>,
}

/// The least that is known of a PeerConnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerFacts {
    pub(crate) peer: PeerId,
    /// Offer and answer have been exchanged.
    pub(crate) negotiated: bool,
    /// Media can flow.
    pub(crate) up: bool,
}

impl Handle {
    /// The package of its plugin.
    pub(crate) fn package(&self) -> &'static str {
        self.shared.plugin.package
    }

    pub(crate) fn peer_facts(&self) -> Option<PeerFacts> {
        self.connections().peer_facts()
    }

    pub(crate) fn facts(&self) -> HandleFacts {
        let shared = &self.shared;
        let connections = self.connections();
        HandleFacts {
            plugin: shared.plugin.package,
            opaque_id: shared.opaque_id.clone(),
            token: self.token().map(Box::from),
            created: shared.created,
            full_trickle: connections.full_trickle(),
            early: connections.early(),
            closing: connections.is_closing(),
            had_connection: connections.had_one(),
            last_cause: connections.last_cause().cloned(),
            connection: connections.facts(),
        }
    }
}
