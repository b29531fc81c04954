//! The part of an agent that all others send by: identifiers, transactions, exchanges, deadlines,
//! outputs.

mod compose;
mod exchanges;
mod random;
mod refusals;
mod responses;
mod sending;
mod udp_only;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use super::accounts::{Accounts, Callee, Speaker};
use super::guard::Guard;
use super::timers::{CallTimer, Timer};
use super::{
    AccountId, AgentEvent, CallId, Counters, Local, Options, Output, RequestId, SubscriptionId,
};
use crate::deadlines::Deadlines;
use crate::flow::{Flow, Route};
use crate::message::{ParseError, Request, Response, StatusCode, Uri};
use crate::transaction::{NewRequest, ServerId, Transactions};

pub(super) use compose::{Contact, FirstRequest, add_headers, set_request_body, set_response_body};
use exchanges::Exchanges;
pub(super) use exchanges::{
    Answer, Cancelled, ExchangeId, Outcome, Owner, REFUSED, Sending, to_tag,
};
use random::Random;

/// The parts that all others work with. It knows no call and no registration: a request of theirs
/// ends with an [`Outcome`], which the agent passes to its owner.
#[derive(Debug)]
pub(super) struct Stack {
    /// The time of the present input.
    pub(super) now: Instant,
    pub(super) options: Options,
    pub(super) random: Random,
    pub(super) transactions: Transactions,
    pub(super) deadlines: Deadlines<Timer>,
    pub(super) accounts: Accounts,
    exchanges: Exchanges,
    guard: Guard,
    outputs: VecDeque<Output>,
    counters: Counters,
}

impl Stack {
    pub(super) fn new(options: Options, now: Instant, seed: [u8; 32]) -> Self {
        Self {
            now,
            transactions: Transactions::new(options.timers, options.limits.transactions),
            guard: Guard::new(&options.limits, now),
            options,
            random: Random::new(seed),
            deadlines: Deadlines::new(),
            accounts: Accounts::default(),
            exchanges: Exchanges::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    pub(super) fn set_locals(&mut self, locals: Vec<Local>) {
        self.options.locals = locals;
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn report(&mut self, event: AgentEvent) {
        self.push(Output::Event(event));
    }

    pub(super) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The earliest deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.transactions.deadline(), self.deadlines.next()]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            stray: self.transactions.stray(),
            ..self.counters
        }
    }

    pub(super) fn count_received(&mut self) {
        self.counters.received = self.counters.received.saturating_add(1);
    }

    /// Counts a refusal for lack of room.
    pub(super) fn count_full(&mut self) {
        self.counters.full = self.counters.full.saturating_add(1);
    }

    /// Responds to a message that could not be parsed, if it can have a response.
    pub(super) fn refuse_malformed(&mut self, flow: &Flow, error: &ParseError) {
        self.counters.malformed = self.counters.malformed.saturating_add(1);
        if let Some(response) = error.answer()
            && self.admits(flow.remote.ip())
        {
            self.transactions
                .respond_stateless(Route::Flow(*flow), &response);
        }
    }

    pub(super) fn set_call_timer(&mut self, id: CallId, timer: CallTimer, at: Instant) {
        self.deadlines.set(Timer::Call(id, timer), Some(at));
    }

    pub(super) fn clear_call_timer(&mut self, id: CallId, timer: CallTimer) {
        self.deadlines.set(Timer::Call(id, timer), None);
    }

    /// Whether the source of a request has sent too many. Such a request gets no response: that
    /// would be as much work as the request itself.
    pub(super) fn limits(&mut self, new: &NewRequest) -> bool {
        let admitted = self.admits(new.flow.remote.ip());
        if !admitted {
            self.counters.limited = self.counters.limited.saturating_add(1);
        }
        !admitted
    }

    fn admits(&mut self, source: IpAddr) -> bool {
        let registered = self.accounts.registered_at(source);
        self.is_trusted(source) || self.guard.admits(self.now, source, registered)
    }

    /// Whether nothing limits `source`, because accounts have an entrance there.
    fn is_trusted(&self, source: IpAddr) -> bool {
        self.guard.has_entrance(source) || self.accounts.has_entrance(source)
    }

    /// Whether `source` is trusted, or a registrar of accounts.
    pub(super) fn is_known(&self, source: IpAddr) -> bool {
        self.is_trusted(source) || self.accounts.registered_at(source) > 0
    }

    /// Finds the account that a request outside of dialogs is for.
    pub(super) fn callee(&self, request: &Request, flow: &Flow) -> Callee {
        let is_entrance = self.options.strangers && self.guard.has_entrance(flow.remote.ip());
        self.accounts
            .callee(request, flow, is_entrance, &self.options.direct)
    }

    /// Returns the account that a request outside of dialogs is for, unless an entrance decides.
    pub(super) fn account_for(&self, request: &Request, flow: &Flow) -> Option<AccountId> {
        match self.callee(request, flow) {
            Callee::Account(id) => Some(id),
            Callee::Entrance { .. } | Callee::Gone | Callee::Nobody => None,
        }
    }

    pub(super) fn speaker(&self, id: AccountId) -> Option<Speaker> {
        self.accounts.speaker(id)
    }

    /// Opens a transaction for a request in a dialog.
    pub(super) fn open(&mut self, new: &NewRequest) -> Option<ServerId> {
        self.accept(new, true)
    }

    /// Opens a transaction for a request outside of dialogs.
    pub(super) fn open_new(&mut self, new: &NewRequest) -> Option<ServerId> {
        let is_known = self.is_known(new.flow.remote.ip());
        self.accept(new, is_known)
    }

    fn accept(&mut self, new: &NewRequest, reserved: bool) -> Option<ServerId> {
        let server = self.transactions.accept(self.now, new, reserved).ok();
        if server.is_none() {
            self.refuse_full(new);
        }
        server
    }

    /// Responds to a request, and traces the response. Returns the sent message.
    pub(super) fn answer(
        &mut self,
        call: Option<CallId>,
        speaker: &Speaker,
        server: ServerId,
        response: &Response,
    ) -> Option<SentResponse> {
        let (route, bytes) = self.transactions.respond(self.now, server, response)?;
        self.trace(speaker, call, true, &route, &bytes);
        Some(SentResponse { route, bytes })
    }

    /// Responds to a request that no dialog of ours knows.
    pub(super) fn answer_strange(
        &mut self,
        server: ServerId,
        request: &Request,
        mut response: Response,
    ) {
        let tag = self.random.stateless_tag(request);
        response.headers.set_to_tag(&tag);
        self.transactions.respond(self.now, server, &response);
    }

    /// Sends a response once more.
    pub(super) fn repeat(&mut self, sent: SentResponse) {
        self.transactions.send(sent.route, sent.bytes);
    }

    /// Reports a message, if the account wants traces.
    pub(super) fn trace(
        &mut self,
        speaker: &Speaker,
        call: Option<CallId>,
        sent: bool,
        route: &Route,
        bytes: &[u8],
    ) {
        if let Some(account) = speaker.account.filter(|_| speaker.profile.trace) {
            let (route, bytes) = (route.clone(), Arc::from(bytes));
            self.report(AgentEvent::Trace {
                account,
                call,
                sent,
                route,
                bytes,
            });
        }
    }

    /// Reports the answer to a request of the owner.
    pub(super) fn report_answer(&mut self, request: RequestId, answer: Answer) {
        self.report(AgentEvent::Response {
            request,
            code: answer.code,
            reason: answer.reason,
            response: answer.response,
        });
    }

    /// Reports that a request of the owner was not sent.
    pub(super) fn report_unsent(&mut self, request: RequestId, code: u16, reason: &str) {
        self.report(AgentEvent::Response {
            request,
            code,
            reason: reason.to_owned(),
            response: None,
        });
    }

    /// Returns who subscribes or publishes. `count` is the number of subscriptions, publications
    /// and REFERs that there are. Reports a failure if it must not.
    pub(super) fn subscriber(
        &mut self,
        account: AccountId,
        id: SubscriptionId,
        uri: &Uri,
        count: usize,
    ) -> Option<Speaker> {
        let Some(speaker) = self.speaker(account) else {
            self.report_unsubscribable(id, 500, "No such account");
            return None;
        };
        if count >= self.options.limits.subscriptions {
            self.count_full();
            self.report_unsubscribable(id, 503, "Too many subscriptions");
            return None;
        }
        if uri.as_sip().is_none() {
            self.report_unsubscribable(id, 416, StatusCode::UNSUPPORTED_URI_SCHEME.reason());
            return None;
        }
        Some(speaker)
    }

    fn report_unsubscribable(&mut self, subscription: SubscriptionId, code: u16, reason: &str) {
        self.report(AgentEvent::SubscriptionFailed {
            subscription,
            code,
            reason: reason.to_owned(),
            response: None,
        });
    }

    /// Reports that a subscription or publication was refused, and is gone.
    pub(super) fn report_refused(&mut self, subscription: SubscriptionId, answer: Answer) {
        self.report(AgentEvent::SubscriptionFailed {
            subscription,
            code: answer.code,
            reason: answer.reason,
            response: answer.response,
        });
    }

    /// Reports that a subscription or publication is over.
    pub(super) fn report_ended(&mut self, subscription: SubscriptionId, reason: Option<String>) {
        self.report(AgentEvent::SubscriptionEnded {
            subscription,
            reason,
        });
    }
}

/// A response that was sent, for its repetitions.
#[derive(Debug, Clone)]
pub(super) struct SentResponse {
    route: Route,
    bytes: Arc<[u8]>,
}
