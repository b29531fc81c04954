//! The state that all recordings of a server share: counters, names in use, and disks.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::TapRoom;

use crate::completions::Completions;
use crate::disk::Disks;
use crate::pending::{Pending, Unfinished};
use crate::{RecordError, RecorderConfig, Whose};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RecorderConfig,
    pub(crate) counters: Counters,
    pub(crate) disks: Disks,
    /// The room for bytes that wait for disks.
    pub(crate) room: Arc<TapRoom>,
    pub(crate) completions: Completions,
    /// The files that are being written.
    claimed: Mutex<HashSet<PathBuf>>,
    /// Files, manifests and commands that are not complete yet.
    pub(crate) pending: Arc<Pending>,
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
            pending: Arc::default(),
            config,
        }
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name in use. No other file may have it.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) path: PathBuf,
    shared: Arc<Shared>,
    _unfinished: Unfinished,
}

impl Name {
    /// Returns `None` if another file has the name.
    pub(crate) fn take(shared: &Arc<Shared>, path: &Path) -> Option<Self> {
        let is_free = shared.claimed().insert(path.to_owned());
        is_free.then(|| Self {
            path: path.to_owned(),
            shared: Arc::clone(shared),
            _unfinished: Unfinished::new(&shared.pending),
        })
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.shared.claimed().remove(&self.path);
    }
}

/// The exclusive right to write a file, and its place among the counted recordings.
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
        &self.name.shared
    }

    pub(crate) fn path(&self) -> &Path {
        &self.name.path
    }

    /// The owner, if the file has no session.
    pub(crate) fn whose(&self) -> Option<&Arc<Whose>> {
        self.whose.as_ref()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared().counters.open.fetch_sub(1, Relaxed);
    }
}
