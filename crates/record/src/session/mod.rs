//! Sessions: recordings that belong together, such as those of a room, a call, a mountpoint or an
//! echo test. A manifest lists their files.

mod entry;
mod manifest_file;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use portunus_files::manifest::Manifest;

use crate::RecordError;
use crate::control::Control;
use crate::pending::Unfinished;
use crate::place::Places;
use crate::shared::Shared;

pub(crate) use entry::{Entry, FileDone, Owner, complete};
use manifest_file::{ManifestFile, make};

/// The description of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpec {
    /// The package of the plugin.
    pub plugin: &'static str,
    /// The folder, as a client or the configuration names it. `None`: the recorder's own.
    pub dir: Option<String>,
    /// The name of the manifest without its extension.
    pub name: String,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
    /// The name of the room or mountpoint.
    pub description: Option<String>,
}

/// A session. Its manifest is made with the first file. It ends with the last clone of this and the
/// last recording of the session.
#[derive(Debug, Clone)]
pub struct RecordedSession {
    held: Arc<Held>,
}

/// A session that ends without this.
#[derive(Debug, Clone, Default)]
pub struct WeakSession(Weak<Held>);

impl WeakSession {
    /// Returns the session unless it has ended.
    pub fn upgrade(&self) -> Option<RecordedSession> {
        let held = self.0.upgrade()?;
        Some(RecordedSession { held })
    }
}

/// The owner of a recording.
#[derive(Debug, Clone)]
pub struct Participant {
    /// The session.
    pub session: RecordedSession,
    /// The id in the room.
    pub id: String,
    /// The name that others see.
    pub display: Option<String>,
}

/// The state that all clones hold.
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
    /// Stopped once the session ends.
    pub(crate) control: Arc<Control>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) manifest: Manifest,
    /// The changes since the last write.
    pub(crate) news: News,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    None,
    /// Files have become longer.
    Longer,
    /// Anything else.
    Change,
}

/// The state of the manifest's file.
#[derive(Debug)]
enum Place {
    /// It has no file yet.
    None,
    /// Its file is being made.
    Making,
    At(PathBuf),
    /// It cannot have a file, or must not.
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

    /// Returns a reference that does not keep the session alive.
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.held))
    }

    /// Returns the manifest so far.
    pub fn manifest(&self) -> Manifest {
        self.held.state.lock().manifest.clone()
    }

    /// Notes that an m-line of a participant is in no file.
    pub(crate) fn leave_out(&self, of: &Participant, mid: &str) {
        let mut inner = self.held.state.lock();
        let display = of.display.as_deref();
        inner.manifest.leave_out(&of.id, display, mid);
        inner.news = News::Change;
    }

    /// Returns the path of the manifest, or `None` if it has no file.
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

    /// Has the manifest's file made by its disk's thread, unless that was tried before.
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
        let (this, unfinished) = (Arc::clone(self), Unfinished::new(&self.shared.pending));
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

    /// Returns the wanted path of the manifest, which may have links in it.
    fn path(&self) -> Result<PathBuf, RecordError> {
        self.places
            .file(self.spec.dir.as_deref(), &self.spec.name, "json")
    }

    /// Makes the manifest's file. It blocks.
    fn make(self: &Arc<Self>) {
        let made = make(self).and_then(|(name, disk)| {
            let path = name.path.clone();
            let file = |waker| -> Box<dyn crate::disk::Job> {
                self.control.set_waker(waker);
                Box::new(ManifestFile::new(Arc::clone(self), name, disk.clone()))
            };
            // The path is set once the writer exists.
            let mut inner = self.lock();
            self.shared.disks.give(&disk, file)?;
            inner.place = Place::At(path);
            Ok(())
        });
        if let Err(error) = made {
            self.lock().place = Place::Nowhere;
            tracing::warn!(manifest = self.spec.name, "there is no manifest: {error}");
        }
    }
}
