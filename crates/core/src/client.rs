//! A client's connection as the core sees it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::SessionId;

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
}

#[derive(Debug)]
enum Way {
    /// None once the client was too slow, or has left.
    Push(Mutex<Option<mpsc::Sender<Value>>>),
    Poll,
}

impl Client {
    /// Messages that wait for a connection at most; a client that lets more pile up is cut off.
    pub const OUTBOX: usize = 1024;

    /// A connection that messages are pushed to: the transport writes what it receives, in this order, and
    /// closes the connection when nothing more comes.
    pub fn pushed(transport: &'static str) -> (Client, mpsc::Receiver<Value>) {
        let (outbox, messages) = mpsc::channel(Self::OUTBOX);
        let way = Way::Push(Mutex::new(Some(outbox)));
        (Client::new(transport, way, false), messages)
    }

    /// A part of the server that speaks for others, such as WHIP clients. It has let them in itself (see
    /// [`crate::Gateway::admits`]): no secret and no token is asked of it. It is there as long as this process,
    /// so that its sessions do not time out. Our candidates are always in the descriptions that it gets.
    pub fn internal(transport: &'static str) -> (Client, mpsc::Receiver<Value>) {
        let (outbox, messages) = mpsc::channel(Self::OUTBOX);
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
            .is_some_and(|outbox| outbox.try_send(message).is_ok());
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
