//! A session: its owner, its events, and its end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::counters::add;
use crate::events::lifecycle::{self, SessionEnd};
use crate::events::{EventAddress, EventBus, EventKind};
use crate::handle::Inbox;
use crate::{
    Client, ClientAddress, ClientMessage, Counters, HandleId, OUTBOX_OF_HANDLE, Purse, SessionId,
    Share, client_event,
};

/// The most events that wait for an HTTP client, plus [`OUTBOX_OF_HANDLE`] for each handle. The
/// oldest are dropped.
const QUEUE: usize = 512;

/// A session of a client.
#[derive(Debug)]
pub struct Session {
    pub(crate) id: SessionId,
    created: Instant,
    counters: Arc<Counters>,
    events: EventBus,
    /// Pays for its handles, and for events that wait for a long poll.
    purse: Purse,
    /// Seconds for which it outlives its connection, if its client asked for that.
    reclaim_seconds: Option<u32>,
    state: Mutex<State>,
    /// Notified by an event, the end of the session, and a newer long poll.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    owner: Client,
    /// The owner's connection is gone, so another client may claim the session.
    orphaned: bool,
    over: bool,
    last_activity: Instant,
    timeout: SessionTimeout,
    /// Events for a long poll, or for the client that claims the session.
    queue: VecDeque<(ClientMessage, Share)>,
    polls: u64,
    handles: HashMap<HandleId, Attached>,
    /// The event of its creation is not published yet.
    is_untold: bool,
    /// Handles whose tasks have not ended, detached ones included.
    running: usize,
    /// How it ended. The event is published once the last handle has ended.
    ended: Option<SessionEnd>,
}

/// A session at one moment.
#[derive(Debug)]
pub struct SessionFacts {
    /// The package of its client's transport.
    pub transport: &'static str,
    /// The address of its client.
    pub address: ClientAddress,
    /// When it was created.
    pub created: Instant,
    /// When its client made the last request.
    pub last_activity: Instant,
    /// Its timeout.
    pub timeout: SessionTimeout,
}

/// The time without a request after which a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionTimeout {
    /// The default of the server.
    AsAll,
    /// In seconds. 0 disables it.
    Own(u32),
}

impl SessionTimeout {
    /// Returns the timeout in seconds, given that of all sessions. 0 disables it.
    pub fn seconds(self, of_all: u32) -> u32 {
        match self {
            SessionTimeout::AsAll => of_all,
            SessionTimeout::Own(seconds) => seconds,
        }
    }
}

/// A handle of the session.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) inbox: Inbox,
    pub(crate) task: JoinHandle<()>,
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

    /// Publishes the event that `owner` created the session.
    pub(crate) fn publish_created(&self, owner: &Client) {
        let address = || address(self.id);
        self.events.publish(EventKind::Sessions, None, address, || {
            lifecycle::session_created(owner)
        });
        let mut state = self.state();
        state.is_untold = false;
        self.publish_end(state);
    }

    pub(crate) fn purse(&self) -> &Purse {
        &self.purse
    }

    /// Notes activity of the client.
    pub(crate) fn touch(&self) {
        self.state().last_activity = Instant::now();
    }

    /// Whether its owner is an internal client.
    pub(crate) fn is_internal(&self) -> bool {
        self.state().owner.is_internal()
    }

    /// Makes `client` the owner, and the former owner gets no more events. Returns false if the
    /// owner is an internal client, which keeps its sessions.
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
            // Ends the long polls of the former owner.
            state.polls += 1;
            drop(state);
            self.changed.notify_waiters();
        }
        true
    }

    /// The connection of `owner` is gone. Returns false if another client has claimed the session
    /// since.
    pub(crate) fn orphan(&self, owner: &Client) -> bool {
        let mut state = self.state();
        state.orphaned = state.owner.id() == owner.id();
        if state.orphaned {
            state.last_activity = Instant::now();
        }
        state.orphaned
    }

    /// Returns how long the session outlives its connection. Zero disables that. `of_all` is the
    /// default.
    pub(crate) fn reclaim_timeout(&self, of_all: Duration) -> Duration {
        let own = self.reclaim_seconds.map(u64::from);
        own.map_or(of_all, Duration::from_secs)
    }

    /// Whether the client was silent for too long, or nobody claimed the session in time. `of_all`
    /// is the default timeout in seconds.
    pub(crate) fn expired(&self, of_all: u32, reclaim: Duration) -> bool {
        let state = self.state();
        let silent = state.last_activity.elapsed();
        let may_time_out = !state.owner.is_internal();
        let limit = state.timeout.seconds(of_all);
        let limit = (limit > 0).then(|| Duration::from_secs(limit.into()));
        limit.is_some_and(|limit| may_time_out && silent >= limit)
            || (state.orphaned && silent >= self.reclaim_timeout(reclaim))
    }

    /// Sets the timeout.
    pub fn set_timeout(&self, timeout: SessionTimeout) {
        self.state().timeout = timeout;
    }

    /// Returns what operators see of the session.
    pub fn facts(&self) -> SessionFacts {
        let state = self.state();
        SessionFacts {
            transport: state.owner.transport(),
            address: state.owner.requester().address(),
            created: self.created,
            last_activity: state.last_activity,
            timeout: state.timeout,
        }
    }

    /// Waits until the client has fetched all events, or the session has ended.
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

    /// The session's id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the ids of all handles, in order.
    pub fn handle_ids(&self) -> Vec<HandleId> {
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

    /// Notes that a handle's task is about to start. Fails if the session has ended.
    pub(crate) fn begin_handle(&self) -> Result<(), ()> {
        let mut state = self.state();
        if state.over {
            return Err(());
        }
        state.running += 1;
        Ok(())
    }

    /// Notes that a handle's task has ended.
    pub(crate) fn end_handle(&self) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        self.publish_end(state);
    }

    /// Publishes the end of the session once its creation and all events of its handles are
    /// published.
    fn publish_end(&self, mut state: MutexGuard<'_, State>) {
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

    /// Adds a handle. Returns it if the session has ended.
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

    /// The inbox of a handle's task.
    pub(crate) fn inbox(&self, id: HandleId) -> Option<Inbox> {
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

    /// Removes all handles, so that no request finds them.
    pub(crate) fn take_handles(&self) -> Vec<Attached> {
        let mut state = self.state();
        state.owner.loses_handles(state.handles.len());
        std::mem::take(&mut state.handles).into_values().collect()
    }

    /// Ends the session: its client gets nothing more, except that an internal client gets an
    /// event. Returns the handles, or `None` if it had ended before.
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
            self.publish_end(state);
            handles
        };
        self.changed.notify_waiters();
        Some(handles.into_values().collect())
    }

    /// Returns the next events, at most `max`. Returns a keepalive if none comes within `wait`, or
    /// if a newer poll replaces this one.
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
