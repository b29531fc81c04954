//! What all handles of a server share.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use std::time::SystemTime;

use arc_swap::{ArcSwap, Guard};
use portunus_media::{MediaPlane, PeerEvent, PeerId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::admin::{Access, Settings, SharedRanking, Transports};
use crate::drain::Drain;
use crate::handle::{Command, Inbox, WeakHandle};
use crate::mdns::MdnsNames;
use crate::rate::RequestRate;
use crate::tokens::Tokens;
use crate::{Budget, CoreConfig, Counters, Reloader, ServerFacts};

pub(crate) struct Context {
    /// Read by [`Context::config`].
    pub(crate) config: ArcSwap<CoreConfig>,
    pub(crate) facts: ServerFacts,
    pub(crate) media: MediaPlane,
    /// Resolves mDNS names in candidates, unless that is off.
    pub(crate) mdns: Option<MdnsNames>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) peers: Peers,
    pub(crate) rate: RequestRate,
    /// The memory that clients hold.
    pub(crate) memory: Budget,
    /// The memory that clients of the Admin API hold.
    pub(crate) admin_memory: Budget,
    /// Who may use the Admin API.
    pub(crate) access: Access,
    pub(crate) settings: Settings,
    pub(crate) transports: Transports,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    /// When certificates expire, in seconds since 1970, by their use.
    pub(crate) certificates: Mutex<BTreeMap<&'static str, u64>>,
    pub(crate) ranking: SharedRanking,
    pub(crate) tokens: Tokens,
    pub(crate) drain: Drain,
    pub(crate) reloader: OnceLock<Weak<dyn Reloader>>,
}

/// Secrets are not shown.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// What is configured now: a part of it can change while the server runs.
    pub(crate) fn config(&self) -> Guard<Arc<CoreConfig>> {
        self.config.load()
    }
}

/// Which handle a peer belongs to.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    owners: Mutex<HashMap<PeerId, Owner>>,
}

/// Whom a peer belongs to.
#[derive(Debug)]
struct Owner {
    inbox: Inbox,
    handle: WeakHandle,
}

impl Peers {
    pub(crate) fn insert(&self, peer: PeerId, inbox: Inbox, handle: WeakHandle) {
        self.owners().insert(peer, Owner { inbox, handle });
    }

    pub(crate) fn remove(&self, peer: PeerId) {
        self.owners().remove(&peer);
    }

    pub(crate) fn count(&self) -> usize {
        self.owners().len()
    }

    /// All peers with their handles.
    pub(crate) fn handles(&self) -> Vec<(PeerId, WeakHandle)> {
        let owners = self.owners();
        let owners = owners.iter();
        owners
            .map(|(peer, owner)| (*peer, owner.handle.clone()))
            .collect()
    }

    #[cfg(feature = "testing")]
    pub(crate) fn list(&self) -> Vec<PeerId> {
        let mut peers: Vec<_> = self.owners().keys().copied().collect();
        peers.sort_unstable();
        peers
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<PeerId, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the media plane's events to the handles that they concern.
pub(crate) async fn deliver_events(context: Arc<Context>, mut events: mpsc::Receiver<PeerEvent>) {
    while let Some(event) = events.recv().await {
        let inbox = {
            let owners = context.peers.owners();
            owners.get(&event.peer).map(|owner| owner.inbox.clone())
        };
        if let Some(inbox) = inbox {
            inbox.deliver(Command::Peer(event));
        }
    }
}
