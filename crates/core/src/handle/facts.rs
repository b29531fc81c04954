//! The state of a handle, for operators.

use std::sync::Arc;

use portunus_media::{IceCause, PeerId};
use portunus_sdp::{Fingerprint, Negotiated, Signaling};
use tokio::time::Instant;

use super::Handle;
use crate::RidOrder;

/// A handle at one moment.
#[derive(Debug)]
pub struct HandleFacts {
    /// The package of its plugin.
    pub plugin: &'static str,
    /// The text that the client gave it to recognise it by.
    pub opaque_id: Option<Arc<str>>,
    /// The token that the client attached it with.
    pub token: Option<Box<str>>,
    /// When it was attached.
    pub created: Instant,
    /// Whether the server sends its candidates one by one.
    pub full_trickle: bool,
    /// The number of candidates that came too early and wait.
    pub early: usize,
    /// Whether the PeerConnection is closing: not everybody is notified yet.
    pub closing: bool,
    /// Whether there was a PeerConnection before.
    pub had_connection: bool,
    /// The reason of a failure of ICE of the last PeerConnection, if there is none now.
    pub last_cause: Option<IceCause>,
    /// Its PeerConnection.
    pub connection: Option<ConnectionFacts>,
}

/// The state of a PeerConnection.
#[derive(Debug)]
pub struct ConnectionFacts {
    /// Its peer in the media plane.
    pub peer: PeerId,
    /// The fingerprint of the server's certificate.
    pub fingerprint: Fingerprint,
    /// When it was created.
    pub created: Instant,
    /// When the first offer and answer were exchanged.
    pub started: Option<Instant>,
    /// The outcome of the last offer and answer.
    pub negotiated: Option<Negotiated>,
    /// The state of the negotiation.
    pub signaling: Signaling,
    /// Whether new ICE credentials wait for the other side's.
    pub restarting: bool,
    /// Whether media can flow.
    pub up: bool,
    /// Whether media is encrypted end to end.
    pub e2ee: bool,
    /// Whether the client has sent the end of candidates.
    pub all_trickled: bool,
    /// The order of the client's rids.
    pub rid_order: RidOrder,
    /// The server's last description.
    pub local: Option<Arc<str>>,
    /// The client's last description.
    pub remote: Option<Arc<str>>,
}

/// The minimal state of a PeerConnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerFacts {
    /// Its peer in the media plane.
    pub peer: PeerId,
    /// Whether offer and answer have been exchanged.
    pub negotiated: bool,
    /// Whether media can flow.
    pub up: bool,
}

impl Handle {
    /// The package of its plugin.
    pub fn package(&self) -> &'static str {
        self.shared.plugin.package
    }

    /// Returns the minimal state of its PeerConnection, or `None` without one.
    pub fn peer_facts(&self) -> Option<PeerFacts> {
        self.connections().peer_facts()
    }

    /// Returns what operators see of the handle.
    pub fn facts(&self) -> HandleFacts {
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
