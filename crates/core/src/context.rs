//! The state that all handles of a server share.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use std::time::SystemTime;

use arc_swap::{ArcSwap, Guard};
use portunus_media::{MediaPlane, PeerEvent, PeerId};
use portunus_tokens::Tokens;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::drain::Drain;
use crate::handle::{Command, Inbox};
use crate::mdns::RemoteCandidates;
use crate::rate::RequestRate;
use crate::settings::Settings;
use crate::{Budget, CoreConfig, Counters, Reloader, ServerFacts};

pub(crate) struct Context {
    /// Read by [`Context::config`].
    pub(crate) config: ArcSwap<CoreConfig>,
    pub(crate) facts: ServerFacts,
    pub(crate) media: MediaPlane,
    pub(crate) candidates: RemoteCandidates,
    pub(crate) counters: Arc<Counters>,
    pub(crate) peers: Peers,
    pub(crate) rate: RequestRate,
    /// The memory of clients.
    pub(crate) memory: Budget,
    /// The memory of clients of the Admin API.
    pub(crate) admin_memory: Budget,
    pub(crate) settings: Settings,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    /// The expiry of certificates in seconds since 1970, by their use.
    pub(crate) certificates: Mutex<BTreeMap<&'static str, u64>>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) drain: Drain,
    pub(crate) reloader: OnceLock<Weak<dyn Reloader>>,
}

/// Hides secrets.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// Returns the configuration in effect. A part of it can change while the server runs.
    pub(crate) fn config(&self) -> Guard<Arc<CoreConfig>> {
        self.config.load()
    }
}

/// The inboxes of the handles that peers belong to.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    owners: Mutex<HashMap<PeerId, Inbox>>,
}

impl Peers {
    pub(crate) fn insert(&self, peer: PeerId, inbox: Inbox) {
        self.owners().insert(peer, inbox);
    }

    pub(crate) fn remove(&self, peer: PeerId) {
        self.owners().remove(&peer);
    }

    pub(crate) fn count(&self) -> usize {
        self.owners().len()
    }

    #[cfg(feature = "testing")]
    pub(crate) fn list(&self) -> Vec<PeerId> {
        let mut peers: Vec<_> = self.owners().keys().copied().collect();
        peers.sort_unstable();
        peers
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<PeerId, Inbox>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delivers the events of the media plane to the handles of their peers.
pub(crate) async fn deliver_events(context: Arc<Context>, mut events: mpsc::Receiver<PeerEvent>) {
    while let Some(event) = events.recv().await {
        let inbox = {
            let owners = context.peers.owners();
            owners.get(&event.peer).cloned()
        };
        if let Some(inbox) = inbox {
            inbox.deliver(Command::Peer(event));
        }
    }
}
