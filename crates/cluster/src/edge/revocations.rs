//! The revoked certificates, as the driver knows them: from the folder, where the command line writes
//! the list, and from other nodes.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;

use crate::authority::{AuthorityError, Folder, Revocations};
use crate::bus::{Bucket, BusEvent};
use crate::record::NodeRecord;

/// The channel of direct messages that carry the list. The server's channels have lower numbers.
pub(super) const CHANNEL: u32 = 1_000_000;

/// Between two looks at the folder.
const LOOK: Duration = Duration::from_secs(1);

/// The list that is in force; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct InForce(Arc<RwLock<Arc<Revocations>>>);

impl InForce {
    pub(super) fn has(&self, fingerprint: &str) -> bool {
        self.get().has(fingerprint)
    }

    fn get(&self) -> Arc<Revocations> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, list: Revocations) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(list);
    }
}

/// Keeps the list.
#[derive(Debug)]
pub(super) struct Keeper {
    folder: Folder,
    list: InForce,
    /// When the file was written that was read last.
    written: Option<SystemTime>,
    looked: Instant,
}

impl Keeper {
    /// Reads the list that the folder has. One that cannot be read is an error: whoever was refused
    /// would come in again.
    pub(super) fn open(folder: Folder) -> Result<Self, AuthorityError> {
        let list = InForce::default();
        let written = folder.revocations_written();
        list.set(folder.revocations()?);
        Ok(Keeper {
            folder,
            list,
            written,
            looked: Instant::now(),
        })
    }

    pub(super) fn in_force(&self) -> &InForce {
        &self.list
    }

    /// Returns the signed list for other nodes, or `None` if nothing was ever revoked.
    pub(super) fn text(&self) -> Option<Bytes> {
        self.list.get().text()
    }

    /// Looks now and then whether the command line has written another list. Returns whether a later
    /// one is in force now.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.looked) < LOOK {
            return false;
        }
        self.looked = now;
        let written = self.folder.revocations_written();
        if written == self.written {
            return false;
        }
        self.written = written;
        match self.folder.revocations() {
            Ok(list) => self.accept(list),
            Err(error) => {
                tracing::error!(%error, "cluster: the list of revoked certificates cannot be read");
                false
            }
        }
    }

    /// Takes a list that another node has sent. Returns whether it is in force now.
    pub(super) fn take(&mut self, text: &[u8]) -> Result<bool, AuthorityError> {
        // Mostly all nodes have the same one.
        if self.text().is_some_and(|own| own == text) {
            return Ok(false);
        }
        let list = self.folder.verified(text)?;
        if !self.accept(list) {
            return Ok(false);
        }
        match self.folder.keep_revocations(&self.list.get()) {
            Ok(()) => self.written = self.folder.revocations_written(),
            // Such as in a container: the others tell it again after the next start.
            Err(error) => {
                tracing::warn!(%error, "cluster: the list of revoked certificates is not kept for the next start");
            }
        }
        Ok(true)
    }

    fn accept(&self, list: Revocations) -> bool {
        if !list.is_after(&self.list.get()) {
            return false;
        }
        tracing::info!(
            revoked = list.len(),
            "cluster: a later list of revoked certificates is in force"
        );
        self.list.set(list);
        true
    }

    /// Turns an entry of a node with a revoked certificate into one that has expired, so that nobody
    /// dials it and its homes are taken.
    pub(super) fn filter(&self, mut event: BusEvent) -> BusEvent {
        if let BusEvent::Entry(entry) = &mut event
            && entry.bucket == Bucket::Nodes
            && let Some(value) = &entry.value
        {
            let list = self.list.get();
            let is_revoked = list.len() > 0
                && NodeRecord::parse(value).is_ok_and(|record| list.has(&record.fingerprint));
            if is_revoked {
                entry.value = None;
            }
        }
        event
    }
}
