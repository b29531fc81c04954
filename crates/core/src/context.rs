//! What all handles of a server share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::{MediaPlane, PeerEvent, PeerId};
use tokio::sync::mpsc;

use crate::admin::{Access, Settings, Transports};
use crate::handle::{Command, Inbox};
use crate::rate::RequestRate;
use crate::{CoreConfig, Counters, ServerFacts};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: CoreConfig,
    pub(crate) facts: ServerFacts,
    pub(crate) media: MediaPlane,
    pub(crate) counters: Arc<Counters>,
    pub(crate) peers: Peers,
    pub(crate) rate: RequestRate,
    /// Who may use the Admin API.
    pub(crate) access: Access,
    pub(crate) settings: Settings,
    pub(crate) transports: Transports,
}

/// Which handle a peer belongs to.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    inboxes: Mutex<HashMap<PeerId, Inbox>>,
}

impl Peers {
    pub(crate) fn insert(&self, peer: PeerId, inbox: Inbox) {
        self.inboxes().insert(peer, inbox);
    }

    pub(crate) fn remove(&self, peer: PeerId) {
        self.inboxes().remove(&peer);
    }

    #[cfg(feature = "testing")]
    pub(crate) fn list(&self) -> Vec<PeerId> {
        let mut peers: Vec<_> = self.inboxes().keys().copied().collect();
        peers.sort_unstable();
        peers
    }

    fn inboxes(&self) -> MutexGuard<'_, HashMap<PeerId, Inbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the media plane's events to the handles that they concern.
pub(crate) async fn deliver_events(context: Arc<Context>, mut events: mpsc::Receiver<PeerEvent>) {
    while let Some(event) = events.recv().await {
        let inbox = context.peers.inboxes().get(&event.peer).cloned();
        if let Some(inbox) = inbox {
            inbox.deliver(Command::Peer(event));
        }
    }
}
