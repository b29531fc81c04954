//! What is recorded together: a room, a call, a mountpoint, an echo test. Its manifest tells which files it has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use portunus_files::manifest::Manifest;

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

/// Recordings that belong together. It ends with its last clone and its last recording.
#[derive(Debug, Clone)]
pub struct RecordedSession {
    state: Arc<State>,
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

#[derive(Debug)]
struct State {
    spec: SessionSpec,
    manifest: Mutex<Manifest>,
}

impl RecordedSession {
    pub(crate) fn new(spec: SessionSpec) -> Self {
        let server = concat!("portunus ", env!("CARGO_PKG_VERSION"));
        let mut manifest = Manifest::new(server, spec.plugin, SystemTime::now().into());
        manifest.room.clone_from(&spec.room);
        manifest.description.clone_from(&spec.description);
        Self {
            state: Arc::new(State {
                spec,
                manifest: Mutex::new(manifest),
            }),
        }
    }

    /// What it is.
    pub fn spec(&self) -> &SessionSpec {
        &self.state.spec
    }

    /// What it has come to so far.
    pub fn manifest(&self) -> Manifest {
        let manifest = self.state.manifest.lock();
        manifest.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
