//! Transactions (RFC 3261 section 17, with RFC 6026 and RFC 4320): requests and responses, repeated
//! until they arrive.
//!
//! [`Transactions`] knows neither sockets nor clocks. [`Transactions::receive`] takes a message and
//! returns its news at once; [`Transactions::poll`] returns the results of deadlines. The table is
//! bounded.

mod client;
mod key;
mod server;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use self::client::{Client, Step};
use self::key::{ServerKey, merge_key};
use self::server::Server;
pub use self::timers::Timers;
use crate::deadlines::Deadlines;
use crate::flow::{ConnectionId, Flow, Route, Transport};
use crate::message::{Message, Method, Request, Response};

/// A transaction that we began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u64);

/// A transaction that a peer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Client(ClientId),
    Server(ServerId),
}

/// The maximum number of octets of requests that server transactions keep in all.
const MOST_OCTETS: usize = 64 << 20;

/// A request without a transaction.
#[derive(Debug)]
pub struct NewRequest {
    /// The request. Its first Via has its source (`received`, `rport`).
    pub request: Arc<Request>,
    /// The flow on which it came.
    pub flow: Flow,
    /// The route of its responses.
    pub route: Route,
    key: ServerKey,
    size: usize,
}

/// The news in a message.
#[derive(Debug)]
pub enum Received {
    /// No news: a repetition, or a message without a transaction.
    Nothing,
    /// A request other than ACK. [`Transactions::accept`] opens its transaction.
    Request(NewRequest),
    /// An ACK without a transaction in this table: that of a 2xx, or a stray one.
    Ack(NewRequest),
    /// A response to a request of ours.
    Response(ClientId, Arc<Response>),
}

/// The result of a deadline, or of a network error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// No response came in time.
    TimedOut(ClientId),
    /// The request could not be sent.
    Unreachable(ClientId),
    /// A client transaction with a response is gone. A repeated 2xx is not reported any more.
    ClientEnded(ClientId),
    /// A server transaction is gone.
    ServerEnded(ServerId),
}

/// An output of [`Transactions`].
#[derive(Debug)]
pub enum Output {
    /// Bytes to send.
    Transmit(Route, Arc<[u8]>),
    /// An event.
    Event(Event),
}

/// The table has no more room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many transactions")]
pub struct Full;

/// All transactions over all transports.
#[derive(Debug)]
pub struct Transactions {
    timers: Timers,
    most: usize,
    next: u64,
    clients: HashMap<ClientId, Client>,
    /// Clients by branch. CANCEL is a transaction of its own.
    branches: HashMap<(Arc<str>, bool), ClientId>,
    servers: HashMap<ServerId, Server>,
    keys: HashMap<ServerKey, ServerId>,
    merges: HashMap<String, ServerId>,
    deadlines: Deadlines<Key>,
    outputs: VecDeque<Output>,
    /// Octets of the requests of all servers.
    octets: usize,
    stray: u64,
}

impl Transactions {
    /// Makes a table for at most `most` transactions.
    #[must_use]
    pub fn new(timers: Timers, most: usize) -> Self {
        Self {
            timers,
            most,
            next: 0,
            clients: HashMap::new(),
            branches: HashMap::new(),
            servers: HashMap::new(),
            keys: HashMap::new(),
            merges: HashMap::new(),
            deadlines: Deadlines::new(),
            outputs: VecDeque::new(),
            octets: 0,
            stray: 0,
        }
    }

    /// The number of transactions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clients.len().saturating_add(self.servers.len())
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of responses that matched no request.
    #[must_use]
    pub fn stray(&self) -> u64 {
        self.stray
    }

    /// Returns when [`Self::timeout`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes a message of `size` octets that came on `flow`.
    pub fn receive(
        &mut self,
        now: Instant,
        flow: &Flow,
        message: Message,
        size: usize,
    ) -> Received {
        match message {
            Message::Request(request) => self.receive_request(now, flow, request, size),
            Message::Response(response) => self.receive_response(now, response),
        }
    }

    fn receive_request(
        &mut self,
        now: Instant,
        flow: &Flow,
        mut request: Request,
        size: usize,
    ) -> Received {
        let Some(key) = ServerKey::of(&request) else {
            return Received::Nothing;
        };
        if let Some((id, server)) = self
            .keys
            .get(&key)
            .and_then(|id| Some((*id, self.servers.get_mut(id)?)))
        {
            if request.method == Method::Ack {
                if server.acknowledged(now, &self.timers) {
                    let deadline = server.deadline();
                    self.deadlines.set(Key::Server(id), deadline);
                    return Received::Nothing;
                }
            } else {
                if let (true, Some(last)) = (server.repeated(), &server.last) {
                    self.outputs
                        .push_back(Output::Transmit(server.route.clone(), last.clone()));
                }
                return Received::Nothing;
            }
        }
        let Some(route) = answer_route(flow, &mut request) else {
            return Received::Nothing;
        };
        let is_ack = request.method == Method::Ack;
        let new = NewRequest {
            request: Arc::new(request),
            flow: *flow,
            route,
            key,
            size,
        };
        if is_ack {
            Received::Ack(new)
        } else {
            Received::Request(new)
        }
    }

    fn receive_response(&mut self, now: Instant, response: Response) -> Received {
        let found = match (response.headers.via(), response.headers.cseq()) {
            (Ok(Some(via)), Ok(Some(cseq))) => via.branch().and_then(|branch| {
                let id = *self
                    .branches
                    .get(&(Arc::from(branch), cseq.method == Method::Cancel))?;
                self.clients
                    .get(&id)
                    .is_some_and(|client| *client.method() == cseq.method)
                    .then_some(id)
            }),
            _ => None,
        };
        let Some((id, client)) = found.and_then(|id| Some((id, self.clients.get_mut(&id)?))) else {
            self.stray = self.stray.saturating_add(1);
            return Received::Nothing;
        };
        let step = client.response(now, &self.timers, &response);
        if step == Step::AckAndDeliver {
            client.ack = client
                .acknowledge(&response)
                .map(|ack| ack.to_bytes().into());
        }
        if let (Step::AckAgain | Step::AckAndDeliver, Some(ack)) = (step, &client.ack) {
            self.outputs
                .push_back(Output::Transmit(client.route.clone(), ack.clone()));
        }
        let deadline = client.deadline();
        self.deadlines.set(Key::Client(id), deadline);
        match step {
            Step::Deliver | Step::AckAndDeliver => Received::Response(id, Arc::new(response)),
            Step::Absorb | Step::AckAgain => Received::Nothing,
        }
    }

    /// Whether a copy of `new` came before it on another route and has no final response yet (RFC
    /// 3261 section 8.2.2.2). `new` gets 482 then.
    #[must_use]
    pub fn merged(&self, new: &NewRequest) -> bool {
        merge_key(&new.request).is_some_and(|key| self.merges.contains_key(&key))
    }

    /// Returns the INVITE that a CANCEL is for, if its transaction is there.
    #[must_use]
    pub fn cancelled(&self, cancel: &NewRequest) -> Option<ServerId> {
        self.keys
            .get(&ServerKey::of_cancelled(&cancel.request)?)
            .copied()
    }

    /// Opens a transaction for a request. With `reserved` it may use the last quarter of the table.
    ///
    /// # Errors
    /// There is no room.
    pub fn accept(
        &mut self,
        now: Instant,
        new: &NewRequest,
        reserved: bool,
    ) -> Result<ServerId, Full> {
        let part = |all: usize| if reserved { all } else { all - all / 4 };
        if self.len() >= part(self.most) || self.octets >= part(MOST_OCTETS) {
            return Err(Full);
        }
        self.octets = self.octets.saturating_add(new.size);
        let id = ServerId(self.number());
        let merge = merge_key(&new.request).filter(|key| !self.merges.contains_key(key));
        if let Some(key) = &merge {
            self.merges.insert(key.clone(), id);
        }
        self.keys.insert(new.key.clone(), id);
        let server = Server::new(now, &self.timers, new, merge);
        self.deadlines.set(Key::Server(id), server.deadline());
        self.servers.insert(id, server);
        Ok(id)
    }

    /// Returns the request of a server transaction.
    #[must_use]
    pub fn request_of(&self, id: ServerId) -> Option<&Arc<Request>> {
        self.servers.get(&id).map(|server| &server.request)
    }

    /// Returns the flow on which the request of a server transaction came.
    #[must_use]
    pub fn flow_of(&self, id: ServerId) -> Option<&Flow> {
        self.servers.get(&id).map(|server| &server.flow)
    }

    /// Whether a server transaction has no final response yet.
    #[must_use]
    pub fn is_owed(&self, id: ServerId) -> bool {
        self.servers.get(&id).is_some_and(Server::is_pending)
    }

    /// Sends a response. Returns the sent bytes, or `None` if the transaction is gone or has its
    /// final response.
    pub fn respond(
        &mut self,
        now: Instant,
        id: ServerId,
        response: &Response,
    ) -> Option<(Route, Arc<[u8]>)> {
        let server = self.servers.get_mut(&id)?;
        if !server.respond(now, &self.timers, response.status) {
            return None;
        }
        let bytes: Arc<[u8]> = response.to_bytes().into();
        server.last = Some(bytes.clone());
        let (route, deadline) = (server.route.clone(), server.deadline());
        self.deadlines.set(Key::Server(id), deadline);
        self.outputs
            .push_back(Output::Transmit(route.clone(), bytes.clone()));
        Some((route, bytes))
    }

    /// Responds to a request without a transaction. Its repetition is a new request.
    pub fn respond_stateless(&mut self, route: Route, response: &Response) {
        self.send(route, response.to_bytes().into());
    }

    /// Sends a message without a transaction: the ACK to a 2xx, or a repeated 2xx.
    pub fn send(&mut self, route: Route, bytes: Arc<[u8]>) {
        self.outputs.push_back(Output::Transmit(route, bytes));
    }

    /// Sends a request. The branch of its first Via must be unique.
    ///
    /// # Errors
    /// There is no room.
    pub fn request(
        &mut self,
        now: Instant,
        request: Request,
        route: Route,
    ) -> Result<ClientId, Full> {
        let branch = match request.headers.via() {
            Ok(Some(via)) => via.branch().map(Arc::from),
            _ => None,
        };
        let Some(branch) = branch.filter(|_| self.len() < self.most) else {
            return Err(Full);
        };
        Ok(self.begin(now, request, branch, route))
    }

    /// Sends CANCEL for an INVITE, and gives the INVITE 64*T1 to end. Returns `None` if it has its
    /// final response.
    pub fn cancel(
        &mut self,
        now: Instant,
        invite: ClientId,
        more: &[(String, String)],
    ) -> Option<ClientId> {
        let client = self
            .clients
            .get_mut(&invite)
            .filter(|client| client.is_pending())?;
        let mut request = client.cancel()?;
        for (name, value) in more {
            request.headers.push(name, value);
        }
        client.end_by(now + self.timers.timeout);
        let (branch, route, deadline) = (
            client.branch.clone(),
            client.route.clone(),
            client.deadline(),
        );
        self.deadlines.set(Key::Client(invite), deadline);
        if self.branches.contains_key(&(branch.clone(), true)) {
            return None;
        }
        Some(self.begin(now, request, branch, route))
    }

    fn begin(
        &mut self,
        now: Instant,
        request: Request,
        branch: Arc<str>,
        route: Route,
    ) -> ClientId {
        let id = ClientId(self.number());
        let is_cancel = request.method == Method::Cancel;
        let client = Client::new(now, &self.timers, request, branch.clone(), route);
        self.outputs
            .push_back(Output::Transmit(client.route.clone(), client.bytes.clone()));
        self.deadlines.set(Key::Client(id), client.deadline());
        self.branches.insert((branch, is_cancel), id);
        self.clients.insert(id, client);
        id
    }

    /// Returns the bytes of a request of ours, and their route.
    #[must_use]
    pub fn sent(&self, id: ClientId) -> Option<(&Route, &Arc<[u8]>)> {
        self.clients
            .get(&id)
            .map(|client| (&client.route, &client.bytes))
    }

    /// Gives a request 64*T1 for its response, in any state.
    pub fn give_up(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.end_by(now + self.timers.timeout);
            let deadline = client.deadline();
            self.deadlines.set(Key::Client(id), deadline);
        }
    }

    /// Forgets a request whose response nobody waits for.
    pub fn forget(&mut self, id: ClientId) {
        self.remove_client(id);
    }

    /// The far end refused messages, or there is no connection to it: the requests that wait for it
    /// have failed.
    pub fn unreachable(&mut self, transport: Transport, remote: SocketAddr) {
        self.fail(|client| {
            let route = &client.route;
            client.is_unanswered() && route.transport() == transport && route.remote() == remote
        });
    }

    /// A connection is gone: the requests over it without a response have failed.
    pub fn closed(&mut self, connection: ConnectionId) {
        self.fail(|client| client.is_unanswered() && client.route.connection() == Some(connection));
    }

    fn fail(&mut self, gone: impl Fn(&Client) -> bool) {
        let mut failed: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, client)| gone(client))
            .map(|(id, _)| *id)
            .collect();
        failed.sort_unstable();
        for id in failed {
            self.remove_client(id);
            self.outputs
                .push_back(Output::Event(Event::Unreachable(id)));
        }
    }

    /// Does what is due.
    pub fn timeout(&mut self, now: Instant) {
        while let Some(key) = self.deadlines.pop(now) {
            match key {
                Key::Client(id) => self.client_due(now, id),
                Key::Server(id) => self.server_due(now, id),
            }
        }
    }

    fn client_due(&mut self, now: Instant, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        match client.timeout(now, &self.timers) {
            client::Due::Nothing => {}
            client::Due::Resend => {
                self.outputs
                    .push_back(Output::Transmit(client.route.clone(), client.bytes.clone()));
            }
            client::Due::TimedOut => {
                self.remove_client(id);
                self.outputs.push_back(Output::Event(Event::TimedOut(id)));
                return;
            }
            client::Due::End => {
                self.remove_client(id);
                self.outputs
                    .push_back(Output::Event(Event::ClientEnded(id)));
                return;
            }
        }
        let deadline = client.deadline();
        self.deadlines.set(Key::Client(id), deadline);
    }

    fn server_due(&mut self, now: Instant, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else {
            return;
        };
        match server.timeout(now, &self.timers) {
            server::Due::Nothing => {}
            server::Due::Resend => {
                if let Some(last) = &server.last {
                    self.outputs
                        .push_back(Output::Transmit(server.route.clone(), last.clone()));
                }
            }
            server::Due::End => {
                self.remove_server(id);
                return;
            }
        }
        let deadline = server.deadline();
        self.deadlines.set(Key::Server(id), deadline);
    }

    fn remove_client(&mut self, id: ClientId) {
        if let Some(client) = self.clients.remove(&id) {
            self.branches
                .remove(&(client.branch.clone(), *client.method() == Method::Cancel));
            self.deadlines.set(Key::Client(id), None);
        }
    }

    fn remove_server(&mut self, id: ServerId) {
        if let Some(server) = self.servers.remove(&id) {
            self.keys.remove(&server.key);
            self.octets = self.octets.saturating_sub(server.size);
            if let Some(merge) = &server.merge {
                self.merges.remove(merge);
            }
            self.deadlines.set(Key::Server(id), None);
            self.outputs
                .push_back(Output::Event(Event::ServerEnded(id)));
        }
    }

    fn number(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.next
    }
}

/// Returns the route of responses (RFC 3261 section 18.2.2, RFC 3581), and notes `received` and
/// `rport` in the first Via.
///
/// `maddr` does not count: responses go to no other host than the source of the request.
fn answer_route(flow: &Flow, request: &mut Request) -> Option<Route> {
    let mut via = request.headers.via().ok()??;
    let source = canonical(flow.remote.ip());
    let wants_port = via.params.has("rport");
    if wants_port || via.host != source.into() {
        via.params.set("received", Some(&source.to_string()));
    }
    if wants_port {
        via.params
            .set("rport", Some(&flow.remote.port().to_string()));
    }
    let port = if wants_port {
        flow.remote.port()
    } else {
        via.port.unwrap_or(flow.transport.default_port())
    };
    request.headers.set_first_via(&via);
    if flow.transport.is_reliable() || port == flow.remote.port() {
        return Some(Route::Flow(*flow));
    }
    let remote = SocketAddr::new(flow.remote.ip(), port);
    Some(Route::Flow(Flow { remote, ..*flow }))
}

/// Returns the IPv4 address in a mapped IPv6 address of a socket.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
