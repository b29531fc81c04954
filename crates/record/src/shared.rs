//! What all recordings of a server share: counters, the names that are taken, and the disks.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::TapRoom;
use tokio::sync::Notify;

use crate::complete::Completions;
use crate::disk::Disks;
use crate::{RecordError, RecorderConfig, Whose};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RecorderConfig,
    pub(crate) counters: Counters,
    pub(crate) disks: Disks,
    /// The bytes that may wait for disks.
    pub(crate) room: Arc<TapRoom>,
    pub(crate) completions: Completions,
    /// The files that are being written.
    claimed: Mutex<HashSet<PathBuf>>,
    /// What is not complete yet: files, manifests and commands.
    unfinished: AtomicU64,
    /// Told when something becomes complete.
    finished: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) open: AtomicU64,
    pub(crate) started: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) frames: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) gaps: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) commands_failed: AtomicU64,
    pub(crate) commands_lost: AtomicU64,
}

impl Shared {
    pub(crate) fn new(config: RecorderConfig) -> Self {
        let waiting = usize::try_from(config.max_waiting_mb).unwrap_or(usize::MAX);
        Self {
            counters: Counters::default(),
            disks: Disks::default(),
            room: TapRoom::new(waiting.saturating_mul(1 << 20)),
            completions: Completions::default(),
            claimed: Mutex::default(),
            unfinished: AtomicU64::new(0),
            finished: Notify::new(),
            config,
        }
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is unfinished.
    pub(crate) async fn finished(&self) {
        loop {
            let finished = self.finished.notified();
            tokio::pin!(finished);
            // From here on no end is missed.
            finished.as_mut().enable();
            if self.unfinished.load(Relaxed) == 0 {
                return;
            }
            finished.await;
        }
    }
}

/// Something that has to be complete before the server may end.
#[derive(Debug)]
pub(crate) struct Unfinished(pub(crate) Arc<Shared>);

impl Unfinished {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        shared.unfinished.fetch_add(1, Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.unfinished.fetch_sub(1, Relaxed);
        self.0.finished.notify_waiters();
    }
}

/// A name that no other file may have.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) path: PathBuf,
    unfinished: Unfinished,
}

impl Name {
    /// None if another file has it.
    pub(crate) fn take(shared: &Arc<Shared>, path: &Path) -> Option<Self> {
        let is_free = shared.claimed().insert(path.to_owned());
        is_free.then(|| Self {
            path: path.to_owned(),
            unfinished: Unfinished::new(shared),
        })
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.unfinished.0.claimed().remove(&self.path);
    }
}

/// A file that no other recording may write to, and a recording that is counted.
#[derive(Debug)]
pub(crate) struct Claim {
    name: Name,
    whose: Option<Arc<Whose>>,
}

impl Claim {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        whose: Option<Arc<Whose>>,
        path: &Path,
        name: &str,
    ) -> Result<Self, RecordError> {
        let taken = Name::take(shared, path);
        let taken = taken.ok_or_else(|| RecordError::Busy(name.to_owned()))?;
        shared.counters.open.fetch_add(1, Relaxed);
        shared.counters.started.fetch_add(1, Relaxed);
        Ok(Self { name: taken, whose })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.name.unfinished.0
    }

    pub(crate) fn path(&self) -> &Path {
        &self.name.path
    }

    /// Whose file it is, if nothing else says it.
    pub(crate) fn whose(&self) -> Option<&Arc<Whose>> {
        self.whose.as_ref()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared().counters.open.fetch_sub(1, Relaxed);
    }
}
