//! The recorder of the plugins.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use portunus_config::takes_files;
use portunus_media::TapOptions;
use tokio::sync::broadcast;

use crate::disk::NotDone;
use crate::new_file::check_room;
use crate::place::Places;
use crate::shared::{Claim, Shared};
use crate::{
    Completed, Format, Medium, RecordError, RecordedFile, RecordedMedia, RecordedSession,
    RecorderConfig, SessionSpec, Whose,
};

/// Audio packets or messages that may wait for the disk: 40 s.
const WAITING: usize = 2_048;
/// Video packets that may wait for the disk: 8 s at 10 Mbit/s.
const WAITING_VIDEO: usize = 8_192;

/// Records sources of the media graph; cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder {
    pub(crate) shared: Arc<Shared>,
    pub(crate) places: Arc<Places>,
    pub(crate) whose: Option<Arc<Whose>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(RecorderConfig::default())
    }
}

/// The counters of recordings since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderTotals {
    /// Files that are being written.
    pub open: u64,
    /// Files that were started.
    pub started: u64,
    /// Files that ended by an error.
    pub failed: u64,
    /// Files that are complete, whatever ended them.
    pub completed: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Packets, frames and messages written.
    pub frames: u64,
    /// Packets and messages dropped because the disk was too slow.
    pub dropped: u64,
    /// Gaps in tracks of containers.
    pub gaps: u64,
    /// Commands that were run for complete files.
    pub commands: u64,
    /// Commands that failed, could not start or took too long.
    pub commands_failed: u64,
    /// Complete files without a command, because too many waited.
    pub commands_lost: u64,
    /// Bytes that wait for disks now.
    pub waiting_bytes: u64,
    /// The lag of the slowest disk.
    pub disk_lag: Duration,
}

impl Recorder {
    /// Returns a recorder with this configuration.
    pub fn new(config: RecorderConfig) -> Self {
        Self {
            places: Arc::new(Places::new(config.dir.as_deref(), &config.folders)),
            shared: Arc::new(Shared::new(config)),
            whose: None,
        }
    }

    /// Returns a recorder whose files are in this folder and in no other. The folder is relative to
    /// `recording.dir`.
    pub fn in_folder(&self, folder: &Path) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            places: Arc::new(self.places.only(folder)),
            whose: self.whose.clone(),
        }
    }

    /// Returns a recorder with this owner for files that have no other.
    pub fn on_behalf_of(&self, whose: Whose) -> Self {
        Self {
            whose: Some(Arc::new(whose)),
            ..self.clone()
        }
    }

    /// Takes a name for a file.
    pub(crate) fn claim_name(&self, path: &Path, name: &str) -> Result<Claim, RecordError> {
        Claim::new(&self.shared, self.whose.clone(), path, name)
    }

    /// Returns the folder that names are relative to.
    pub fn folder(&self) -> &Path {
        self.places.dir()
    }

    /// Makes a file for a recording that the caller writes. `name` and `dir` are as in a
    /// [`RecordingSpec`]. `.extension` is added unless the name has it. It blocks: to be called by
    /// [`Recorder::blocking`], so that the command for complete files can run.
    pub fn create_file(
        &self,
        dir: Option<&str>,
        name: &str,
        extension: &str,
    ) -> Result<RecordedFile, RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let plain = name.strip_suffix(extension);
        let plain = plain.and_then(|name| name.strip_suffix('.'));
        let name = plain.filter(|name| !name.is_empty()).unwrap_or(name);
        let path = self.places.file(dir, name, extension)?;
        let claim = self.claim_name(&path, name)?;
        RecordedFile::create(claim, &self.places, name)
    }

    /// Runs blocking work for a file on the thread of its disk, so that a disk that hangs holds up
    /// nothing else. Fails after five seconds, and drops a later result. Needs tokio's runtime.
    pub async fn blocking<T: Send + 'static, E: From<RecordError> + Send + 'static>(
        &self,
        dir: Option<&str>,
        name: &str,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let extension = Format::default().extension();
        let path = self.places.file(dir, name, extension)?;
        self.on_disk_of(&path, name, work, drop).await
    }

    /// Runs blocking work for the file at this path. A result that comes too late is undone.
    pub(crate) async fn on_disk_of<T: Send + 'static, E: From<RecordError> + Send + 'static>(
        &self,
        path: &Path,
        name: &str,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
        undo: impl FnOnce(T) + Send + 'static,
    ) -> Result<T, E> {
        // The result may be a file that is written on a thread without a runtime.
        self.shared.completions.in_this_runtime();
        let disk = self.shared.disks.near(path);
        let undo = |late: Result<T, E>| {
            if let Ok(late) = late {
                undo(late);
            }
        };
        let done = self.shared.disks.ask(&disk, work, undo).await;
        done.map_err(|NotDone| RecordError::Stalled(name.to_owned()))?
    }

    /// Returns the options for tapping a source.
    pub(crate) fn tap_options(&self, media: &RecordedMedia) -> TapOptions {
        TapOptions {
            capacity: match media.medium() {
                Medium::Video => WAITING_VIDEO,
                Medium::Audio | Medium::Data => WAITING,
            },
            room: Some(Arc::clone(&self.shared.room)),
            ..TapOptions::default()
        }
    }

    /// Returns a session for recordings that belong together. They name it in `of`.
    pub fn session(&self, spec: SessionSpec) -> RecordedSession {
        RecordedSession::new(&self.shared, &self.places, spec)
    }

    /// Returns the suffix of files that are being written. Empty: no suffix.
    pub fn temporary(&self) -> &str {
        &self.shared.config.temporary
    }

    /// Returns the default format.
    pub fn format(&self) -> Format {
        self.shared.config.format
    }

    /// Subscribes to complete files.
    pub fn completed(&self) -> broadcast::Receiver<Completed> {
        self.shared.completions.subscribe()
    }

    /// Checks that recordings of this name could be made, without asking the file system.
    pub fn check(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        self.check_as(dir, name, Format::Mjr)
    }

    /// Like [`Recorder::check`], for files of this format.
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

    /// Checks the name, makes the folder, and checks that it is writable and that its disk has free
    /// space.
    pub async fn check_folder(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        self.check(dir, name)?;
        let extension = Format::default().extension();
        let path = self.places.file(dir, name, extension)?;
        let (places, of) = (Arc::clone(&self.places), dir.unwrap_or(name).to_owned());
        let keep = self.shared.config.keep_free_mb;
        let make = move || {
            let name = || of.clone();
            let failed = |error| RecordError::Create {
                name: name(),
                error,
            };
            let path = places.make_folder(&path).map_err(failed)?;
            let folder = path.parent().unwrap_or(&path);
            takes_files(folder).map_err(failed)?;
            check_room(rustix::fs::statvfs(folder), keep, name)
        };
        self.blocking(dir, name, make).await
    }

    /// Returns the counters since the start.
    pub fn totals(&self) -> RecorderTotals {
        let counters = &self.shared.counters;
        RecorderTotals {
            open: counters.open.load(Relaxed),
            started: counters.started.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            completed: counters.completed.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            frames: counters.frames.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
            gaps: counters.gaps.load(Relaxed),
            commands: counters.commands.load(Relaxed),
            commands_failed: counters.commands_failed.load(Relaxed),
            commands_lost: counters.commands_lost.load(Relaxed),
            waiting_bytes: self.shared.room.held() as u64,
            disk_lag: self.shared.disks.lag(),
        }
    }

    /// Waits until no recording is left, all files and manifests are complete, and their commands
    /// have run.
    pub async fn finished(&self) {
        self.shared.pending.finished().await;
    }

    /// Treats a folder as a disk that can stall.
    #[cfg(feature = "testing")]
    pub fn pretend_disk(&self, disk: Arc<crate::StallingDisk>) {
        self.shared.disks.pretend(disk);
    }
}
