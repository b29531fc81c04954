//! A session: whose it is, what waits for its client, and when it ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::counters::add;
use crate::{Client, CoreConfig, Counters, SessionId};

/// Events that wait for an HTTP client at most; the oldest go first.
const QUEUE: usize = 512;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    counters: Arc<Counters>,
    state: Mutex<State>,
    /// An event came, the session ended, or a newer long poll started.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    owner: Client,
    /// The owner's connection is gone; it may be claimed by another.
    orphaned: bool,
    over: bool,
    last_activity: Instant,
    queue: VecDeque<Value>,
    polls: u64,
}

impl Session {
    pub(crate) fn new(id: SessionId, owner: Client, counters: Arc<Counters>) -> Self {
        let state = State {
            owner,
            orphaned: false,
            over: false,
            last_activity: Instant::now(),
            queue: VecDeque::new(),
            polls: 0,
        };
        Session {
            id,
            counters,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Notes that the client is there.
    pub(crate) fn touch(&self) {
        self.state().last_activity = Instant::now();
    }

    pub(crate) fn owned_by(&self, client: &Client) -> bool {
        self.state().owner.id() == client.id()
    }

    /// Makes `client` the owner; the former one gets nothing more.
    pub(crate) fn claim(&self, client: &Client) {
        let mut state = self.state();
        state.orphaned = false;
        if state.owner.id() != client.id() {
            state.owner = client.clone();
            state.queue.clear();
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// The owner's connection is gone.
    pub(crate) fn orphan(&self) {
        self.state().orphaned = true;
    }

    /// Whether the client was silent for too long.
    pub(crate) fn expired(&self, config: &CoreConfig) -> bool {
        let state = self.state();
        let silent = state.last_activity.elapsed();
        config
            .session_timeout()
            .is_some_and(|limit| silent >= limit)
            || (state.orphaned && silent >= config.reclaim_session_timeout())
    }

    /// Sends an event to the client.
    pub(crate) fn emit(&self, event: Value) {
        let mut state = self.state();
        if state.over {
            return;
        }
        add(&self.counters.events);
        if !state.owner.is_polled() {
            if !state.owner.push(event) {
                add(&self.counters.events_dropped);
            }
            return;
        }
        if state.queue.len() >= QUEUE {
            state.queue.pop_front();
            add(&self.counters.events_dropped);
        }
        state.queue.push_back(event);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends the session: nothing is sent any more. False if it had ended before.
    pub(crate) fn end(&self) -> bool {
        let was_over = std::mem::replace(&mut self.state().over, true);
        self.changed.notify_waiters();
        !was_over
    }

    /// The next events, at most `max`; a keepalive if none comes within `wait`, or if a newer poll takes over.
    pub(crate) async fn poll(&self, max: usize, wait: Duration) -> Vec<Value> {
        let turn = {
            let mut state = self.state();
            state.polls += 1;
            state.polls
        };
        self.changed.notify_waiters();
        let events = async {
            loop {
                let changed = self.changed.notified();
                {
                    let mut state = self.state();
                    if state.over && state.queue.is_empty() || state.polls != turn {
                        return Vec::new();
                    }
                    if !state.queue.is_empty() {
                        let count = max.clamp(1, state.queue.len());
                        return state.queue.drain(..count).collect();
                    }
                }
                changed.await;
            }
        };
        match timeout(wait, events).await {
            Ok(events) if !events.is_empty() => events,
            Ok(_) | Err(_) => vec![json!({ "janus": "keepalive" })],
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
