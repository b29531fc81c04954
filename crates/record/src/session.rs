//! What is recorded together: a room, a call, a mountpoint, an echo test. Its manifest tells which files it has.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use portunus_files::manifest::{self, FileEnd, Manifest};
use portunus_files::mjr::UnixMicros;

use crate::control::Control;
use crate::manifest_file::{ManifestFile, make};
use crate::place::Places;
use crate::shared::{Shared, Unfinished};
use crate::target::Target;
use crate::{Completed, Format, RecordError, Whose};

/// Recordings to be, that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpec {
    /// The package of the plugin.
    pub plugin: &'static str,
    /// The folder, as a client or the configuration names it; none: the recorder's own.
    pub dir: Option<String>,
    /// The manifest's name without its extension.
    pub name: String,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
    /// What the room or mountpoint is called.
    pub description: Option<String>,
}

/// Recordings that belong together. The manifest is made with the first file, and ends with the last clone of this and the last
/// recording that is part of it.
#[derive(Debug, Clone)]
pub struct RecordedSession {
    held: Arc<Held>,
}

/// Recordings that belong together, as long as there are any.
#[derive(Debug, Clone, Default)]
pub struct WeakSession(Weak<Held>);

impl WeakSession {
    /// They, unless all have ended.
    pub fn upgrade(&self) -> Option<RecordedSession> {
        let held = self.0.upgrade()?;
        Some(RecordedSession { held })
    }
}

/// Whose recording it is.
#[derive(Debug, Clone)]
pub struct Participant {
    /// What it belongs to.
    pub session: RecordedSession,
    /// The id in the room.
    pub id: String,
    /// The name that others see.
    pub display: Option<String>,
}

/// What all clones hold together.
#[derive(Debug)]
struct Held {
    state: Arc<SessionState>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.state.control.stop();
    }
}

#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) spec: SessionSpec,
    pub(crate) places: Arc<Places>,
    pub(crate) shared: Arc<Shared>,
    /// Stopped once nobody records any more.
    pub(crate) control: Arc<Control>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) manifest: Manifest,
    /// What has changed since it was written.
    pub(crate) news: News,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    None,
    /// Files have become longer.
    Longer,
    /// Something else.
    Change,
}

/// Where the manifest is.
#[derive(Debug)]
enum Place {
    /// It has no file yet.
    None,
    /// Its file is being made.
    Making,
    At(PathBuf),
    /// It cannot have a file, or is not to.
    Nowhere,
}

impl RecordedSession {
    pub(crate) fn new(shared: &Arc<Shared>, places: &Arc<Places>, spec: SessionSpec) -> Self {
        let server = concat!("portunus ", env!("CARGO_PKG_VERSION"));
        let mut manifest = Manifest::new(server, spec.plugin, SystemTime::now().into());
        manifest.room.clone_from(&spec.room);
        manifest.description.clone_from(&spec.description);
        let place = match shared.config.manifest {
            true => Place::None,
            false => Place::Nowhere,
        };
        let state = SessionState {
            spec,
            places: Arc::clone(places),
            shared: Arc::clone(shared),
            control: Arc::default(),
            inner: Mutex::new(Inner {
                manifest,
                news: News::Change,
                place,
            }),
        };
        Self {
            held: Arc::new(Held {
                state: Arc::new(state),
            }),
        }
    }

    /// The same, which does not keep it from its end.
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.held))
    }

    /// What it has come to so far.
    pub fn manifest(&self) -> Manifest {
        self.held.state.lock().manifest.clone()
    }

    /// Notes that an m-line of somebody is in no file.
    pub(crate) fn leave_out(&self, of: &Participant, mid: &str) {
        let mut inner = self.held.state.lock();
        let display = of.display.as_deref();
        inner.manifest.leave_out(&of.id, display, mid);
        inner.news = News::Change;
    }

    /// Where the manifest is; none as long as it has no file.
    pub fn manifest_path(&self) -> Option<PathBuf> {
        match &self.held.state.lock().place {
            Place::At(path) => Some(path.clone()),
            Place::None | Place::Making | Place::Nowhere => None,
        }
    }
}

impl SessionState {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the manifest's file made by the thread of its disk, unless that was tried before.
    fn open(self: &Arc<Self>) {
        let mut inner = self.lock();
        if !matches!(inner.place, Place::None) {
            return;
        }
        let Ok(path) = self.path() else {
            inner.place = Place::Nowhere;
            tracing::warn!(
                manifest = self.spec.name,
                "there is no manifest: a wrong name"
            );
            return;
        };
        inner.place = Place::Making;
        drop(inner);
        let disk = self.shared.disks.near(&path);
        let (this, unfinished) = (Arc::clone(self), Unfinished::new(&self.shared));
        let sent = self.shared.disks.send(&disk, move || {
            this.make();
            drop(unfinished);
        });
        if !sent {
            self.lock().place = Place::Nowhere;
            tracing::warn!(
                manifest = self.spec.name,
                "there is no manifest: no thread takes it"
            );
        }
    }

    /// Where the manifest is if its name is not taken, with links in it, if there are any.
    fn path(&self) -> Result<PathBuf, RecordError> {
        self.places
            .file(self.spec.dir.as_deref(), &self.spec.name, "json")
    }

    /// Makes the manifest's file. It blocks.
    fn make(self: &Arc<Self>) {
        let begun = make(self).and_then(|(name, disk)| {
            let path = name.path.clone();
            let file = |waker| -> Box<dyn crate::disk::Job> {
                self.control.set_waker(waker);
                Box::new(ManifestFile::new(Arc::clone(self), name, disk.clone()))
            };
            // Whoever looks finds it there once there is somebody who writes it.
            let mut inner = self.lock();
            self.shared.disks.give(&disk, file)?;
            inner.place = Place::At(path);
            Ok(())
        });
        if let Err(error) = begun {
            self.lock().place = Place::Nowhere;
            tracing::warn!(manifest = self.spec.name, "there is no manifest: {error}");
        }
    }
}

/// A file in the manifest of what it belongs to.
#[derive(Debug)]
pub(crate) struct Entry {
    of: Participant,
    /// Its place among the participant's files.
    index: usize,
}

/// How a file has ended: why, what was wrong, how long it is, and how many bytes.
pub(crate) type FileDone = (FileEnd, Option<String>, Duration, u64);

impl Entry {
    /// Names a file; none if there are too many.
    pub(crate) fn begin(
        of: &Participant,
        target: &Target,
        (format, part): (Format, u32),
        fill: impl FnOnce(&mut manifest::File),
    ) -> Option<Self> {
        let state = &of.session.held.state;
        state.open();
        let manifest = state.path();
        let mut inner = state.lock();
        let path = target.claimed();
        let folder = manifest.as_deref().ok().and_then(Path::parent);
        let file = folder.and_then(|folder| path.strip_prefix(folder).ok());
        let name = file.or_else(|| path.file_name().map(Path::new));
        let mut file = manifest::File {
            file: name.unwrap_or(path).to_string_lossy().into_owned(),
            format: format.extension().to_owned(),
            part,
            ..manifest::File::default()
        };
        fill(&mut file);
        let display = of.display.as_deref();
        let index = inner.manifest.add_file(&of.id, display, file)?;
        inner.news = News::Change;
        Some(Self {
            of: of.clone(),
            index,
        })
    }

    /// Whether it is known by now where the manifest is, or that there is none.
    pub(crate) fn has_place(&self) -> bool {
        let state = self.of.session.held.state.lock();
        !matches!(state.place, Place::None | Place::Making)
    }

    /// Changes what is said of the file; `is_news`: so that people want to know it soon.
    pub(crate) fn update(&self, is_news: bool, change: impl FnOnce(&mut manifest::File)) {
        let mut inner = self.of.session.held.state.lock();
        let inner = &mut *inner;
        let began = inner.manifest.started_us;
        let offset = |started| manifest::offset_ms(UnixMicros(began), UnixMicros(started));
        let mut is_longer = false;
        let is_there = inner.manifest.change_file(&self.of.id, self.index, |file| {
            let before = (file.bytes, file.duration_ms, file.started_us);
            change(file);
            file.offset_ms = file.started_us.map(offset);
            is_longer = before != (file.bytes, file.duration_ms, file.started_us);
        });
        let news = match (is_there, is_news) {
            (true, true) => News::Change,
            (true, false) if is_longer => News::Longer,
            _ => News::None,
        };
        inner.news = inner.news.max(news);
    }

    /// The file has ended: its manifest and all others are told.
    pub(crate) fn complete(
        entry: Option<Self>,
        (of, whose): (Option<&Participant>, Option<&Whose>),
        shared: &Arc<Shared>,
        path: PathBuf,
        (end, error, duration, bytes): FileDone,
    ) -> Completed {
        if let Some(entry) = &entry {
            entry.update(true, |file| {
                file.complete = end != FileEnd::Failed;
                file.end = Some(end);
                file.error = error;
                file.duration_ms = duration.as_secs_f64() * 1_000.0;
                file.bytes = bytes;
            });
        }
        let spec = of.map(|of| &of.session.held.state.spec);
        let completed = Completed {
            file: path,
            manifest: of.and_then(|of| of.session.manifest_path()),
            plugin: spec.map(|spec| spec.plugin).or(whose.map(|it| it.plugin)),
            room: match spec {
                Some(spec) => spec.room.clone(),
                None => whose.and_then(|it| it.room.clone()),
            },
            participant: of.map(|of| of.id.clone()),
            duration,
            bytes,
            end,
        };
        shared.completed(completed.clone());
        completed
    }
}
