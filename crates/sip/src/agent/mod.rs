//! A user agent (RFC 3261): registrations, calls, subscriptions of many accounts on one stack.
//!
//! [`Agent`] knows neither sockets nor clocks. Messages, answers of DNS and [`Command`]s go in with
//! the time. [`Agent::poll`] returns the [`Output`]s; the owner calls it until there are no more,
//! after each input. [`Agent::deadline`] says when [`Agent::timeout`] is due. All results of
//! commands are [`AgentEvent`]s.
//!
//! Every table is bounded ([`Limits`]), and refusals are counted ([`Counters`]).

mod accounts;
mod calls;
mod command;
mod event;
mod extensions;
mod guard;
mod ids;
mod load;
mod options;
mod out_of_dialog;
mod peer_requests;
mod publications;
mod refers;
mod registrations;
mod stack;
mod subscriptions;
mod timers;

use std::net::SocketAddr;
use std::time::Instant;

use rand::Rng;

pub use self::command::{
    Body, Command, ExtraHeaders, Invite, Profile, Publish, Registration, Subscribe,
};
pub use self::event::{About, AgentEvent, Cause, Output, ResolveError, ResolveId};
pub use self::ids::{AccountId, CallId, ReferId, RequestId, SubscriptionId};
pub use self::load::{Counters, Load};
pub use self::options::{Allow, Limits, Local, Options, SessionTimer};

use self::calls::{Calls, OwnerRequest};
use self::out_of_dialog::OutOfDialog;
use self::publications::Publications;
use self::refers::{News, Refers};
use self::registrations::Registrations;
use self::stack::{Answer, ExchangeId, Outcome, Owner, Stack};
use self::subscriptions::Subscriptions;
use self::timers::Timer;
use crate::flow::{Flow, Target, Transport};
use crate::message::Message;
use crate::transaction::{self, Event, Received};

/// A user agent: parts that own their state. A part is given the stack, by which it sends.
#[derive(Debug)]
pub struct Agent {
    stack: Stack,
    registrations: Registrations,
    calls: Calls,
    subscriptions: Subscriptions,
    publications: Publications,
    refers: Refers,
}

impl Agent {
    /// Creates an agent without accounts.
    #[must_use]
    pub fn new(options: Options, now: Instant) -> Self {
        Self::with_seed(options, now, rand::rng().random())
    }

    /// Creates an agent whose random numbers come from `seed`: for simulations.
    #[must_use]
    pub fn with_seed(options: Options, now: Instant, seed: [u8; 32]) -> Self {
        Self {
            stack: Stack::new(options, now, seed),
            registrations: Registrations::default(),
            calls: Calls::default(),
            subscriptions: Subscriptions::default(),
            publications: Publications::default(),
            refers: Refers::default(),
        }
    }

    /// Sets the addresses that peers can reach us at.
    pub fn set_locals(&mut self, locals: Vec<Local>) {
        self.stack.set_locals(locals);
    }

    /// Takes one whole message that came on `flow`.
    pub fn receive(&mut self, now: Instant, flow: &Flow, bytes: &[u8]) {
        self.stack.now = now;
        self.stack.count_received();
        match Message::parse(bytes) {
            Ok(message) => {
                let received = self
                    .stack
                    .transactions
                    .receive(now, flow, message, bytes.len());
                match received {
                    Received::Nothing => {}
                    Received::Response(client, response) => {
                        let outcome = self.stack.on_response(client, response, bytes, flow);
                        self.follow(outcome);
                    }
                    Received::Ack(new) => self.calls.take_ack(&mut self.stack, &new, bytes),
                    Received::Request(new) => self.on_request(new, bytes),
                }
            }
            Err(error) => self.stack.refuse_malformed(flow, &error),
        }
        self.settle();
    }

    /// Executes a command.
    pub fn command(&mut self, now: Instant, command: Command) {
        self.stack.now = now;
        self.run(command);
        self.settle();
    }

    fn run(&mut self, command: Command) {
        let Self {
            stack,
            registrations,
            calls,
            subscriptions,
            publications,
            refers,
        } = self;
        match command {
            Command::SetAccount { account, profile } => {
                registrations.set_account(stack, account, *profile);
            }
            Command::Register { account } => registrations.register_now(stack, account),
            Command::RemoveAccount { account } => registrations.remove_account(stack, account),
            Command::Invite {
                account,
                call,
                invite,
            } => calls.invite(stack, account, call, *invite),
            Command::Progress {
                call,
                code,
                headers,
                body,
            } => calls.progress(stack, call, code, &headers, body),
            Command::Accept {
                call,
                headers,
                body,
            } => calls.accept(stack, call, headers, body),
            Command::Reject {
                call,
                code,
                reason,
                headers,
            } => calls.reject(stack, call, code, reason, &headers),
            Command::Acknowledge { call, body } => calls.answer_offer(stack, call, &body),
            Command::Hangup { call, headers } => calls.hangup(stack, call, headers),
            Command::Reinvite {
                call,
                headers,
                body,
            } => calls.reinvite(stack, call, headers, body),
            Command::AcceptReinvite {
                call,
                headers,
                body,
            } => calls.accept_reinvite(stack, call, &headers, body),
            Command::RejectReinvite {
                call,
                code,
                headers,
            } => calls.reject_reinvite(stack, call, code, &headers),
            Command::InDialog {
                call,
                request,
                method,
                headers,
                body,
            } => {
                let request = OwnerRequest {
                    request,
                    method,
                    headers,
                    body,
                };
                calls.send_request(stack, call, request);
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
                let request = OutOfDialog {
                    account,
                    id: request,
                    method,
                    uri,
                    call_id,
                    headers,
                    body,
                };
                request.send(stack);
            }
            Command::NotifyRefer {
                refer,
                code,
                reason,
                last,
            } => refers.notify(stack, calls, refer, News::new(code, reason, last)),
            Command::Subscribe {
                account,
                subscription,
                subscribe,
            } => {
                let others = publications.len().saturating_add(refers.len());
                subscriptions.subscribe(stack, account, subscription, *subscribe, others);
            }
            Command::Unsubscribe { subscription } => {
                subscriptions.unsubscribe(stack, subscription);
            }
            Command::Publish {
                account,
                publication,
                publish,
            } => {
                let others = subscriptions.len().saturating_add(refers.len());
                publications.publish(stack, account, publication, *publish, others);
            }
            Command::Unpublish { publication } => publications.unpublish(stack, publication),
        }
    }

    /// Takes the answer to [`Output::Resolve`]: the addresses of the name, the best first.
    pub fn resolved(
        &mut self,
        now: Instant,
        id: ResolveId,
        targets: Result<Vec<Target>, ResolveError>,
    ) {
        self.stack.now = now;
        let outcome = self.stack.take_targets(id, targets);
        self.follow(outcome);
        self.settle();
    }

    /// Messages to `remote` cannot arrive: they were refused (ICMP), or there is no connection.
    pub fn unreachable(&mut self, now: Instant, transport: Transport, remote: SocketAddr) {
        self.stack.now = now;
        self.stack.transactions.unreachable(transport, remote);
        self.settle();
    }

    /// A connection is gone.
    pub fn closed(&mut self, now: Instant, flow: &Flow) {
        self.stack.now = now;
        let (transport, remote) = (flow.transport, flow.remote);
        if let Some(connection) = flow.connection {
            self.stack.transactions.closed(connection);
            self.calls.connection_closed(connection);
        }
        self.stack.transactions.unreachable(transport, remote);
        self.registrations.connection_closed(&mut self.stack, flow);
        self.settle();
    }

    /// Returns the next output. To be called until there is none, after each input.
    pub fn poll(&mut self) -> Option<Output> {
        self.stack.poll()
    }

    /// Returns when [`Self::timeout`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.stack.deadline()
    }

    /// Does what is due.
    pub fn timeout(&mut self, now: Instant) {
        self.stack.now = now;
        self.stack.transactions.timeout(now);
        while let Some(timer) = self.stack.deadlines.pop(now) {
            self.on_timer(timer);
            self.release_dialogs();
        }
        self.settle();
    }

    fn on_timer(&mut self, timer: Timer) {
        let stack = &mut self.stack;
        match timer {
            Timer::Register(id) => self.registrations.register(stack, id),
            Timer::KeepAlive(id) => self.registrations.keep_alive(stack, id),
            Timer::Call(id, timer) => self.calls.timer_due(stack, id, timer),
            Timer::Subscription(id) => self.subscriptions.timer_due(stack, id),
            Timer::Publication(id) => self.publications.timer_due(stack, id),
            Timer::Refer(id) => self.refers.timer_due(stack, &mut self.calls, id),
            Timer::Resolve(id) => {
                let outcome = stack.take_targets(id, Err(ResolveError::Dns));
                self.follow(outcome);
            }
        }
    }

    /// Returns what was received and refused since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.stack.counters()
    }

    /// Returns how much there is at present.
    #[must_use]
    pub fn load(&self) -> Load {
        let others = self.publications.len().saturating_add(self.refers.len());
        Load {
            accounts: self.stack.accounts.len(),
            calls: self.calls.len(),
            subscriptions: self.subscriptions.len().saturating_add(others),
            transactions: self.stack.transactions.len(),
            exchanges: self.stack.exchange_count(),
        }
    }

    /// Takes the outputs of the transactions, until there are no more.
    fn settle(&mut self) {
        loop {
            self.release_dialogs();
            if let Some(output) = self.stack.transactions.poll() {
                match output {
                    transaction::Output::Transmit(route, bytes) => {
                        self.stack.push(Output::Transmit { route, bytes });
                    }
                    transaction::Output::Event(Event::ServerEnded(server)) => {
                        self.calls.server_ended(server);
                    }
                    transaction::Output::Event(event) => {
                        let outcome = self.stack.on_event(&event);
                        self.follow(outcome);
                    }
                }
            } else if let Some(outcome) = self.stack.next_unsent() {
                self.follow(outcome);
            } else {
                return;
            }
        }
    }

    /// Gives the dialogs of calls that ended to their REFERs.
    fn release_dialogs(&mut self) {
        for ended in self.calls.take_ended() {
            self.refers.adopt(&ended);
        }
    }

    /// Passes the outcome of a request of ours to its owner.
    fn follow(&mut self, outcome: Option<Outcome>) {
        let stack = &mut self.stack;
        match outcome {
            None => {}
            Some(Outcome::Progress {
                call,
                request,
                response,
            }) => self.calls.progressed(stack, call, &request, response),
            Some(Outcome::Accepted {
                owner,
                exchange,
                answer,
            }) => self.calls.invite_accepted(stack, owner, exchange, *answer),
            Some(Outcome::Finished {
                owner,
                exchange,
                answer,
            }) => self.finished(owner, exchange, *answer),
            Some(Outcome::Changed {
                owner,
                exchange,
                route,
            }) => {
                let number = self.next_cseq(owner);
                self.stack.send_again(exchange, number, route);
            }
        }
    }

    fn finished(&mut self, owner: Owner, exchange: ExchangeId, answer: Answer) {
        let Self {
            stack,
            registrations,
            calls,
            subscriptions,
            publications,
            refers,
        } = self;
        match owner {
            Owner::Register(account) => registrations.registered(stack, account, exchange, answer),
            Owner::KeepAlive(account) => registrations.kept_alive(stack, account, &answer),
            Owner::Invite(call) => calls.invite_refused(stack, call, answer),
            Owner::Reinvite(call) => calls.reinvite_refused(stack, call, answer),
            Owner::Refresh(call) => calls.refreshed(stack, call, &answer),
            Owner::Bye(call) => calls.bye_answered(stack, call),
            Owner::InDialog(call, request) => calls.answered(stack, call, request, answer),
            Owner::OutOfDialog(request) => stack.report_answer(request, answer),
            Owner::Subscribe(subscription) => subscriptions.answered(stack, subscription, answer),
            Owner::Publish(publication) => publications.answered(stack, publication, answer),
            Owner::NotifyRefer(refer) => refers.notified(stack, calls, refer, &answer),
            Owner::Ack(_) | Owner::Nobody => {}
        }
    }

    /// Returns the number for a request that is sent again within a dialog.
    fn next_cseq(&mut self, owner: Owner) -> Option<u32> {
        let dialog = match owner {
            Owner::Reinvite(call)
            | Owner::Refresh(call)
            | Owner::Bye(call)
            | Owner::InDialog(call, _) => self.calls.dialog(call),
            Owner::Subscribe(subscription) => self.subscriptions.dialog(subscription),
            Owner::NotifyRefer(refer) => self.refers.dialog(&mut self.calls, refer),
            _ => None,
        };
        dialog.map(|dialog| dialog.next_cseq())
    }
}
