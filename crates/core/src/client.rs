//! A client's connection as the core sees it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::SessionId;
use crate::outbox::{Outbox, OutboxSender, outbox};

/// One connection of a transport, or all of HTTP, whose clients fetch their events by long polls.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    transport: &'static str,
    way: Way,
    /// It speaks for clients that it has let in itself.
    internal: bool,
    /// What ends with it.
    sessions: Mutex<HashSet<SessionId>>,
    /// The handles of these.
    handles: AtomicUsize,
}

#[derive(Debug)]
enum Way {
    /// None once the client was too slow, or has left.
    Push(Mutex<Option<OutboxSender>>),
    Poll,
}

impl Client {
    /// A connection that messages are pushed to: the transport writes what it receives, in this order, and
    /// closes the connection when nothing more comes. At most [`OUTBOX`](crate::OUTBOX) messages wait, and
    /// [`OUTBOX_OF_HANDLE`](crate::OUTBOX_OF_HANDLE) for each of its handles; a client that lets more pile up is cut off.
    pub fn pushed(transport: &'static str) -> (Client, Outbox) {
        let (outbox, messages) = outbox();
        let way = Way::Push(Mutex::new(Some(outbox)));
        (Client::new(transport, way, false), messages)
    }

    /// A part of the server that speaks for others, such as WHIP clients. It has let them in itself (see
    /// [`crate::Gateway::admits`]): no secret and no token is asked of it. It is there as long as this process,
    /// so that its sessions do not time out, and nobody else can claim them. Whoever knows their ids can end them: it is told
    /// so by an event `destroyed`. Our candidates are always in the descriptions that it gets.
    pub fn internal(transport: &'static str) -> (Client, Outbox) {
        let (outbox, messages) = outbox();
        let way = Way::Push(Mutex::new(Some(outbox)));
        (Client::new(transport, way, true), messages)
    }

    /// HTTP: events wait in each session for [`crate::Gateway::poll`].
    pub fn polled(transport: &'static str) -> Client {
        Client::new(transport, Way::Poll, false)
    }

    fn new(transport: &'static str, way: Way, internal: bool) -> Client {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Client {
            inner: Arc::new(Inner {
                id,
                transport,
                way,
                internal,
                sessions: Mutex::default(),
                handles: AtomicUsize::new(0),
            }),
        }
    }

    /// Tells connections apart.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The transport's package name, such as `janus.transport.websockets`.
    pub fn transport(&self) -> &'static str {
        self.inner.transport
    }

    pub(crate) fn is_internal(&self) -> bool {
        self.inner.internal
    }

    pub(crate) fn owns(&self, session: SessionId) {
        self.sessions().insert(session);
    }

    /// How many sessions it owns.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions().len()
    }

    pub(crate) fn owns_no_more(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// A session of it has got so many handles more.
    pub(crate) fn gains_handles(&self, count: usize) {
        self.inner.handles.fetch_add(count, Ordering::Relaxed);
    }

    /// A session of it has lost so many handles, or it has lost a session with so many.
    pub(crate) fn loses_handles(&self, count: usize) {
        self.inner.handles.fetch_sub(count, Ordering::Relaxed);
    }

    fn handles(&self) -> usize {
        self.inner.handles.load(Ordering::Relaxed)
    }

    /// The sessions that it owned so far.
    pub(crate) fn take_sessions(&self) -> HashSet<SessionId> {
        std::mem::take(&mut self.sessions())
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.inner
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_polled(&self) -> bool {
        matches!(self.inner.way, Way::Poll)
    }

    /// Sends a message; false if the client is gone or too slow, which cuts it off.
    pub(crate) fn push(&self, message: Value) -> bool {
        let Way::Push(outbox) = &self.inner.way else {
            return false;
        };
        let mut outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = outbox
            .as_ref()
            .is_some_and(|outbox| outbox.push(message, self.handles()));
        if !sent {
            *outbox = None;
        }
        sent
    }

    pub(crate) fn close(&self) {
        if let Way::Push(outbox) = &self.inner.way {
            *outbox.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}
