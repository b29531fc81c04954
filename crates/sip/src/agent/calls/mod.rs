//! Calls of both directions.

mod in_dialog;
mod incoming;
mod outgoing;
mod reinvite;
mod reliable;
mod session;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) use self::in_dialog::OwnerRequest;
use self::incoming::Ringing;
use self::outgoing::Calling;
use self::reinvite::Reinvite;
use self::session::Session;
use super::accounts::Speaker;
use super::stack::{
    Cancelled, Contact, ExchangeId, Owner, Sending, SentResponse, Stack, add_headers,
    set_request_body,
};
use super::timers::{CallTimer, Timer};
use super::{AgentEvent, Body, CallId, Cause, ExtraHeaders};
use crate::dialog::Dialog;
use crate::digest::Credentials;
use crate::flow::{ConnectionId, Flow};
use crate::message::{Message, Method, Request, StatusCode};
use crate::transaction::ServerId;

/// All calls, by the tags and transactions that lead to them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: HashMap<CallId, Call>,
    /// Calls by our tag of their dialog.
    tags: HashMap<String, CallId>,
    /// Calls by the unanswered INVITE of the peer.
    servers: HashMap<ServerId, CallId>,
    /// The number of calls that ring.
    ringing: usize,
    /// Calls that ended, whose dialogs may still be needed.
    ended: Vec<EndedCall>,
}

/// The dialog of a call that is no longer there.
#[derive(Debug)]
pub(super) struct EndedCall {
    pub(super) id: CallId,
    pub(super) dialog: Option<Dialog>,
}

/// A call.
#[derive(Debug)]
struct Call {
    speaker: Speaker,
    call_id: String,
    local_tag: String,
    /// Whether we called.
    outgoing: bool,
    phase: Phase,
    /// The dialog. An outgoing call has one from the 2xx on.
    dialog: Option<Dialog>,
    /// The connection of the peer's call, for our requests to it.
    flow: Option<Flow>,
    /// Our 2xx that was not acknowledged.
    unacked: Option<SentOk>,
    /// The peer's 2xx whose ACK waits for an answer to its offer.
    owed: Option<Owed>,
    /// Our re-INVITE.
    reinvite: Option<Reinvite>,
    /// The peer's re-INVITE or UPDATE.
    theirs: Option<ServerId>,
    session: Option<Session>,
    /// The SDP that we sent last.
    sdp: Option<Body>,
    /// Whether the peer accepts UPDATE.
    peer_updates: bool,
    /// The number of our REFERs that wait for notifications.
    referring: u8,
    /// A request of the owner is under way. The others wait.
    asking: bool,
    waiting: VecDeque<OwnerRequest>,
    /// The hangup that waits for the ACK to our 2xx.
    leaving: Option<(Ending, ExtraHeaders)>,
    credentials: Option<Credentials>,
}

#[derive(Debug)]
enum Phase {
    /// Ours, not answered.
    Calling(Box<Calling>),
    /// The peer's, not answered.
    Ringing(Box<Ringing>),
    Up,
    /// BYE was sent.
    Ending(Ending),
}

/// The end of a call, as the owner will see it.
#[derive(Debug, Clone)]
struct Ending {
    cause: Cause,
    code: u16,
    reason: &'static str,
}

/// A hangup by command. Janus words it like this.
const HANGUP: Ending = Ending {
    cause: Cause::Hangup,
    code: 200,
    reason: "to BYE",
};
const CANCELLED: Ending = Ending {
    cause: Cause::Cancelled,
    code: 487,
    reason: "Request Terminated",
};
const HUNG_UP: Ending = Ending {
    cause: Cause::Bye,
    code: 200,
    reason: "Session Terminated",
};
const EXPIRED: Ending = Ending {
    cause: Cause::Lost,
    code: 408,
    reason: "Session Expired",
};
const NO_ACK: Ending = Ending {
    cause: Cause::NoAck,
    code: 200,
    reason: "to BYE",
};

/// A 2xx of ours, repeated until it is acknowledged (RFC 3261 section 13.3.1.4).
#[derive(Debug)]
struct SentOk {
    sent: SentResponse,
    cseq: u32,
    interval: Duration,
    until: Instant,
}

/// A 2xx of the peer with its offer.
#[derive(Debug)]
struct Owed {
    exchange: ExchangeId,
    cseq: u32,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The call whose dialog has this tag of ours.
    pub(super) fn of_tag(&self, tag: &str) -> Option<CallId> {
        self.tags.get(tag).copied()
    }

    pub(super) fn speaker(&self, id: CallId) -> Option<Speaker> {
        self.calls.get(&id).map(|call| call.speaker.clone())
    }

    pub(super) fn dialog(&mut self, id: CallId) -> Option<&mut Dialog> {
        self.calls.get_mut(&id)?.dialog.as_mut()
    }

    /// Takes the dialogs of the calls that ended.
    pub(super) fn take_ended(&mut self) -> Vec<EndedCall> {
        std::mem::take(&mut self.ended)
    }

    /// A transaction of a peer is gone.
    pub(super) fn server_ended(&mut self, server: ServerId) {
        self.servers.remove(&server);
    }

    /// Returns a call in phase `Up`.
    fn up(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls
            .get_mut(&id)
            .filter(|call| matches!(call.phase, Phase::Up))
    }

    /// Makes the next request in the dialog of a call.
    fn request_within(&mut self, stack: &mut Stack, id: CallId, method: Method) -> Option<Request> {
        let call = self.calls.get_mut(&id)?;
        let dialog = match &mut call.phase {
            Phase::Calling(calling) => calling.latest_dialog()?,
            _ => call.dialog.as_mut()?,
        };
        let mut request = dialog.request(method);
        let speaker = call.speaker.clone();
        stack.sign(&speaker, &mut request.headers, "User-Agent");
        Some(request)
    }

    /// Sends a request in a call.
    fn send_in(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        owner: Owner,
        request: Request,
    ) -> Option<ExchangeId> {
        let call = self.calls.get(&id)?;
        let mut sending = Sending::within(owner, call.speaker.clone(), request, Some(id));
        sending.flow = call.own_flow();
        if call.credentials.is_some() {
            sending.credentials = call.credentials.clone();
        }
        sending.contact = Contact::of(&sending.request.method);
        Some(stack.send(sending))
    }

    /// Hangs up in any phase of the call.
    pub(super) fn hangup(&mut self, stack: &mut Stack, id: CallId, headers: ExtraHeaders) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        match &mut call.phase {
            Phase::Calling(calling) => {
                calling.cancelled = true;
                let (exchange, early) = (calling.exchange, calling.invite.cancel_early);
                if stack.cancel(exchange, only_clean(headers), early) == Cancelled::Unsent {
                    self.end(stack, id, CANCELLED, None);
                }
            }
            Phase::Ringing(_) => self.reject(stack, id, 480, None, &headers),
            Phase::Up => self.leave(stack, id, HANGUP, headers),
            Phase::Ending(_) => {}
        }
    }

    /// Sends BYE as soon as that is allowed (RFC 3261 section 15).
    fn leave(&mut self, stack: &mut Stack, id: CallId, ending: Ending, headers: ExtraHeaders) {
        let Some(call) = self.up(id) else {
            return;
        };
        if call.unacked.is_some() {
            call.leaving = Some((ending, headers));
            return;
        }
        if call.owed.is_some() {
            self.acknowledge_owed(stack, id, None);
        }
        let Some(mut request) = self.request_within(stack, id, Method::Bye) else {
            self.end(stack, id, ending, None);
            return;
        };
        add_headers(&mut request.headers, &headers, &[]);
        self.send_in(stack, id, Owner::Bye(id), request);
        self.quiet(stack, id);
        self.drop_theirs(stack, id);
        if let Some(call) = self.calls.get_mut(&id) {
            call.phase = Phase::Ending(ending);
        }
    }

    /// Our BYE has its response, or will never get one.
    pub(super) fn bye_answered(&mut self, stack: &mut Stack, id: CallId) {
        if let Some(Phase::Ending(ending)) = self.calls.get(&id).map(|call| &call.phase) {
            let ending = ending.clone();
            self.end(stack, id, ending, None);
        }
    }

    /// Ends a call, and reports it.
    fn end(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        ending: Ending,
        message: Option<Arc<Message>>,
    ) {
        let Ending {
            cause,
            code,
            reason,
        } = ending;
        self.end_as(stack, id, cause, code, reason.to_owned(), message);
    }

    fn end_as(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        cause: Cause,
        code: u16,
        reason: String,
        message: Option<Arc<Message>>,
    ) {
        self.drop_theirs(stack, id);
        self.quiet(stack, id);
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        self.tags.remove(&call.local_tag);
        if let Some(exchange) = call.reinvite.as_ref().and_then(Reinvite::exchange) {
            stack.give_up(exchange);
        }
        if let Phase::Ringing(ringing) = &call.phase {
            self.servers.remove(&ringing.server);
            self.ringing = self.ringing.saturating_sub(1);
        }
        for asked in &call.waiting {
            stack.report_unsent(asked.request, 481, StatusCode::CALL_DOES_NOT_EXIST.reason());
        }
        stack.report(AgentEvent::Ended {
            call: id,
            cause,
            code,
            reason,
            message,
        });
        self.ended.push(EndedCall {
            id,
            dialog: call.dialog,
        });
    }

    /// Reports the end of a call that did not begin.
    fn never(&self, stack: &mut Stack, call: CallId, code: u16, reason: &str) {
        let reason = reason.to_owned();
        stack.report(AgentEvent::Ended {
            call,
            cause: Cause::Refused,
            code,
            reason,
            message: None,
        });
    }

    /// Clears all timers of a call.
    fn quiet(&self, stack: &mut Stack, id: CallId) {
        for timer in CallTimer::ALL {
            stack.deadlines.set(Timer::Call(id, timer), None);
        }
    }

    pub(super) fn timer_due(&mut self, stack: &mut Stack, id: CallId, timer: CallTimer) {
        match timer {
            CallTimer::Ok => self.ok_due(stack, id),
            CallTimer::Reliable => self.reliable_due(stack, id),
            CallTimer::Ringing => self.ringing_due(stack, id),
            CallTimer::Unanswered => self.reject(stack, id, 480, None, &Vec::new()),
            CallTimer::Glare => self.send_reinvite(stack, id),
            CallTimer::Session => self.session_due(stack, id),
        }
    }

    /// Keeps a 2xx for its repetitions.
    fn keep_ok(&mut self, stack: &mut Stack, id: CallId, sent: SentResponse, cseq: u32) {
        let timers = stack.options.timers;
        if let Some(call) = self.calls.get_mut(&id) {
            call.unacked = Some(SentOk {
                sent,
                cseq,
                interval: timers.t1,
                until: stack.now + timers.timeout,
            });
            stack.set_call_timer(id, CallTimer::Ok, stack.now + timers.t1);
        }
    }

    fn ok_due(&mut self, stack: &mut Stack, id: CallId) {
        let timers = stack.options.timers;
        let Some((call, ok)) = self
            .calls
            .get_mut(&id)
            .and_then(|call| Some((&mut call.phase, call.unacked.as_mut()?)))
        else {
            return;
        };
        debug_assert!(matches!(call, Phase::Up));
        if stack.now >= ok.until {
            let (ending, headers) = self
                .no_longer_unacked(stack, id)
                .unwrap_or((NO_ACK, Vec::new()));
            self.leave(stack, id, ending, headers);
            return;
        }
        ok.interval = ok.interval.saturating_mul(2).min(timers.t2);
        let next = (stack.now + ok.interval).min(ok.until);
        stack.repeat(ok.sent.clone());
        stack.set_call_timer(id, CallTimer::Ok, next);
    }

    /// Stops the repetition of the 2xx. Returns the hangup that waited for that.
    fn no_longer_unacked(
        &mut self,
        stack: &mut Stack,
        id: CallId,
    ) -> Option<(Ending, ExtraHeaders)> {
        stack.clear_call_timer(id, CallTimer::Ok);
        let call = self.calls.get_mut(&id)?;
        call.unacked = None;
        call.leaving.take()
    }

    /// Acknowledges the peer's 2xx, with the answer to its offer.
    pub(super) fn answer_offer(&mut self, stack: &mut Stack, id: CallId, body: &Body) {
        if let Some(call) = self.up(id).filter(|call| call.owed.is_some()) {
            call.sdp = Some(body.clone());
            self.acknowledge_owed(stack, id, Some(body));
        }
    }

    fn acknowledge_owed(&mut self, stack: &mut Stack, id: CallId, body: Option<&Body>) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if let Some(Owed { exchange, cseq }) = call.owed.take() {
            self.ack_within(stack, id, exchange, cseq, body);
        }
    }

    /// Sends the ACK to a 2xx in the call's dialog.
    fn ack_within(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        invite: ExchangeId,
        cseq: u32,
        body: Option<&Body>,
    ) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let Some(dialog) = &call.dialog else {
            return;
        };
        let mut ack = dialog.ack(cseq);
        set_request_body(&mut ack, body);
        let (speaker, flow) = (call.speaker.clone(), call.own_flow());
        stack.acknowledge(invite, &speaker, ack, flow, Some(id));
    }

    /// A connection is gone: the requests of its calls take another route.
    pub(super) fn connection_closed(&mut self, connection: ConnectionId) {
        for call in self.calls.values_mut() {
            if call
                .flow
                .is_some_and(|flow| flow.connection == Some(connection))
            {
                call.flow = None;
            }
        }
    }
}

impl Call {
    /// Returns the connection for our requests: that of the peer's call, unless there are proxies.
    fn own_flow(&self) -> Option<Flow> {
        self.flow.filter(|_| {
            self.dialog
                .as_ref()
                .is_none_or(|dialog| !dialog.has_route())
        })
    }
}

/// Returns the header fields that may go into a CANCEL.
fn only_clean(headers: ExtraHeaders) -> ExtraHeaders {
    let mut clean = crate::message::Headers::new();
    add_headers(&mut clean, &headers, &[]);
    clean
        .iter()
        .map(|header| (header.name().to_owned(), header.value().to_owned()))
        .collect()
}
