//! The revoked certificates, as the driver knows them: from the folder, where the command line writes
//! the list, from a further file of the configuration, and from other nodes.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;

use crate::authority::{AuthorityError, Folder, Revocations, written};
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
    files: Vec<ListFile>,
    looked: Instant,
}

/// A file that may have a list.
#[derive(Debug)]
struct ListFile {
    path: PathBuf,
    /// When it was written, as it was read last.
    written: Option<SystemTime>,
}

impl Keeper {
    /// Reads the list of the folder, and that of the file `further`. One that cannot be read is an
    /// error: whoever was refused would come in again.
    pub(super) fn open(folder: Folder, further: Option<PathBuf>) -> Result<Self, AuthorityError> {
        let paths = std::iter::once(folder.revocations_path()).chain(further);
        let files = paths.map(|path| ListFile {
            written: written(&path),
            path,
        });
        let keeper = Keeper {
            list: InForce::default(),
            files: files.collect(),
            looked: Instant::now(),
            folder,
        };
        for file in &keeper.files {
            keeper.accept(keeper.folder.revocations_in(&file.path)?);
        }
        Ok(keeper)
    }

    pub(super) fn in_force(&self) -> &InForce {
        &self.list
    }

    /// Returns the signed list for other nodes, or `None` if nothing was ever revoked.
    pub(super) fn text(&self) -> Option<Bytes> {
        self.list.get().text()
    }

    /// Looks now and then whether there is another list in the files. Returns whether a later one is
    /// in force now.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.looked) < LOOK {
            return false;
        }
        self.looked = now;
        let mut lists = Vec::new();
        for file in &mut self.files {
            let now = written(&file.path);
            if std::mem::replace(&mut file.written, now) != now {
                lists.push(self.folder.revocations_in(&file.path));
            }
        }
        let mut is_later = false;
        for list in lists {
            match list {
                Ok(list) => is_later |= self.accept(list),
                Err(error) => {
                    tracing::error!(%error, "cluster: the list of revoked certificates cannot be read");
                }
            }
        }
        is_later
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
            // It is read once more, which changes nothing.
            Ok(()) => {}
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::fs;

    use super::*;
    use crate::id::NodeId;

    #[test]
    fn a_list_in_the_further_file_is_in_force_soon_and_after_a_start() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| Folder::new(&place.path().join(name));
        let [a, b] = ["a", "b"].map(|name| NodeId::new(name).unwrap());
        at("a").init(&a).unwrap();
        for folder in ["b", "stolen"] {
            at("a").issue(&b, &at(folder)).unwrap();
        }
        let stolen = at("stolen").identity().unwrap().fingerprint;
        let further = place.path().join("further.json");
        let mut keeper = Keeper::open(at("b"), Some(further.clone())).unwrap();
        assert!(!keeper.in_force().has(&stolen));
        let fingerprints = std::slice::from_ref(&stolen);
        at("a").revoke(&b, fingerprints).unwrap();
        fs::copy(at("a").revocations_path(), &further).unwrap();
        assert!(keeper.look(Instant::now() + LOOK));
        assert!(keeper.in_force().has(&stolen));
        // The folder itself is not written.
        assert!(!at("b").revocations_path().exists());
        let again = Keeper::open(at("b"), Some(further.clone())).unwrap();
        assert!(again.in_force().has(&stolen));
        // One that nobody has signed changes nothing while the node runs, and it does not start.
        fs::write(&further, "{}").unwrap();
        assert!(!keeper.look(Instant::now() + 3 * LOOK));
        assert!(keeper.in_force().has(&stolen));
        assert!(Keeper::open(at("b"), Some(further)).is_err());
    }
}
