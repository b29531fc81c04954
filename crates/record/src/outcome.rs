//! The end of a recording, and the wait for it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use portunus_files::manifest::FileEnd;
use tokio::sync::watch;

use crate::RecordError;

/// The regular end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was stopped.
    Stopped,
    /// Its source has ended.
    Source,
    /// Its time is up, see [`crate::Recording::end_at`].
    Time,
}

/// Returns the reason that the manifest gives for the end of a file.
pub(crate) fn file_end(ended: &Result<End, RecordError>) -> FileEnd {
    match ended {
        Ok(End::Source) => FileEnd::Left,
        Ok(End::Stopped | End::Time) => FileEnd::Stopped,
        Err(error) => error.end(),
    }
}

/// The progress of a recording.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// The file is being made.
    Opening,
    Open,
    Ended(Result<End, Arc<RecordError>>),
}

/// The future outcome of a recording. It does not hold the recording.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The states of its files.
    states: Vec<watch::Receiver<State>>,
}

impl Outcome {
    /// Returns the outcome of one file.
    pub(crate) fn of(state: watch::Receiver<State>) -> Self {
        Self {
            states: vec![state],
        }
    }

    /// Returns the common outcome of several files.
    pub(crate) fn of_all(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        Self {
            states: outcomes.into_iter().flat_map(|it| it.states).collect(),
        }
    }

    /// Waits until the files are made. Fails if one cannot be made.
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

    /// Waits until a file has ended by an error, and returns that. Returns `None` when all files
    /// have ended regularly.
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

    /// Waits until all files have ended, and returns the first error, if any.
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
