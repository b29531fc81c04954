//! The pipes to all other nodes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::pipe::{FrameError, Outcome, Pipe};

/// The pipes to all other nodes.
#[derive(Debug)]
pub(super) struct Pipes {
    run: u64,
    /// Locked for moments, also under the lock of a room.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    pipes: HashMap<String, Pipe>,
    /// The nodes to which a message could not be sent.
    overflown: HashSet<String>,
}

impl Pipes {
    pub(super) fn new(run: u64) -> Self {
        Pipes {
            // JSON carries it.
            run: run >> 11,
            known: Mutex::default(),
        }
    }

    /// Returns the number of this run.
    pub(super) fn run(&self) -> u64 {
        self.run
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message. `deliver` takes its frames, under the lock, so that they stay in order.
    pub(super) fn send(&self, node: &str, message: &[u8], now: Instant, deliver: impl Fn(Vec<u8>)) {
        let mut known = self.known();
        let outcome = known.pipe(node, self.run, now).send(message, now);
        if outcome.is_void {
            known.overflown.insert(node.to_owned());
        }
        outcome.frames.into_iter().for_each(deliver);
    }

    /// Takes a frame of a node.
    pub(super) fn take(
        &self,
        node: &str,
        frame: &[u8],
        now: Instant,
    ) -> Result<Outcome, FrameError> {
        self.known().pipe(node, self.run, now).take(frame, now)
    }

    /// Does what is due. `is_used` says whether something is agreed with a node.
    pub(super) fn tick(
        &self,
        is_used: impl Fn(&str) -> bool,
        now: Instant,
    ) -> Vec<(String, Outcome)> {
        let nodes: Vec<String> = self.known().pipes.keys().cloned().collect();
        let mut outcomes = Vec::new();
        for node in nodes {
            // It looks at what other locks guard.
            let is_used = is_used(&node);
            let mut known = self.known();
            let is_overflown = known.overflown.remove(&node);
            if let Some(pipe) = known.pipes.get_mut(&node) {
                let mut outcome = pipe.tick(is_used, now);
                outcome.is_void |= is_overflown;
                outcomes.push((node, outcome));
            }
        }
        outcomes
    }

    /// Forgets a node that has ended a run. Returns whether something was agreed with that run.
    pub(super) fn forget(&self, node: &str, run: u64, now: Instant) -> bool {
        let mut known = self.known();
        let Some(pipe) = known.pipes.get_mut(node) else {
            return false;
        };
        // It may have begun another one, which has spoken already.
        if pipe.far_run().is_some_and(|far| far != run) {
            return false;
        }
        pipe.begin_anew(now);
        true
    }
}

impl Known {
    fn pipe(&mut self, node: &str, run: u64, now: Instant) -> &mut Pipe {
        let pipe = self.pipes.entry(node.to_owned());
        pipe.or_insert_with(|| Pipe::new(run, now))
    }
}
