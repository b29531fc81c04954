//! The recorder: what all recordings of a server share.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::{MediaPlane, RouteOptions, SourceRef, TapOptions};
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::spawn_blocking;

use crate::file::RecordedFile;
use crate::output::Output;
use crate::place::Places;
use crate::recording::{Recording, State};
use crate::task::{self, Job};
use crate::{
    Completed, Format, JointRecording, JointSpec, RecordError, RecordedSession, RecorderConfig,
    RecordingSpec, SessionSpec,
};

/// Records sources of the media graph; cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    places: Arc<Places>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(RecorderConfig::default())
    }
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
    /// The files that are being written.
    claimed: Mutex<HashSet<PathBuf>>,
    pub(crate) counters: Counters,
    /// Told when a recording ends.
    ended: Notify,
    /// Files that are complete.
    completed: broadcast::Sender<Completed>,
}

/// Complete files that may wait for somebody who is told of them.
const COMPLETED: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) open: AtomicU64,
    pub(crate) started: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) frames: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl Shared {
    fn new(config: RecorderConfig) -> Self {
        Self {
            config,
            claimed: Mutex::default(),
            counters: Counters::default(),
            ended: Notify::new(),
            completed: broadcast::Sender::new(COMPLETED),
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
            places: Arc::new(Places::new(&config)),
            shared: Arc::new(Shared::new(config)),
        }
    }

    /// The same recorder, whose files are in a folder of their own and in no other: names are relative to it, and it is so
    /// to `recording.dir`.
    pub fn in_folder(&self, folder: &Path) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            places: Arc::new(self.places.only(folder)),
        }
    }

    /// The folder that names are relative to.
    pub fn folder(&self) -> &Path {
        self.places.dir()
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
        let claim = self.claim(&spec)?;
        Ok(self.begin(media, from.into(), open, claim, spec, None))
    }

    /// Makes a file for a recording that somebody else writes: one that is not of the packets of a source. `name` and
    /// `dir` are as of a [`RecordingSpec`]; `.extension` is added unless the name ends with it. It blocks.
    pub fn create_file(
        &self,
        (dir, name): (Option<&str>, &str),
        extension: &str,
    ) -> Result<RecordedFile, RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let plain = name.strip_suffix(extension);
        let plain = plain.and_then(|name| name.strip_suffix('.'));
        let name = plain.filter(|name| !name.is_empty()).unwrap_or(name);
        let path = self.places.file(dir, name, extension)?;
        let claim = Claim::new(&self.shared, path, name)?;
        RecordedFile::create(claim, &self.places, name)
    }

    /// Makes a file for something that is not there yet.
    pub async fn prepare(&self, spec: RecordingSpec) -> Result<Prepared, RecordError> {
        let claim = self.claim(&spec)?;
        let created = task::create(&claim, &self.places, &spec).await;
        if created.is_err() {
            self.shared.counters.failed.fetch_add(1, Relaxed);
        }
        Ok(Prepared {
            recorder: self.clone(),
            output: created?,
            claim,
            spec,
        })
    }

    fn claim(&self, spec: &RecordingSpec) -> Result<Claim, RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let extension = spec.format.extension();
        let path = self
            .places
            .file(spec.dir.as_deref(), &spec.name, extension)?;
        Claim::new(&self.shared, path, &spec.name)
    }

    fn begin(
        &self,
        media: &MediaPlane,
        from: SourceRef,
        open: bool,
        claim: Claim,
        spec: RecordingSpec,
        output: Option<Output>,
    ) -> Recording {
        let path = claim.path.clone();
        let options = RouteOptions {
            enabled: open,
            ..RouteOptions::default()
        };
        let (route, tap) = media.tap(from, options.clone(), TapOptions::default());
        let (until, told_until) = watch::channel(None);
        let (told, state) = watch::channel(State::Opening);
        let job = Job {
            tap,
            claim,
            places: Arc::clone(&self.places),
            spec,
            output,
            until: told_until,
            state: told,
        };
        tokio::spawn(task::run(job));
        Recording::new(media.clone(), route, options, path, state, until)
    }

    /// Records several sources together until the [`JointRecording`] is dropped or all of them end. The files are made
    /// beside this: see [`JointRecording::outcome`]. To be called within tokio's runtime.
    pub fn joint(
        &self,
        media: &MediaPlane,
        spec: JointSpec,
    ) -> Result<JointRecording, RecordError> {
        JointRecording::start(self, media, spec)
    }

    /// Recordings that belong together: it is named in their `of`.
    pub fn session(&self, spec: SessionSpec) -> RecordedSession {
        RecordedSession::new(spec)
    }

    /// What files are like where nobody says it.
    pub fn format(&self) -> Format {
        self.shared.config.format
    }

    /// Tells of files that are complete, from now on.
    pub fn completed(&self) -> broadcast::Receiver<Completed> {
        self.shared.completed.subscribe()
    }

    /// Checks that recordings of this name could be made, but for what only the file system knows.
    pub fn check(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        self.check_as(dir, name, Format::Mjr)
    }

    /// As [`Recorder::check`], of files of this format.
    pub fn check_as(
        &self,
        dir: Option<&str>,
        name: &str,
        format: Format,
    ) -> Result<(), RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        self.places.file(dir, name, format.extension()).map(drop)
    }

    /// The same, and makes the folder. It blocks.
    pub fn check_folder(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        self.check(dir, name)?;
        let extension = Format::default().extension();
        let path = self.places.file(dir, name, extension)?;
        let made = self.places.make_folder(&path).map(drop);
        made.map_err(|error| RecordError::Create {
            name: dir.unwrap_or(name).to_owned(),
            error,
        })
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

/// A file that was made for something to be recorded.
#[derive(Debug)]
pub struct Prepared {
    recorder: Recorder,
    claim: Claim,
    spec: RecordingSpec,
    output: Output,
}

impl Prepared {
    /// Records `from` into it, as [`Recorder::start`] does.
    pub fn start(self, media: &MediaPlane, from: impl Into<SourceRef>, open: bool) -> Recording {
        let Self {
            recorder,
            claim,
            spec,
            output,
        } = self;
        recorder.begin(media, from.into(), open, claim, spec, Some(output))
    }

    /// Deletes it: there is nothing to be recorded after all.
    pub async fn discard(self) {
        let Self { claim, output, .. } = self;
        let _ = spawn_blocking(move || output.discard()).await;
        drop(claim);
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
