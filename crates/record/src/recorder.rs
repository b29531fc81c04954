//! The recorder: what plugins record with.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use portunus_config::takes_files;
use portunus_media::{MediaPlane, RouteOptions, SourceRef, TapOptions};
use tokio::sync::{broadcast, watch};

use crate::control::Control;
use crate::disk::NotDone;
use crate::file::{RecordedFile, check_room};
use crate::opening;
use crate::output::Output;
use crate::place::Places;
use crate::recording::{Recording, State};
use crate::shared::{Claim, Shared};
use crate::{
    Completed, Format, JointRecording, JointSpec, Medium, RecordError, RecordedMedia,
    RecordedSession, RecorderConfig, RecordingSpec, SessionSpec, Whose,
};

/// Packets of sound, or messages, that may wait for the disk: 40 s of them.
const WAITING: usize = 2_048;
/// Packets of video that may wait for the disk: 8 s of 10 Mbit/s.
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

/// What recordings did since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderTotals {
    /// Files that are being written.
    pub open: u64,
    /// Files that were begun.
    pub started: u64,
    /// Files that ended by an error.
    pub failed: u64,
    /// Files that nothing more is written into, whatever they ended by.
    pub completed: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Packets, frames and messages written.
    pub frames: u64,
    /// Packets and messages that were not, because the disk was too slow.
    pub dropped: u64,
    /// Gaps in tracks of containers.
    pub gaps: u64,
    /// Commands that were run for complete files.
    pub commands: u64,
    /// Commands that failed, could not be run or took too long.
    pub commands_failed: u64,
    /// Complete files for which no command was run, because too many waited.
    pub commands_lost: u64,
    /// Bytes that wait for disks now.
    pub waiting_bytes: u64,
    /// How far the disk that is latest is behind.
    pub disk_lag: Duration,
}

impl Recorder {
    /// A recorder that does as it is told.
    pub fn new(config: RecorderConfig) -> Self {
        Self {
            places: Arc::new(Places::new(&config)),
            shared: Arc::new(Shared::new(config)),
            whose: None,
        }
    }

    /// The same recorder, whose files are in a folder of their own and in no other: names are relative to it, and it is so
    /// to `recording.dir`.
    pub fn in_folder(&self, folder: &Path) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            places: Arc::new(self.places.only(folder)),
            whose: self.whose.clone(),
        }
    }

    /// The same recorder, whose files are said to be these as far as nothing else says it.
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
        Ok(self.begin(media, from.into(), open, spec, opening::File::ToMake(claim)))
    }

    /// Makes a file for a recording that somebody else writes: one that is not of the packets of a source. `name` and
    /// `dir` are as of a [`RecordingSpec`]; `.extension` is added unless the name ends with it. It blocks: to be called by
    /// [`Recorder::blocking`], so that the command for complete files can be run.
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
        let claim = self.claim_name(&path, name)?;
        RecordedFile::create(claim, &self.places, name)
    }

    /// Does what may block for a file of this folder and name, by the thread of the disk that it is on: a disk that hangs
    /// holds nothing else then. It is given up after five seconds; what comes of it later is dropped. To be called within tokio's
    /// runtime.
    pub async fn blocking<T: Send + 'static, E: From<RecordError> + Send + 'static>(
        &self,
        (dir, name): (Option<&str>, &str),
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let extension = Format::default().extension();
        let path = self.places.file(dir, name, extension)?;
        self.on_disk_of((&path, name), work, drop).await
    }

    /// The same for a file at this place; what comes too late is undone.
    pub(crate) async fn on_disk_of<T: Send + 'static, E: From<RecordError> + Send + 'static>(
        &self,
        (path, name): (&Path, &str),
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
        undo: impl FnOnce(T) + Send + 'static,
    ) -> Result<T, E> {
        // What becomes of this may be a file that somebody else writes, on a thread of its own.
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

    /// Makes a file for something that is not there yet.
    pub async fn prepare(&self, spec: RecordingSpec) -> Result<Prepared, RecordError> {
        let claim = self.claim(&spec)?;
        let output = opening::make(self, claim, &spec).await;
        if output.is_err() {
            self.shared.counters.failed.fetch_add(1, Relaxed);
        }
        Ok(Prepared {
            recorder: self.clone(),
            output: output?,
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
        self.claim_name(&path, &spec.name)
    }

    fn begin(
        &self,
        media: &MediaPlane,
        from: SourceRef,
        open: bool,
        spec: RecordingSpec,
        file: opening::File,
    ) -> Recording {
        let path = file.path().to_owned();
        let options = RouteOptions {
            enabled: open,
            ..RouteOptions::default()
        };
        let (route, tap) = media.tap(from, options.clone(), self.tap_options(&spec.media));
        let (told, state) = watch::channel(State::Opening);
        let control = Arc::new(Control::default());
        let opening = opening::Opening {
            recorder: self.clone(),
            tap,
            spec,
            control: Arc::clone(&control),
            state: told,
        };
        self.shared.completions.in_this_runtime();
        tokio::spawn(opening.run(file));
        Recording::new(media.clone(), route, options, path, state, control)
    }

    /// How sources are tapped.
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
        RecordedSession::new(&self.shared, &self.places, spec)
    }

    /// What names of files end in, behind a dot, while they are written; empty: nothing.
    pub fn temporary(&self) -> &str {
        &self.shared.config.temporary
    }

    /// What files are like where nobody says it.
    pub fn format(&self) -> Format {
        self.shared.config.format
    }

    /// Tells of files that are complete, from now on.
    pub fn completed(&self) -> broadcast::Receiver<Completed> {
        self.shared.completions.subscribe()
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

    /// The same, and makes the folder. It has to take files, and its disk has to have room for them.
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
        self.blocking((dir, name), make).await
    }

    /// What was recorded since the start.
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

    /// Waits until no recording is left: their files and manifests are complete then, and the commands for them have run.
    pub async fn finished(&self) {
        self.shared.finished().await;
    }

    /// Takes a folder for a disk of its own that can stall.
    #[cfg(feature = "testing")]
    pub fn pretend_disk(&self, disk: Arc<crate::StallingDisk>) {
        self.shared.disks.pretend(disk);
    }
}

/// A file that was made for something to be recorded.
#[derive(Debug)]
pub struct Prepared {
    recorder: Recorder,
    spec: RecordingSpec,
    output: Output,
}

impl Prepared {
    /// Records `from` into it, as [`Recorder::start`] does.
    pub fn start(self, media: &MediaPlane, from: impl Into<SourceRef>, open: bool) -> Recording {
        let Self {
            recorder,
            spec,
            output,
        } = self;
        let file = opening::File::Made(Box::new(output));
        recorder.begin(media, from.into(), open, spec, file)
    }

    /// Deletes it: there is nothing to be recorded after all.
    pub async fn discard(self) {
        let Self {
            recorder, output, ..
        } = self;
        let disk = output.target.disk().clone();
        let discard = move || output.target.discard();
        let _ = recorder.shared.disks.ask(&disk, discard, drop).await;
    }
}
