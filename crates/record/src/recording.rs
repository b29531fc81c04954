//! A recording as its plugin holds it.

use std::ffi::OsStr;
use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use portunus_files::manifest::FileEnd;
use portunus_media::{MediaPlane, RouteId, RouteOptions};
use tokio::sync::watch;

use crate::control::{Control, Listener};
use crate::{Completed, RecordError};

/// A recording. To drop it ends it: what came before is written.
pub struct Recording {
    media: MediaPlane,
    route: RouteId,
    options: RouteOptions,
    path: PathBuf,
    state: watch::Receiver<State>,
    control: Arc<Control>,
}

/// Why a recording ended as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was stopped.
    Stopped,
    /// Its source is gone.
    Source,
    /// Its time was up, see [`Recording::end_at`].
    Time,
}

/// Why the file of a recording ended.
pub(crate) fn why(ended: &Result<End, RecordError>) -> FileEnd {
    match ended {
        Ok(End::Source) => FileEnd::Left,
        Ok(End::Stopped | End::Time) => FileEnd::Stopped,
        Err(error) => error.end(),
    }
}

/// How far a recording is.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// The file is being made.
    Opening,
    Open,
    Ended(Result<End, Arc<RecordError>>),
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

    /// The file's name, without folders.
    pub fn file_name(&self) -> String {
        let name = self.path.file_name().map(OsStr::to_string_lossy);
        name.unwrap_or_default().into_owned()
    }

    /// Opens or closes the gate: while it is closed nothing is recorded, and no gap is left by that. Of video a keyframe
    /// is asked for when it opens.
    pub fn set_open(&mut self, open: bool) {
        if self.options.enabled != open {
            self.options.enabled = open;
            self.media.set_route(self.route, self.options.clone());
        }
    }

    /// Ends it by itself: with the first packet that comes at this time or later.
    pub fn end_at(&self, until: Instant) {
        self.control.end_at(until);
    }

    /// Whether it has ended: its source did, its time was up, or it failed.
    pub fn is_over(&self) -> bool {
        matches!(&*self.state.borrow(), State::Ended(_))
    }

    /// Tells `listener` of the file once it is complete. It is called by the thread that writes, so it must not block.
    pub fn on_complete(&self, listener: impl Fn(&Completed) + Send + Sync + 'static) {
        self.control.listen(Listener(Arc::new(listener)));
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.control.listen(listener);
    }

    /// How it turns out.
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

/// How a recording turns out, to be waited for without holding the recording.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Of each of its files.
    states: Vec<watch::Receiver<State>>,
}

impl Outcome {
    /// How one turns out.
    pub(crate) fn of(state: watch::Receiver<State>) -> Self {
        Self {
            states: vec![state],
        }
    }

    /// How several turn out together.
    pub(crate) fn of_all(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        Self {
            states: outcomes.into_iter().flat_map(|it| it.states).collect(),
        }
    }

    /// Waits until the file is made, or could not be.
    pub async fn opened(mut self) -> Result<(), Arc<RecordError>> {
        for state in &mut self.states {
            let state = state
                .wait_for(|state| !matches!(state, State::Opening))
                .await;
            match state.as_deref() {
                Ok(State::Ended(Err(error))) => return Err(Arc::clone(error)),
                Ok(State::Opening | State::Open | State::Ended(Ok(_))) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Waits until one of its files has ended by an error, whatever the others do, and gives that; none once all have ended as they
    /// should.
    pub async fn failed(mut self) -> Option<Arc<RecordError>> {
        let states = self.states.iter_mut();
        let mut waits: Vec<_> = states
            .map(|state| Box::pin(state.wait_for(|state| matches!(state, State::Ended(_)))))
            .collect();
        poll_fn(move |context| {
            let mut failed = None;
            waits.retain_mut(|wait| match wait.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(state) => {
                    if let Ok(State::Ended(Err(error))) = state.as_deref() {
                        failed = Some(Arc::clone(error));
                    }
                    false
                }
            });
            match failed.is_some() || waits.is_empty() {
                true => Poll::Ready(failed),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Waits until all of the recording has ended, and tells why; an error if that was not as it should be.
    pub async fn ended(mut self) -> Result<End, Arc<RecordError>> {
        let mut outcome = Ok(End::Stopped);
        for state in &mut self.states {
            let state = state
                .wait_for(|state| matches!(state, State::Ended(_)))
                .await;
            match state.as_deref() {
                Ok(State::Ended(end)) if outcome.is_ok() => outcome.clone_from(end),
                Ok(State::Ended(_) | State::Opening | State::Open) | Err(_) => {}
            }
        }
        outcome
    }
}
