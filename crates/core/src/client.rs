//! A client's connection as the core sees it.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::admin::Watch;
use crate::outbox::{Outbox, OutboxSender, Posted, outbox};
use crate::{ClientMessage, Purse, Requester, Rights, SessionId, TokenScope};

/// One connection of a transport, or all of HTTP, whose clients fetch their events by long polls.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
    requester: Requester,
    /// The rights that it has whatever its requests show.
    rights: Rights,
    /// By which number events call it.
    told_id: u64,
    /// The rooms and mountpoints that its requests may name, if it is internal.
    scope: TokenScope,
    /// The request that this one makes, see [`Client::asking`].
    asks: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    transport: &'static str,
    way: Way,
    /// It speaks for clients that it has let in itself.
    internal: bool,
    /// What it pays for its requests and for the messages that wait for it.
    purse: Purse,
    /// What ends with it.
    sessions: Mutex<HashSet<SessionId>>,
    /// The handles of these.
    handles: AtomicUsize,
    /// The server's events that are sent to it.
    watch: Watch,
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
    /// [`OUTBOX_OF_HANDLE`](crate::OUTBOX_OF_HANDLE) for each of its handles, and no more than
    /// `purse` pays for. A client that lets more pile up is cut off.
    pub fn pushed(transport: &'static str, requester: Requester, purse: Purse) -> (Client, Outbox) {
        let (outbox, messages) = outbox();
        let way = Way::Push(Mutex::new(Some(outbox)));
        let client = Client::new(transport, way, requester, None, purse);
        (client, messages)
    }

    /// A part of the server that speaks for others, such as WHIP clients. It has let them in itself (see
    /// [`crate::Gateway::admits`]): no secret and no token is asked of it. It is there as long as this process,
    /// so that its sessions do not time out, and nobody else can claim them. Whoever knows their ids can end them: it is told
    /// so by an event `destroyed`. Our candidates are always in the descriptions that it gets. Its requests are those of
    /// `requester` with `rights`, see [`crate::Gateway::rights`], and it has counted them itself.
    pub fn internal(
        transport: &'static str,
        requester: Requester,
        rights: Rights,
    ) -> (Client, Outbox) {
        let (outbox, messages) = outbox();
        let way = Way::Push(Mutex::new(Some(outbox)));
        // The part reads what it is sent at once.
        let purse = Purse::default();
        let client = Client::new(transport, way, requester, Some(rights), purse);
        (client, messages)
    }

    /// HTTP: events wait in each session, which pays for them, for [`crate::Gateway::poll`]. Each
    /// request is somebody's: [`Client::on_behalf_of`].
    pub fn polled(transport: &'static str) -> Client {
        let nobody = Requester::at(Ipv4Addr::UNSPECIFIED.into(), false);
        Client::new(transport, Way::Poll, nobody, None, Purse::default())
    }

    /// The same client with `requester` at its other end. For events it is a connection of its own.
    pub fn on_behalf_of(&self, requester: Requester) -> Client {
        Client {
            requester,
            told_id: next_id(),
            ..self.clone()
        }
    }

    /// The same client, whose requests may name only the rooms and mountpoints that the token of `scope` opens. For internal clients:
    /// requests of others show a token themselves.
    #[must_use]
    pub fn confined_to(self, scope: TokenScope) -> Client {
        Client { scope, ..self }
    }

    /// The same client, trusted by whoever runs the server: it has all rights, whatever its requests show.
    #[must_use]
    pub fn trusted(&self) -> Client {
        Client {
            rights: Rights::ALL,
            ..self.clone()
        }
    }

    /// The same client as it makes the request with this number: the reply carries it ([`Posted::answers`]), and no event
    /// does. For a connection that many share, each of whom wants the replies to its own requests.
    #[must_use]
    pub fn asking(&self, request: u64) -> Client {
        Client {
            asks: Some(request),
            ..self.clone()
        }
    }

    /// The same client as it is sent events.
    pub(crate) fn without_request(&self) -> Client {
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
                watch: Watch::default(),
            }),
            requester,
            rights: internal.unwrap_or_default(),
            told_id: id,
            scope: TokenScope::default(),
            asks: None,
        }
    }

    /// Tells connections apart.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The number by which events call it: of HTTP, each request has its own.
    pub fn told_id(&self) -> u64 {
        self.told_id
    }

    /// The transport's package name, such as `janus.transport.websockets`.
    pub fn transport(&self) -> &'static str {
        self.inner.transport
    }

    /// Who is at the other end.
    pub fn requester(&self) -> Requester {
        self.requester
    }

    /// The rights that it has whatever its requests show.
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
    pub(crate) fn push(&self, message: impl Into<ClientMessage>) -> bool {
        self.push_paid(message, &self.inner.purse)
    }

    /// As [`Client::push`], for a message of a session, which pays for it as long as it can.
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

    /// Messages that wait for it.
    pub(crate) fn waiting(&self) -> usize {
        let Way::Push(outbox) = &self.inner.way else {
            return 0;
        };
        let outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
        outbox.as_ref().map_or(0, OutboxSender::waiting)
    }

    /// What it pays from.
    pub fn purse(&self) -> &Purse {
        &self.inner.purse
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    pub(crate) fn close(&self) {
        self.inner.watch.end();
        if let Way::Push(outbox) = &self.inner.way {
            *outbox.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
