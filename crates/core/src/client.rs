//! A client's connection.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::outbox::{Outbox, OutboxSender, Posted, outbox};
use crate::{ClientMessage, Purse, Requester, Rights, SessionId, TokenScope};

/// One connection of a transport, or all clients of HTTP, which fetch their events by long polls.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
    requester: Requester,
    /// The rights that it has without credentials in its requests.
    rights: Rights,
    /// The number that events call it by.
    event_id: u64,
    /// The rooms and mountpoints that requests of an internal client may name.
    scope: TokenScope,
    /// The number of the request that this client makes, see [`Client::asking`].
    asks: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    transport: &'static str,
    way: Way,
    /// Whether it is a part of the server that speaks for clients.
    internal: bool,
    /// Pays for its requests, and for the messages that wait for it.
    purse: Purse,
    /// The sessions that end with it.
    sessions: Mutex<HashSet<SessionId>>,
    /// The number of handles in these sessions.
    handles: AtomicUsize,
    /// A task that sends to it.
    companion: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
enum Way {
    /// `None` once the client was too slow or has left.
    Push(Mutex<Option<OutboxSender>>),
    Poll,
}

impl Client {
    /// A connection that gets messages pushed. The transport writes the messages of the outbox in
    /// order, and closes the connection when the outbox ends. At most [`OUTBOX`](crate::OUTBOX)
    /// messages wait, plus [`OUTBOX_OF_HANDLE`](crate::OUTBOX_OF_HANDLE) for each of its handles,
    /// as far as `purse` pays for them. A client with a larger backlog is disconnected.
    pub fn pushed(transport: &'static str, requester: Requester, purse: Purse) -> (Client, Outbox) {
        let (outbox, messages) = outbox();
        let way = Way::Push(Mutex::new(Some(outbox)));
        let client = Client::new(transport, way, requester, None, purse);
        (client, messages)
    }

    /// A part of the server that speaks for clients, such as those of WHIP, and has let them in
    /// itself (see [`crate::Gateway::admits`]). It needs no secret and no token. Its sessions do
    /// not time out, and nobody else can claim them. If a client that knows their ids ends them, it
    /// gets an event `destroyed`. It gets descriptions with all candidates. Its requests count as
    /// requests of `requester` with `rights`, see [`crate::Gateway::rights`]; it enforces the
    /// request rate itself.
    pub fn internal(
        transport: &'static str,
        requester: Requester,
        rights: Rights,
    ) -> (Client, Outbox) {
        let (outbox, messages) = outbox();
        let way = Way::Push(Mutex::new(Some(outbox)));
        // No limit: it reads its messages immediately.
        let purse = Purse::default();
        let client = Client::new(transport, way, requester, Some(rights), purse);
        (client, messages)
    }

    /// All clients of HTTP. Their events wait in their sessions, which pay for them, for
    /// [`crate::Gateway::poll`]. [`Client::on_behalf_of`] gives each request its requester.
    pub fn polled(transport: &'static str) -> Client {
        let nobody = Requester::at(Ipv4Addr::UNSPECIFIED.into(), false);
        Client::new(transport, Way::Poll, nobody, None, Purse::default())
    }

    /// Returns the same client for `requester`. Events show it as a separate connection.
    pub fn on_behalf_of(&self, requester: Requester) -> Client {
        Client {
            requester,
            event_id: next_id(),
            ..self.clone()
        }
    }

    /// Returns the same client, limited to the rooms and mountpoints of `scope`. This is for
    /// internal clients: requests of others carry a token.
    #[must_use]
    pub fn confined_to(self, scope: TokenScope) -> Client {
        Client { scope, ..self }
    }

    /// Returns the same client with all rights, whatever credentials its requests carry.
    #[must_use]
    pub fn trusted(&self) -> Client {
        Client {
            rights: Rights::ALL,
            ..self.clone()
        }
    }

    /// Returns the same client for the request with this number. The reply carries the number
    /// ([`Posted::answers`]), and events do not. This is for connections that several clients
    /// share.
    #[must_use]
    pub fn asking(&self, request: u64) -> Client {
        Client {
            asks: Some(request),
            ..self.clone()
        }
    }

    /// Returns the same client for events.
    pub fn without_request(&self) -> Client {
        Client {
            asks: None,
            ..self.clone()
        }
    }

    fn new(
        transport: &'static str,
        way: Way,
        requester: Requester,
        internal: Option<Rights>,
        purse: Purse,
    ) -> Client {
        let id = next_id();
        Client {
            inner: Arc::new(Inner {
                id,
                transport,
                way,
                internal: internal.is_some(),
                purse,
                sessions: Mutex::default(),
                handles: AtomicUsize::new(0),
                companion: Mutex::default(),
            }),
            requester,
            rights: internal.unwrap_or_default(),
            event_id: id,
            scope: TokenScope::default(),
            asks: None,
        }
    }

    /// A number that is unique among connections.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The number that events call it by. Each request of HTTP has its own.
    pub fn event_id(&self) -> u64 {
        self.event_id
    }

    /// The transport's package name, such as `janus.transport.websockets`.
    pub fn transport(&self) -> &'static str {
        self.inner.transport
    }

    /// The requester at the other end.
    pub fn requester(&self) -> Requester {
        self.requester
    }

    /// The rights that it has without credentials in its requests.
    pub(crate) fn rights(&self) -> Rights {
        self.rights
    }

    pub(crate) fn scope(&self) -> &TokenScope {
        &self.scope
    }

    pub(crate) fn is_internal(&self) -> bool {
        self.inner.internal
    }

    pub(crate) fn owns(&self, session: SessionId) {
        self.sessions().insert(session);
    }

    /// Returns how many sessions it owns.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions().len()
    }

    pub(crate) fn owns_no_more(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// Counts handles that were added to its sessions.
    pub(crate) fn gains_handles(&self, count: usize) {
        self.inner.handles.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts handles that its sessions lost, or those of a session that it lost.
    pub(crate) fn loses_handles(&self, count: usize) {
        self.inner.handles.fetch_sub(count, Ordering::Relaxed);
    }

    fn handles(&self) -> usize {
        self.inner.handles.load(Ordering::Relaxed)
    }

    /// Takes all sessions that it owned.
    pub(crate) fn take_sessions(&self) -> HashSet<SessionId> {
        std::mem::take(&mut self.sessions())
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.inner
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it fetches its events by long polls.
    pub fn is_polled(&self) -> bool {
        matches!(self.inner.way, Way::Poll)
    }

    /// Sends a message. Returns false if the client is gone or too slow, which disconnects it.
    pub fn push(&self, message: impl Into<ClientMessage>) -> bool {
        self.push_paid(message, &self.inner.purse)
    }

    /// As [`Client::push`], for a message of a session, which pays for it as far as it can.
    pub(crate) fn push_paid(&self, message: impl Into<ClientMessage>, purse: &Purse) -> bool {
        let Way::Push(outbox) = &self.inner.way else {
            return false;
        };
        let (message, price) = message.into().packed();
        let share = purse.take(price).or_else(|_| self.inner.purse.take(price));
        let posted = share.map(|share| Posted {
            answers: self.asks,
            message,
            share,
        });
        let mut outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = outbox
            .as_ref()
            .zip(posted.ok())
            .is_some_and(|(outbox, posted)| outbox.push(posted, self.handles()));
        if !sent {
            *outbox = None;
        }
        sent
    }

    /// Returns how many messages wait for it.
    pub fn waiting(&self) -> usize {
        let Way::Push(outbox) = &self.inner.way else {
            return 0;
        };
        let outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
        outbox.as_ref().map_or(0, OutboxSender::waiting)
    }

    /// The purse that it pays from.
    pub fn purse(&self) -> &Purse {
        &self.inner.purse
    }

    /// Sets the task that sends to this client. The former task is aborted. The new one is aborted
    /// when the client is gone.
    pub fn set_companion(&self, task: Option<AbortHandle>) {
        let companion = &self.inner.companion;
        let mut companion = companion.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(former) = std::mem::replace(&mut *companion, task) {
            former.abort();
        }
    }

    pub(crate) fn close(&self) {
        self.set_companion(None);
        if let Way::Push(outbox) = &self.inner.way {
            *outbox.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
