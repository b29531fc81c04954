//! Subscriptions with bounded queues, which drop the oldest events.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::bus::Inner;
use super::event::Emitter;
use super::{EventAddress, EventFilter, EventKind, EventMask, ServerEvent};
use portunus_log_gate::LogGate;

/// The approximate limit of waiting events of a subscriber, in bytes.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// The subtype of the core's event with the number of lost events. Janus has no such event.
const MISSED: u8 = 3;

/// A subscription. A slow subscriber loses the oldest events, and gets their number by an event of
/// kind `core`. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<Queue>,
    bus: Weak<Inner>,
    emitter: Emitter,
}

/// The queue of a subscriber, for the bus.
#[derive(Debug)]
pub(super) struct Queue {
    name: String,
    capacity: usize,
    state: Mutex<State>,
    changed: Notify,
    ended: Notify,
    dropped: AtomicU64,
    log: LogGate,
}

#[derive(Debug)]
struct State {
    filter: EventFilter,
    waiting: VecDeque<Arc<ServerEvent>>,
    bytes: usize,
    /// Events lost since the last report to the subscriber.
    missed: u64,
    over: bool,
}

impl State {
    /// Drops the oldest events until at most this many wait. Returns how many were dropped.
    fn shrink(&mut self, most: usize) -> u64 {
        let mut lost: u64 = 0;
        while self.waiting.len() > most || self.bytes > MAX_WAITING_BYTES {
            let Some(oldest) = self.waiting.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.weight());
            lost = lost.saturating_add(1);
        }
        self.missed = self.missed.saturating_add(lost);
        lost
    }
}

impl Queue {
    pub(super) fn new(name: &str, filter: EventFilter, capacity: usize) -> Self {
        let state = State {
            filter,
            waiting: VecDeque::new(),
            bytes: 0,
            missed: 0,
            over: false,
        };
        Queue {
            name: name.to_owned(),
            capacity: capacity.max(1),
            state: Mutex::new(state),
            changed: Notify::new(),
            ended: Notify::new(),
            dropped: AtomicU64::new(0),
            log: LogGate::default(),
        }
    }

    pub(super) fn filter(&self) -> EventFilter {
        self.state().filter.clone()
    }

    pub(super) fn set_kinds(&self, kinds: EventMask) {
        self.state().filter.kinds = kinds;
    }

    /// Adds an event if it passes the filter. Drops the oldest if there is no room, and returns
    /// whether any was dropped.
    pub(super) fn offer(&self, event: &Arc<ServerEvent>) -> bool {
        let mut state = self.state();
        if state.over || !state.filter.wants(event) {
            return false;
        }
        state.waiting.push_back(event.clone());
        state.bytes = state.bytes.saturating_add(event.weight());
        let lost = state.shrink(self.capacity);
        drop(state);
        self.changed.notify_one();
        self.dropped.fetch_add(lost, Ordering::Relaxed);
        lost > 0
    }

    /// Logs lost events, once a second at most.
    pub(super) fn log_loss(&self) {
        if let Some(more) = self.log.open() {
            let handler = &self.name;
            tracing::warn!(handler, more, "events are lost: they are not taken in time");
        }
    }

    fn keep(&self, most: usize) {
        let lost = self.state().shrink(most);
        self.dropped.fetch_add(lost, Ordering::Relaxed);
    }

    /// Closes the queue. Waiting events can still be taken.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_one();
        self.ended.notify_waiters();
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    pub(super) fn new(queue: Arc<Queue>, bus: Weak<Inner>, emitter: Emitter) -> Self {
        Subscription {
            queue,
            bus,
            emitter,
        }
    }

    /// Returns the next event, or `None` once the bus has ended and the queue is empty. Cancel
    /// safe. Only one task may wait.
    pub async fn recv(&self) -> Option<Arc<ServerEvent>> {
        loop {
            if let Some(event) = self.try_recv() {
                return Some(event);
            }
            if self.queue.state().over {
                return self.try_recv();
            }
            self.queue.changed.notified().await;
        }
    }

    /// Returns the next event if there is one.
    pub fn try_recv(&self) -> Option<Arc<ServerEvent>> {
        let mut state = self.queue.state();
        let missed = std::mem::take(&mut state.missed);
        if missed > 0 {
            let body = json!({ "status": "missed", "count": missed });
            let address = EventAddress::default();
            let emitter = &self.emitter;
            let told = emitter.event(EventKind::Core, Some(MISSED), address, &body);
            return Some(Arc::new(told));
        }
        let event = state.waiting.pop_front()?;
        state.bytes = state.bytes.saturating_sub(event.weight());
        Some(event)
    }

    /// Waits until the bus has ended. Events may be left. Cancel safe.
    pub async fn over(&self) {
        let ended = self.queue.ended.notified();
        if !self.queue.state().over {
            ended.await;
        }
    }

    /// Returns how many events wait.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Drops the oldest events if more than this many wait. They count as lost.
    pub fn keep(&self, most: usize) {
        self.queue.keep(most);
    }

    /// The name of this server.
    pub fn emitter(&self) -> &str {
        &self.emitter.name
    }

    /// Returns an event as JSON. For its text, [`ServerEvent::json`] is enough.
    pub fn to_json(&self, event: &ServerEvent) -> Value {
        event.value()
    }

    /// Returns the filter.
    pub fn filter(&self) -> EventFilter {
        self.queue.filter()
    }

    /// Changes the filter.
    pub fn set_filter(&self, filter: EventFilter) {
        self.queue.state().filter = filter;
        if let Some(bus) = self.bus.upgrade() {
            bus.renew_wanted();
        }
    }

    /// Returns how many events it lost in all.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.queue.end();
        if let Some(bus) = self.bus.upgrade() {
            bus.remove(&self.queue);
        }
    }
}
