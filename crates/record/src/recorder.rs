//! The recorder: what all recordings of a server share.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::{MediaPlane, RouteOptions, SourceRef, TapOptions};
use tokio::sync::{Notify, watch};

use crate::place::Places;
use crate::recording::{Recording, State};
use crate::task::{self, Job};
use crate::{RecordError, RecorderConfig, RecordingSpec};

/// Records sources of the media graph; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    shared: Arc<Shared>,
}

/// What recordings did since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderTotals {
    /// Recordings that there are.
    pub open: u64,
    /// Recordings that were begun.
    pub started: u64,
    /// Recordings that ended by an error.
    pub failed: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Packets and messages written.
    pub frames: u64,
    /// Packets and messages that were not, because the disk was too slow.
    pub dropped: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RecorderConfig,
    pub(crate) places: Places,
    /// The files that are being written.
    claimed: Mutex<HashSet<PathBuf>>,
    pub(crate) counters: Counters,
    /// Told when a recording ends.
    ended: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) open: AtomicU64,
    pub(crate) started: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) frames: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(RecorderConfig::default())
    }
}

impl Shared {
    fn new(config: RecorderConfig) -> Self {
        Self {
            places: Places::new(&config),
            config,
            claimed: Mutex::default(),
            counters: Counters::default(),
            ended: Notify::new(),
        }
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    /// A recorder that does as it is told.
    pub fn new(config: RecorderConfig) -> Self {
        Self {
            shared: Arc::new(Shared::new(config)),
        }
    }

    /// Records `from` until the [`Recording`] is dropped or the source ends; with a closed gate only once that is
    /// opened. The file is made beside this: see [`Recording::outcome`]. To be called within tokio's runtime.
    pub fn start(
        &self,
        media: &MediaPlane,
        from: impl Into<SourceRef>,
        open: bool,
        spec: RecordingSpec,
    ) -> Result<Recording, RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let path = self.shared.places.file(spec.dir.as_deref(), &spec.name)?;
        let claim = Claim::new(&self.shared, path.clone(), &spec.name)?;
        let options = RouteOptions {
            enabled: open,
            ..RouteOptions::default()
        };
        let (route, tap) = media.tap(from, options.clone(), TapOptions::default());
        let (stop, stopped) = watch::channel(());
        let (told, state) = watch::channel(State::Opening);
        let job = Job {
            tap,
            claim,
            spec,
            stopped,
            state: told,
        };
        tokio::spawn(task::run(job));
        Ok(Recording::new(
            media.clone(),
            route,
            options,
            path,
            state,
            stop,
        ))
    }

    /// Checks that recordings of this name could be made, but for what only the file system knows.
    pub fn check(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        self.shared.places.file(dir, name).map(drop)
    }

    /// What was recorded since the start.
    pub fn totals(&self) -> RecorderTotals {
        let counters = &self.shared.counters;
        RecorderTotals {
            open: counters.open.load(Relaxed),
            started: counters.started.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            frames: counters.frames.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
        }
    }

    /// Waits until no recording is left: their files are complete then.
    pub async fn finished(&self) {
        loop {
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            if self.shared.counters.open.load(Relaxed) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// A file that no other recording may write to, and a recording that is counted.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: PathBuf,
}

impl Claim {
    fn new(shared: &Arc<Shared>, path: PathBuf, name: &str) -> Result<Self, RecordError> {
        if !shared.claimed().insert(path.clone()) {
            return Err(RecordError::Busy(name.to_owned()));
        }
        shared.counters.open.fetch_add(1, Relaxed);
        shared.counters.started.fetch_add(1, Relaxed);
        Ok(Self {
            shared: Arc::clone(shared),
            path,
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared.claimed().remove(&self.path);
        self.shared.counters.open.fetch_sub(1, Relaxed);
        self.shared.ended.notify_waiters();
    }
}
