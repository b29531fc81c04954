//! A session: whose it is, what waits for its client, and when it ends.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::admin::Settings;
use crate::context::Context;
use crate::counters::add;
use crate::events::lifecycle::{self, SessionEnd};
use crate::events::{EventAddress, EventBus, EventKind};
use crate::handle::{Handle, Inbox, WeakHandle};
use crate::{
    Client, ClientAddress, ClientMessage, Counters, HandleId, OUTBOX_OF_HANDLE, Purse, SessionId,
    Share, client_event,
};

/// Events that wait for an HTTP client at most, and [`OUTBOX_OF_HANDLE`] more for each handle; the oldest go first.
const QUEUE: usize = 512;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    created: Instant,
    counters: Arc<Counters>,
    events: EventBus,
    /// What pays for its handles, and for its events that wait for a long poll.
    purse: Purse,
    /// Seconds for which it outlives its connection, if its client asked for that.
    reclaim_seconds: Option<u32>,
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
    timeout: SessionTimeout,
    /// Events for a long poll, or for the client that claims the session.
    queue: VecDeque<(ClientMessage, Share)>,
    polls: u64,
    handles: HashMap<HandleId, Attached>,
    /// Whoever watches has not been told that there is a session.
    is_untold: bool,
    /// Handles whose tasks have not ended, those included that nobody finds any more.
    running: usize,
    /// How it ended; whoever watches is told once the last handle has.
    ended: Option<SessionEnd>,
}

/// A session at one moment.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    /// The package of its client's transport.
    pub(crate) transport: &'static str,
    pub(crate) address: ClientAddress,
    pub(crate) created: Instant,
    pub(crate) last_activity: Instant,
    pub(crate) timeout: SessionTimeout,
    pub(crate) handles: Vec<Handle>,
}

/// After how long without a request a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionTimeout {
    /// As long as all sessions for which nothing else was said.
    AsAll,
    /// Seconds; 0: it does not end.
    Own(u32),
}

impl SessionTimeout {
    pub(crate) fn seconds(self, settings: &Settings) -> u32 {
        match self {
            SessionTimeout::AsAll => settings.session_timeout_seconds(),
            SessionTimeout::Own(seconds) => seconds,
        }
    }
}

/// A handle of the session.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) inbox: Inbox,
    pub(crate) task: JoinHandle<()>,
    pub(crate) handle: WeakHandle,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        owner: Client,
        counters: Arc<Counters>,
        events: EventBus,
        purse: Purse,
        reclaim_seconds: Option<u32>,
    ) -> Self {
        owner.owns(id);
        let state = State {
            owner: owner.without_request(),
            orphaned: false,
            over: false,
            last_activity: Instant::now(),
            timeout: SessionTimeout::AsAll,
            queue: VecDeque::new(),
            polls: 0,
            handles: HashMap::new(),
            is_untold: true,
            running: 0,
            ended: None,
        };
        Session {
            id,
            created: Instant::now(),
            counters,
            events,
            purse,
            reclaim_seconds,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Tells whoever watches that there is a session, which was made by `owner`.
    pub(crate) fn tell_created(&self, owner: &Client) {
        let address = || address(self.id);
        self.events.publish(EventKind::Sessions, None, address, || {
            lifecycle::session_created(owner)
        });
        let mut state = self.state();
        state.is_untold = false;
        self.tell_end(state);
    }

    pub(crate) fn purse(&self) -> &Purse {
        &self.purse
    }

    /// Notes that the client is there.
    pub(crate) fn touch(&self) {
        self.state().last_activity = Instant::now();
    }

    /// Whether a part of the server speaks for its client.
    pub(crate) fn is_internal(&self) -> bool {
        self.state().owner.is_internal()
    }

    /// Makes `client` the owner; the former one gets nothing more. False: a part of the server owns it, which needs its
    /// events and keeps it.
    pub(crate) fn claim(&self, client: &Client) -> bool {
        let mut state = self.state();
        if state.owner.is_internal() && state.owner.id() != client.id() {
            return false;
        }
        let was_orphaned = std::mem::replace(&mut state.orphaned, false);
        if state.owner.id() != client.id() {
            state.owner.owns_no_more(self.id);
            state.owner.loses_handles(state.handles.len());
            client.owns(self.id);
            client.gains_handles(state.handles.len());
            state.owner = client.without_request();
            if !was_orphaned {
                state.queue.clear();
            }
            if !client.is_polled() {
                for (event, _) in std::mem::take(&mut state.queue) {
                    client.push_paid(event, &self.purse);
                }
            }
            // Whoever polls for it waits in vain.
            state.polls += 1;
            drop(state);
            self.changed.notify_waiters();
        }
        true
    }

    /// The connection of `owner` is gone; false if another has claimed the session a moment ago.
    pub(crate) fn orphan(&self, owner: &Client) -> bool {
        let mut state = self.state();
        state.orphaned = state.owner.id() == owner.id();
        if state.orphaned {
            state.last_activity = Instant::now();
        }
        state.orphaned
    }

    /// Returns how long the session outlives its connection. Zero means not at all.
    pub(crate) fn reclaim_timeout(&self, context: &Context) -> Duration {
        match self.reclaim_seconds {
            Some(seconds) => Duration::from_secs(seconds.into()),
            None => context.config().reclaim_session_timeout(),
        }
    }

    /// Whether the client was silent for too long.
    pub(crate) fn expired(&self, context: &Context) -> bool {
        let state = self.state();
        let silent = state.last_activity.elapsed();
        let may_time_out = !state.owner.is_internal();
        let limit = state.timeout.seconds(&context.settings);
        let limit = (limit > 0).then(|| Duration::from_secs(limit.into()));
        limit.is_some_and(|limit| may_time_out && silent >= limit)
            || (state.orphaned && silent >= self.reclaim_timeout(context))
    }

    pub(crate) fn set_timeout(&self, timeout: SessionTimeout) {
        self.state().timeout = timeout;
    }

    /// What administrators are told of it.
    pub(crate) fn facts(&self) -> SessionFacts {
        let state = self.state();
        let mut handles: Vec<_> = state
            .handles
            .values()
            .filter_map(|attached| attached.handle.upgrade())
            .collect();
        handles.sort_unstable_by_key(Handle::id);
        SessionFacts {
            transport: state.owner.transport(),
            address: state.owner.requester().address(),
            created: self.created,
            last_activity: state.last_activity,
            timeout: state.timeout,
            handles,
        }
    }

    /// Whether one of its handles has a PeerConnection, connected or on its way.
    pub(crate) fn is_in_call(&self) -> bool {
        // Not under the lock: a handle that has a lock of its own may tell its client something.
        let handles: Vec<_> = {
            let state = self.state();
            let handles = state.handles.values();
            handles.map(|attached| attached.handle.clone()).collect()
        };
        let mut handles = handles.iter().filter_map(WeakHandle::upgrade);
        handles.any(|handle| handle.peer().is_some())
    }

    /// Waits until no event waits for a long poll, or the session has ended.
    pub(crate) async fn fetched(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state();
                if state.over || state.queue.is_empty() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// A handle; none if there is none of this id, or it is going.
    pub(crate) fn handle_itself(&self, id: HandleId) -> Option<Handle> {
        self.state().handles.get(&id)?.handle.upgrade()
    }

    /// The handles that there are, by id.
    pub(crate) fn handle_ids(&self) -> Vec<HandleId> {
        let mut ids: Vec<_> = self.state().handles.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Sends an event to the client.
    pub(crate) fn emit(&self, event: impl Into<ClientMessage>) {
        let event = event.into();
        let mut state = self.state();
        if state.over {
            return;
        }
        add(&self.counters.events);
        if !state.owner.is_polled() && !state.orphaned {
            if !state.owner.push_paid(event, &self.purse) {
                add(&self.counters.events_dropped);
            }
            return;
        }
        let of_handles = state.handles.len().saturating_mul(OUTBOX_OF_HANDLE);
        if state.queue.len() >= QUEUE.saturating_add(of_handles) {
            state.queue.pop_front();
            add(&self.counters.events_dropped);
        }
        let (event, price) = event.packed();
        let share = loop {
            match self.purse.take(price) {
                Ok(share) => break share,
                Err(_) => {
                    add(&self.counters.events_dropped);
                    if state.queue.pop_front().is_none() {
                        return;
                    }
                }
            }
        };
        state.queue.push_back((event, share));
        drop(state);
        self.changed.notify_waiters();
    }

    /// A handle's task is about to begin; an error if the session has ended.
    pub(crate) fn begin_handle(&self) -> Result<(), ()> {
        let mut state = self.state();
        if state.over {
            return Err(());
        }
        state.running += 1;
        Ok(())
    }

    /// A handle's task has ended.
    pub(crate) fn end_handle(&self) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        self.tell_end(state);
    }

    /// Tells whoever watches that the session has ended, if it has: behind its beginning and all that its handles told.
    fn tell_end(&self, mut state: MutexGuard<'_, State>) {
        if state.is_untold || state.running > 0 {
            return;
        }
        let Some(end) = state.ended.take() else {
            return;
        };
        drop(state);
        let address = || address(self.id);
        self.events.publish(EventKind::Sessions, None, address, || {
            lifecycle::session_ended(end)
        });
    }

    /// Adds a handle; gives it back if the session has ended.
    pub(crate) fn add_handle(&self, id: HandleId, handle: Attached) -> Result<(), Attached> {
        let mut state = self.state();
        if state.over {
            return Err(handle);
        }
        state.owner.gains_handles(1);
        state.handles.insert(id, handle);
        Ok(())
    }

    pub(crate) fn handle_count(&self) -> usize {
        self.state().handles.len()
    }

    pub(crate) fn has_handle(&self, id: HandleId) -> bool {
        self.state().handles.contains_key(&id)
    }

    /// The way to a handle's task.
    pub(crate) fn handle(&self, id: HandleId) -> Option<Inbox> {
        self.state()
            .handles
            .get(&id)
            .map(|handle| handle.inbox.clone())
    }

    pub(crate) fn remove_handle(&self, id: HandleId) -> Option<Attached> {
        let mut state = self.state();
        let removed = state.handles.remove(&id)?;
        state.owner.loses_handles(1);
        Some(removed)
    }

    /// Takes all handles out, so that no request reaches them any more.
    pub(crate) fn take_handles(&self) -> Vec<Attached> {
        let mut state = self.state();
        state.owner.loses_handles(state.handles.len());
        std::mem::take(&mut state.handles).into_values().collect()
    }

    /// Ends the session: its client is sent nothing more. Only a part of the server is told that it has ended. Gives its handles
    /// back; none if it had ended before.
    pub(crate) fn end(&self, how: SessionEnd) -> Option<Vec<Attached>> {
        let handles = {
            let mut state = self.state();
            if std::mem::replace(&mut state.over, true) {
                return None;
            }
            state.owner.owns_no_more(self.id);
            state.owner.loses_handles(state.handles.len());
            if state.owner.is_internal() {
                state.owner.push(client_event::destroyed());
            }
            let handles = std::mem::take(&mut state.handles);
            state.ended = Some(how);
            self.tell_end(state);
            handles
        };
        self.changed.notify_waiters();
        Some(handles.into_values().collect())
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
                        let events = state.queue.drain(..count);
                        let events = events.map(|(event, _)| event.into_value()).collect();
                        self.changed.notify_waiters();
                        return events;
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

fn address(session: SessionId) -> EventAddress {
    EventAddress {
        session: Some(session),
        ..EventAddress::default()
    }
}
