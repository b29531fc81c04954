//! The resources that end once they are unused, because the configuration says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Id, Resource};

/// The resources that end once they are unused, by the keys of the configuration.
#[derive(Debug)]
pub(crate) struct Waiting<R: Resource>(Mutex<State<R>>);

/// A resource that waits for its end.
#[derive(Debug)]
pub(crate) struct Waiter<R: Resource> {
    pub(crate) resource: Arc<R>,
    /// The resource that takes its place, if there is one.
    pub(crate) by: Option<R::Written>,
}

#[derive(Debug)]
struct State<R: Resource> {
    entries: HashMap<Id, Waiter<R>>,
    /// Whether a task looks after them.
    is_watched: bool,
}

impl<R: Resource> Default for Waiting<R> {
    fn default() -> Self {
        Waiting(Mutex::new(State {
            entries: HashMap::new(),
            is_watched: false,
        }))
    }
}

impl<R: Resource> Waiting<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, key: Id, waiter: Waiter<R>) {
        self.state().entries.insert(key, waiter);
    }

    pub(crate) fn take(&self, key: &Id) -> Option<Waiter<R>> {
        self.state().entries.remove(key)
    }

    /// Returns the keys of the resources that nobody uses any more.
    pub(crate) fn unused(&self) -> Vec<Id> {
        let entries: Vec<_> = {
            let state = self.state();
            let entries = state.entries.iter();
            entries
                .map(|(key, waiter)| (key.clone(), waiter.resource.clone()))
                .collect()
        };
        // Not under the lock, because a resource has its own.
        let unused = entries.into_iter().filter(|(_, it)| !it.has_clients());
        unused.map(|(key, _)| key).collect()
    }

    /// Returns whether the caller has to start a task that looks after them.
    pub(crate) fn begin_watching(&self) -> bool {
        let mut state = self.state();
        !state.entries.is_empty() && !std::mem::replace(&mut state.is_watched, true)
    }

    /// Returns whether the task can end, because nothing waits.
    pub(crate) fn end_watching(&self) -> bool {
        let mut state = self.state();
        state.is_watched = !state.entries.is_empty();
        !state.is_watched
    }
}
