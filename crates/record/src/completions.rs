//! The subscribers to complete files, and the files that wait for their commands.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::broadcast;

use crate::Completed;
use crate::pending::Unfinished;

/// Complete files that may wait for a slow subscriber.
const WAITING_EVENTS: usize = 1_024;
/// Commands that run at a time.
const RUNNING: usize = 4;
/// Files that may wait for their commands; the oldest is dropped.
const WAITING: usize = 1_000;

/// The subscribers to complete files, and the queue of commands for them.
#[derive(Debug)]
pub(crate) struct Completions {
    subscribers: broadcast::Sender<Completed>,
    commands: Mutex<Commands>,
}

#[derive(Debug, Default)]
struct Commands {
    /// The runtime that runs them, or `None` before the first recording.
    runtime: Option<Handle>,
    running: usize,
    waiting: VecDeque<(Completed, Unfinished)>,
}

impl Default for Completions {
    fn default() -> Self {
        Self {
            subscribers: broadcast::Sender::new(WAITING_EVENTS),
            commands: Mutex::default(),
        }
    }
}

impl Completions {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Completed> {
        self.subscribers.subscribe()
    }

    /// Has commands run by the caller's runtime, if it is in one.
    pub(crate) fn in_this_runtime(&self) {
        let mut commands = self.lock();
        if commands.runtime.is_none() {
            commands.runtime = Handle::try_current().ok();
        }
    }

    /// Notifies the subscribers.
    pub(crate) fn publish(&self, completed: Completed) {
        // It is fine if there are none.
        let _ = self.subscribers.send(completed);
    }

    /// Queues a file for the command. Drops the oldest if too many wait, and returns it.
    pub(crate) fn push(&self, completed: Completed, unfinished: Unfinished) -> Option<Completed> {
        let mut commands = self.lock();
        commands.waiting.push_back((completed, unfinished));
        let is_full = commands.waiting.len() > WAITING;
        let lost = is_full.then(|| commands.waiting.pop_front()).flatten();
        lost.map(|(lost, _)| lost)
    }

    /// Returns the runtime if one more task may run commands. The task must end by
    /// [`Completions::next`] returning `None`.
    pub(crate) fn start_task(&self) -> Option<Handle> {
        let mut commands = self.lock();
        let has_place = commands.running < RUNNING;
        let runtime = commands.runtime.clone().filter(|_| has_place);
        commands.running += usize::from(runtime.is_some());
        runtime
    }

    /// Takes the next file whose command is to run. `None` counts the calling task as ended.
    pub(crate) fn next(&self) -> Option<(Completed, Unfinished)> {
        let mut commands = self.lock();
        let next = commands.waiting.pop_front();
        if next.is_none() {
            commands.running -= 1;
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
