//! A media plane without workers, for tests. It only records commands.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_graph::PeerId;
use tokio::sync::{mpsc, watch};

use super::{MediaPlane, Shared};
use crate::capture::Captures;
use crate::testing::{Detached, Requested};
use crate::{MediaConfig, MediaSettings, PeerEvent, PeerStats};

impl MediaPlane {
    /// Returns a media plane without workers, for tests. It only records commands; its events are
    /// those sent to the sender.
    #[doc(hidden)]
    pub fn detached() -> (Self, mpsc::Sender<PeerEvent>, mpsc::Receiver<PeerEvent>) {
        let detached = Detached::new();
        let shared = Shared {
            workers: Vec::new(),
            fingerprint: Mutex::new(detached.fingerprint),
            address: detached.address,
            one_port: false,
            next_id: AtomicU64::new(1),
            running: watch::channel(()).1,
            lost: watch::channel(false).1,
            last_stats: Arc::default(),
            settings: Mutex::new(MediaSettings::new(&MediaConfig::default())),
            captures: Captures::default(),
            notes: Default::default(),
        };
        let plane = Self {
            shared: Arc::new(shared),
        };
        (plane, detached.sender, detached.events)
    }

    /// What was requested so far.
    #[doc(hidden)]
    pub fn requested(&self) -> Requested {
        self.notes().clone()
    }

    /// Sets the statistics of `peer`.
    #[doc(hidden)]
    pub fn pretend_stats(&self, peer: PeerId, stats: PeerStats) {
        self.notes().stats.insert(peer, stats);
    }

    /// Never answers requests for the statistics of `peer`.
    #[doc(hidden)]
    pub fn withhold_stats(&self, peer: PeerId) {
        self.notes().silent.insert(peer);
    }

    fn notes(&self) -> MutexGuard<'_, Requested> {
        let notes = self.shared.notes.lock();
        notes.unwrap_or_else(PoisonError::into_inner)
    }
}
