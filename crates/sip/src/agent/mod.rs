//! A user agent (RFC 3261): registrations, calls, subscriptions of many accounts on one stack.
//!
//! [`Agent`] knows neither sockets nor clocks. Messages, answers of DNS and [`Command`]s go in with the time; [`Output`]s come
//! out of [`Agent::poll`], which is called until it has no more after each input, and [`Agent::deadline`] says when
//! [`Agent::timeout`] is due. All results of commands are [`AgentEvent`]s.
//!
//! Every table is bounded ([`Limits`]); what is refused is counted ([`Counters`]).

mod account;
mod call;
mod callee;
mod command;
mod compose;
mod event;
mod exchange;
mod guard;
mod ids;
mod incoming;
mod options;
mod outside;
mod publication;
mod refer;
mod registrars;
mod registration;
mod subscription;
mod udp_only;

use std::collections::{HashMap, VecDeque};
use std::hash::RandomState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub use self::command::{
    Body, Command, ExtraHeaders, Invite, Profile, Publish, Registration, Subscribe,
};
pub use self::event::{About, AgentEvent, Cause, Output, ResolveError, ResolveId};
pub use self::ids::{AccountId, CallId, ReferId, RequestId, SubscriptionId};
pub use self::options::{Allow, Limits, Local, Options, SessionTimer};

use self::account::Account;
use self::call::{Asked, Call};
use self::compose::Speaker;
use self::exchange::{Exchange, ExchangeId};
use self::guard::Guard;
use self::incoming::Usage;
use self::publication::Publication;
use self::refer::Refer;
use self::registrars::Registrars;
use self::subscription::Subscription;
use self::udp_only::UdpOnly;
use crate::deadlines::Deadlines;
use crate::flow::{Flow, Route, Target, Transport};
use crate::message::Message;
use crate::transaction::{self, ClientId, Received, ServerId, Transactions};

/// What was taken, and what was refused, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Messages that could not be parsed.
    pub malformed: u64,
    /// Requests of addresses that sent too many.
    pub limited: u64,
    /// Requests refused for lack of room: calls, accounts, transactions.
    pub full: u64,
    /// Requests for nobody: 404 and 481.
    pub unknown: u64,
    /// Answers that belonged to no request.
    pub stray: u64,
}

/// How much there is at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Accounts.
    pub accounts: usize,
    /// Calls.
    pub calls: usize,
    /// Subscriptions, publications and REFERs.
    pub subscriptions: usize,
    /// Transactions.
    pub transactions: usize,
    /// Requests of ours that wait for an answer.
    pub exchanges: usize,
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Timer {
    Register(AccountId),
    KeepAlive(AccountId),
    Call(CallId, CallTimer),
    Subscription(SubscriptionId),
    Publication(SubscriptionId),
    Refer(ReferId),
    /// A name was not found in time.
    Resolve(ResolveId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum CallTimer {
    /// A 2xx is to be repeated.
    Ok,
    /// A reliable provisional answer is to be repeated.
    Reliable,
    /// The call rings, which is to be said again.
    Ringing,
    /// The call was not answered.
    Unanswered,
    /// A re-INVITE is to be tried again.
    Glare,
    /// The session is to be refreshed, or is over.
    Session,
}

/// A user agent.
#[derive(Debug)]
pub struct Agent {
    options: Options,
    transactions: Transactions,
    random: StdRng,
    hash: RandomState,
    next: u64,
    guard: Guard,
    accounts: HashMap<AccountId, Account>,
    /// Accounts by the user part of their identity, oldest first.
    users: HashMap<String, Vec<AccountId>>,
    /// Accounts by the user part of their Contact, which nobody can guess.
    contacts: HashMap<String, AccountId>,
    /// Where accounts without an entrance are registered, and those with one.
    registrars: Registrars,
    entrances: Registrars,
    calls: HashMap<CallId, Call>,
    subscriptions: HashMap<SubscriptionId, Subscription>,
    publications: HashMap<SubscriptionId, Publication>,
    refers: HashMap<ReferId, Refer>,
    /// Whose dialogs have this tag of ours.
    tags: HashMap<String, Usage>,
    exchanges: HashMap<ExchangeId, Exchange>,
    clients: HashMap<ClientId, ExchangeId>,
    resolving: HashMap<ResolveId, ExchangeId>,
    /// Exchanges that failed before they began.
    stillborn: VecDeque<(ExchangeId, &'static str)>,
    udp_only: UdpOnly,
    /// Calls that ring.
    ringing: usize,
    /// INVITEs of peers, in which calls.
    servers: HashMap<ServerId, CallId>,
    deadlines: Deadlines<Timer>,
    outputs: VecDeque<Output>,
    counters: Counters,
}

impl Agent {
    /// An agent without accounts.
    #[must_use]
    pub fn new(options: Options, now: Instant) -> Self {
        Self::with_seed(options, now, rand::rng().random())
    }

    /// The same, with numbers at random that come from `seed`: for simulations.
    #[must_use]
    pub fn with_seed(options: Options, now: Instant, seed: [u8; 32]) -> Self {
        Self {
            transactions: Transactions::new(options.timers, options.limits.transactions),
            guard: Guard::new(&options.limits, now),
            options,
            random: StdRng::from_seed(seed),
            hash: RandomState::new(),
            next: 0,
            accounts: HashMap::new(),
            users: HashMap::new(),
            contacts: HashMap::new(),
            registrars: Registrars::default(),
            entrances: Registrars::default(),
            calls: HashMap::new(),
            subscriptions: HashMap::new(),
            publications: HashMap::new(),
            refers: HashMap::new(),
            tags: HashMap::new(),
            exchanges: HashMap::new(),
            clients: HashMap::new(),
            resolving: HashMap::new(),
            stillborn: VecDeque::new(),
            udp_only: UdpOnly::default(),
            ringing: 0,
            servers: HashMap::new(),
            deadlines: Deadlines::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What peers can reach us at from now on.
    pub fn set_locals(&mut self, locals: Vec<Local>) {
        self.options.locals = locals;
    }

    /// Takes one whole message that came on `flow`.
    pub fn receive(&mut self, now: Instant, flow: &Flow, bytes: &[u8]) {
        self.counters.received = self.counters.received.saturating_add(1);
        match Message::parse(bytes) {
            Ok(message) => match self.transactions.receive(now, flow, message, bytes.len()) {
                Received::Nothing => {}
                Received::Response(client, response) => {
                    self.on_response(now, client, response, bytes, flow)
                }
                Received::Ack(new) => self.on_ack(now, &new, bytes),
                Received::Request(new) => self.on_request(now, new, bytes),
            },
            Err(error) => {
                self.counters.malformed = self.counters.malformed.saturating_add(1);
                if let Some(response) = error.answer()
                    && self.admits(now, flow.remote.ip())
                {
                    self.transactions
                        .respond_stateless(Route::Flow(*flow), &response);
                }
            }
        }
        self.settle(now);
    }

    /// Follows a command.
    pub fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::SetAccount { account, profile } => self.set_account(now, account, *profile),
            Command::Register { account } => self.register_now(now, account),
            Command::RemoveAccount { account } => self.remove_account(now, account),
            Command::Invite {
                account,
                call,
                invite,
            } => self.invite(now, account, call, *invite),
            Command::Progress {
                call,
                code,
                headers,
                body,
            } => self.progress(now, call, code, &headers, body),
            Command::Accept {
                call,
                headers,
                body,
            } => self.accept(now, call, headers, body),
            Command::Reject {
                call,
                code,
                reason,
                headers,
            } => self.reject(now, call, code, reason, &headers),
            Command::Acknowledge { call, body } => self.answer_offer(now, call, &body),
            Command::Hangup { call, headers } => self.hangup(now, call, headers),
            Command::Reinvite {
                call,
                headers,
                body,
            } => self.reinvite(now, call, headers, body),
            Command::AcceptReinvite {
                call,
                headers,
                body,
            } => self.accept_reinvite(now, call, &headers, body),
            Command::RejectReinvite {
                call,
                code,
                headers,
            } => self.reject_reinvite(now, call, code, &headers),
            Command::InDialog {
                call,
                request,
                method,
                headers,
                body,
            } => {
                let asked = Asked {
                    request,
                    method,
                    headers,
                    body,
                };
                self.send_within(now, call, asked);
            }
            Command::OutOfDialog {
                account,
                request,
                method,
                uri,
                call_id,
                headers,
                body,
            } => {
                self.send_outside(
                    now,
                    (account, request),
                    method,
                    uri,
                    call_id,
                    &headers,
                    body.as_ref(),
                );
            }
            Command::NotifyRefer {
                refer,
                code,
                reason,
                last,
            } => self.notify_refer(now, refer, code, reason, last),
            Command::Subscribe {
                account,
                subscription,
                subscribe,
            } => {
                self.subscribe(now, account, subscription, *subscribe);
            }
            Command::Unsubscribe { subscription } => self.unsubscribe(now, subscription),
            Command::Publish {
                account,
                publication,
                publish,
            } => self.publish(now, account, publication, *publish),
            Command::Unpublish { publication } => self.unpublish(now, publication),
        }
        self.settle(now);
    }

    /// Takes the answer to [`Output::Resolve`]: where the name is, the best first.
    pub fn resolved(
        &mut self,
        now: Instant,
        id: ResolveId,
        targets: Result<Vec<Target>, ResolveError>,
    ) {
        self.take_targets(now, id, targets);
        self.settle(now);
    }

    /// What was sent to `remote` cannot arrive: it was refused (ICMP), or no connection came about.
    pub fn unreachable(&mut self, now: Instant, transport: Transport, remote: SocketAddr) {
        self.transactions.unreachable(transport, remote);
        self.settle(now);
    }

    /// A connection is gone.
    pub fn closed(&mut self, now: Instant, flow: &Flow) {
        if let Some(connection) = flow.connection {
            self.transactions.closed(connection);
            self.dialogs_closed(connection);
        }
        self.transactions.unreachable(flow.transport, flow.remote);
        self.registrars_closed(now, flow);
        self.settle(now);
    }

    /// The next thing to be done; until there is none, after each input.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::timeout`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        [self.transactions.deadline(), self.deadlines.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due.
    pub fn timeout(&mut self, now: Instant) {
        self.transactions.timeout(now);
        while let Some(timer) = self.deadlines.pop(now) {
            match timer {
                Timer::Register(id) => self.register(now, id),
                Timer::KeepAlive(id) => self.keep_alive(now, id),
                Timer::Call(id, timer) => self.call_due(now, id, timer),
                Timer::Subscription(id) => self.subscription_due(now, id),
                Timer::Publication(id) => self.publication_due(now, id),
                Timer::Refer(id) => self.refer_due(now, id),
                Timer::Resolve(id) => self.take_targets(now, id, Err(ResolveError::Dns)),
            }
        }
        self.settle(now);
    }

    /// What was taken and refused.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            stray: self.transactions.stray(),
            ..self.counters
        }
    }

    /// How much there is.
    #[must_use]
    pub fn load(&self) -> Load {
        let others = self.publications.len().saturating_add(self.refers.len());
        Load {
            accounts: self.accounts.len(),
            calls: self.calls.len(),
            subscriptions: self.subscriptions.len().saturating_add(others),
            transactions: self.transactions.len(),
            exchanges: self.exchanges.len(),
        }
    }

    /// Takes what the transactions want done, until they want no more.
    fn settle(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.transactions.poll() {
                match output {
                    transaction::Output::Transmit(route, bytes) => {
                        self.outputs.push_back(Output::Transmit { route, bytes });
                    }
                    transaction::Output::Event(event) => self.on_event(now, &event),
                }
            } else if let Some((exchange, reason)) = self.stillborn.pop_front() {
                self.failed(now, exchange, 503, reason);
            } else {
                return;
            }
        }
    }

    fn tell(&mut self, event: AgentEvent) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Tells a message to whom it may concern.
    fn trace(
        &mut self,
        speaker: &Speaker,
        call: Option<CallId>,
        sent: bool,
        route: &Route,
        bytes: &[u8],
    ) {
        if let Some(account) = speaker.account.filter(|_| speaker.profile.trace) {
            let (route, bytes) = (route.clone(), Arc::from(bytes));
            self.tell(AgentEvent::Trace {
                account,
                call,
                sent,
                route,
                bytes,
            });
        }
    }

    fn number(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.next
    }
}
