//! The handle of a recording, for its plugin.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use portunus_media::{MediaPlane, RouteId, RouteOptions};
use tokio::sync::watch;

use crate::control::{Control, Listener};
use crate::outcome::State;
use crate::{Completed, Outcome};

/// A recording. Dropping it ends it; packets so far are written.
pub struct Recording {
    media: MediaPlane,
    route: RouteId,
    options: RouteOptions,
    path: PathBuf,
    state: watch::Receiver<State>,
    control: Arc<Control>,
}

impl Recording {
    pub(crate) fn new(
        media: MediaPlane,
        route: RouteId,
        options: RouteOptions,
        path: PathBuf,
        state: watch::Receiver<State>,
        control: Arc<Control>,
    ) -> Self {
        Self {
            media,
            route,
            options,
            path,
            state,
            control,
        }
    }

    /// Returns the name of the file, without folders.
    pub fn file_name(&self) -> String {
        let name = self.path.file_name().map(OsStr::to_string_lossy);
        name.unwrap_or_default().into_owned()
    }

    /// Opens or closes the gate. While it is closed nothing is recorded, and no gap is left.
    /// Opening it requests a keyframe of video.
    pub fn set_open(&mut self, open: bool) {
        if self.options.enabled != open {
            self.options.enabled = open;
            self.media.set_route(self.route, self.options.clone());
        }
    }

    /// Ends it with the first packet at this time or later.
    pub fn end_at(&self, until: Instant) {
        self.control.end_at(until);
    }

    /// Whether it has ended: with its source, at its time, or by a failure.
    pub fn is_over(&self) -> bool {
        matches!(&*self.state.borrow(), State::Ended(_))
    }

    /// Sets the function that gets the file once it is complete. The writing thread calls it, so it
    /// must not block.
    pub fn on_complete(&self, listener: impl Fn(&Completed) + Send + Sync + 'static) {
        self.control.listen(Listener(Arc::new(listener)));
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.control.listen(listener);
    }

    /// Returns its future outcome.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.state.clone())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.media.remove_route(self.route);
        self.control.stop();
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({:?})", self.path)
    }
}
