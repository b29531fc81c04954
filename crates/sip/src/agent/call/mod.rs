//! Calls: what both directions have in common.

mod incoming;
mod outgoing;
mod reinvite;
mod reliable;
mod session;
mod within;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::incoming::Ringing;
use self::outgoing::Calling;
use self::reinvite::Reinvite;
use self::session::Session;
pub(super) use self::within::Asked;
use super::compose::{Contact, Speaker, add_headers};
use super::exchange::{Cancelled, ExchangeId, Owner, Sending};
use super::{Agent, AgentEvent, Body, CallId, CallTimer, Cause, ExtraHeaders, Timer};
use crate::dialog::Dialog;
use crate::digest::Credentials;
use crate::flow::{ConnectionId, Flow, Route};
use crate::message::{Message, Method, Request, StatusCode};
use crate::transaction::ServerId;

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) speaker: Speaker,
    pub(super) call_id: String,
    local_tag: String,
    /// Whether the Call-ID is ours.
    outgoing: bool,
    phase: Phase,
    /// The dialog; of an outgoing call from the 2xx on.
    pub(super) dialog: Option<Dialog>,
    /// The connection on which the peer called, for our requests to it.
    flow: Option<Flow>,
    /// Our 2xx that was not acknowledged yet.
    unacked: Option<SentOk>,
    /// The peer's 2xx that we have not acknowledged, for want of an answer to its offer.
    owed: Option<Owed>,
    /// Our re-INVITE.
    reinvite: Option<Reinvite>,
    /// The peer's re-INVITE or UPDATE.
    theirs: Option<ServerId>,
    session: Option<Session>,
    /// The SDP that we sent last.
    sdp: Option<Body>,
    /// Whether the peer takes UPDATE.
    peer_updates: bool,
    /// REFERs of ours of which we are still to hear.
    referring: u8,
    /// A request of the owner is under way in the call; the others wait.
    asking: bool,
    waiting: VecDeque<Asked>,
    /// To be hung up as soon as our 2xx is acknowledged.
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

/// How a call will have ended.
#[derive(Debug, Clone)]
struct Ending {
    cause: Cause,
    code: u16,
    reason: &'static str,
}

/// BYE by command, as Janus words it.
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
    route: Route,
    bytes: Arc<[u8]>,
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

impl Agent {
    /// A call that is at hand, if it is in `Up`.
    fn up(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls
            .get_mut(&id)
            .filter(|call| matches!(call.phase, Phase::Up))
    }

    /// A request in a call: the next of its dialog.
    fn request_within(&mut self, id: CallId, method: Method) -> Option<Request> {
        let call = self.calls.get_mut(&id)?;
        let dialog = match &mut call.phase {
            Phase::Calling(calling) => calling.latest_dialog()?,
            _ => call.dialog.as_mut()?,
        };
        let mut request = dialog.request(method);
        let speaker = call.speaker.clone();
        self.sign(&speaker, &mut request.headers, "User-Agent");
        Some(request)
    }

    /// Sends a request in a call.
    fn send_in(
        &mut self,
        now: Instant,
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
        Some(self.send(now, sending))
    }

    /// Hangs up, whatever the state of the call.
    pub(super) fn hangup(&mut self, now: Instant, id: CallId, headers: ExtraHeaders) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        match &mut call.phase {
            Phase::Calling(calling) => {
                calling.cancelled = true;
                let (exchange, early) = (calling.exchange, calling.invite.cancel_early);
                if self.cancel(now, exchange, only_clean(headers), early) == Cancelled::Unsent {
                    self.end(now, id, CANCELLED, None);
                }
            }
            Phase::Ringing(_) => self.reject(now, id, 480, None, &headers),
            Phase::Up => self.leave(now, id, HANGUP, headers),
            Phase::Ending(_) => {}
        }
    }

    /// Sends BYE, or will as soon as that is allowed (RFC 3261 section 15).
    fn leave(&mut self, now: Instant, id: CallId, ending: Ending, headers: ExtraHeaders) {
        let Some(call) = self.up(id) else {
            return;
        };
        if call.unacked.is_some() {
            call.leaving = Some((ending, headers));
            return;
        }
        if call.owed.is_some() {
            self.acknowledge_owed(now, id, None);
        }
        let Some(mut request) = self.request_within(id, Method::Bye) else {
            self.end(now, id, ending, None);
            return;
        };
        add_headers(&mut request.headers, &headers, &[]);
        self.send_in(now, id, Owner::Bye(id), request);
        self.quiet(id);
        self.drop_theirs(now, id);
        if let Some(call) = self.calls.get_mut(&id) {
            call.phase = Phase::Ending(ending);
        }
    }

    /// Our BYE is answered, or will never be.
    pub(super) fn bye_answered(&mut self, now: Instant, id: CallId) {
        if let Some(Phase::Ending(ending)) = self.calls.get(&id).map(|call| &call.phase) {
            let ending = ending.clone();
            self.end(now, id, ending, None);
        }
    }

    /// Ends a call and tells it.
    fn end(&mut self, now: Instant, id: CallId, ending: Ending, message: Option<Arc<Message>>) {
        let Ending {
            cause,
            code,
            reason,
        } = ending;
        self.end_as(now, id, cause, code, reason.to_owned(), message);
    }

    fn end_as(
        &mut self,
        now: Instant,
        id: CallId,
        cause: Cause,
        code: u16,
        reason: String,
        message: Option<Arc<Message>>,
    ) {
        self.drop_theirs(now, id);
        self.quiet(id);
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        self.tags.remove(&call.local_tag);
        if let Some(exchange) = call.reinvite.as_ref().and_then(Reinvite::exchange) {
            self.give_up(now, exchange);
        }
        if let Phase::Ringing(ringing) = &call.phase {
            self.servers.remove(&ringing.server);
            self.ringing = self.ringing.saturating_sub(1);
        }
        self.call_left_refers(id, &call);
        for asked in &call.waiting {
            self.tell_response(asked.request, 481, StatusCode::CALL_DOES_NOT_EXIST.reason());
        }
        self.tell(AgentEvent::Ended {
            call: id,
            cause,
            code,
            reason,
            message,
        });
    }

    /// A call that never was.
    fn never(&mut self, call: CallId, code: u16, reason: &str) {
        let reason = reason.to_owned();
        self.tell(AgentEvent::Ended {
            call,
            cause: Cause::Refused,
            code,
            reason,
            message: None,
        });
    }

    /// No timer of the call is to go off any more.
    fn quiet(&mut self, id: CallId) {
        for timer in [
            CallTimer::Ok,
            CallTimer::Reliable,
            CallTimer::Ringing,
            CallTimer::Unanswered,
            CallTimer::Glare,
            CallTimer::Session,
        ] {
            self.deadlines.set(Timer::Call(id, timer), None);
        }
    }

    fn set_timer(&mut self, id: CallId, timer: CallTimer, at: Instant) {
        self.deadlines.set(Timer::Call(id, timer), Some(at));
    }

    fn clear_timer(&mut self, id: CallId, timer: CallTimer) {
        self.deadlines.set(Timer::Call(id, timer), None);
    }

    pub(super) fn call_due(&mut self, now: Instant, id: CallId, timer: CallTimer) {
        match timer {
            CallTimer::Ok => self.ok_due(now, id),
            CallTimer::Reliable => self.reliable_due(now, id),
            CallTimer::Ringing => self.ringing_due(now, id),
            CallTimer::Unanswered => self.reject(now, id, 480, None, &Vec::new()),
            CallTimer::Glare => self.send_reinvite(now, id),
            CallTimer::Session => self.session_due(now, id),
        }
    }

    /// Keeps a 2xx for its repetitions.
    fn keep_ok(&mut self, now: Instant, id: CallId, (route, bytes): (Route, Arc<[u8]>), cseq: u32) {
        let timers = self.options.timers;
        if let Some(call) = self.calls.get_mut(&id) {
            call.unacked = Some(SentOk {
                route,
                bytes,
                cseq,
                interval: timers.t1,
                until: now + timers.timeout,
            });
            self.set_timer(id, CallTimer::Ok, now + timers.t1);
        }
    }

    fn ok_due(&mut self, now: Instant, id: CallId) {
        let timers = self.options.timers;
        let Some((call, ok)) = self
            .calls
            .get_mut(&id)
            .and_then(|call| Some((&mut call.phase, call.unacked.as_mut()?)))
        else {
            return;
        };
        debug_assert!(matches!(call, Phase::Up));
        if now >= ok.until {
            let (ending, headers) = self.no_longer_unacked(id).unwrap_or((NO_ACK, Vec::new()));
            self.leave(now, id, ending, headers);
            return;
        }
        ok.interval = ok.interval.saturating_mul(2).min(timers.t2);
        let next = (now + ok.interval).min(ok.until);
        let (route, bytes) = (ok.route.clone(), ok.bytes.clone());
        self.transactions.send(route, bytes);
        self.set_timer(id, CallTimer::Ok, next);
    }

    /// The 2xx is repeated no more. Gives the hangup that waited for that.
    fn no_longer_unacked(&mut self, id: CallId) -> Option<(Ending, ExtraHeaders)> {
        self.clear_timer(id, CallTimer::Ok);
        let call = self.calls.get_mut(&id)?;
        call.unacked = None;
        call.leaving.take()
    }

    /// Acknowledges the peer's 2xx, with the answer to its offer.
    pub(super) fn answer_offer(&mut self, now: Instant, id: CallId, body: &Body) {
        if let Some(call) = self.up(id).filter(|call| call.owed.is_some()) {
            call.sdp = Some(body.clone());
            self.acknowledge_owed(now, id, Some(body));
        }
    }

    fn acknowledge_owed(&mut self, now: Instant, id: CallId, body: Option<&Body>) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if let Some(Owed { exchange, cseq }) = call.owed.take() {
            self.ack_within(now, id, exchange, cseq, body);
        }
    }

    /// Sends the ACK to a 2xx in the call's dialog.
    fn ack_within(
        &mut self,
        now: Instant,
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
        super::compose::set_request_body(&mut ack, body);
        let (speaker, flow) = (call.speaker.clone(), call.own_flow());
        self.acknowledge(now, invite, &speaker, ack, flow, Some(id));
    }

    /// A connection is gone: requests of its calls look for another way.
    pub(super) fn dialogs_closed(&mut self, connection: ConnectionId) {
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
    /// The connection that requests of ours take: the one on which the peer called, unless proxies are on the way.
    fn own_flow(&self) -> Option<Flow> {
        self.flow.filter(|_| {
            self.dialog
                .as_ref()
                .is_none_or(|dialog| !dialog.has_route())
        })
    }

    pub(super) fn local_tag(&self) -> &str {
        &self.local_tag
    }
}

/// Header fields that may go into a CANCEL as they are.
fn only_clean(headers: ExtraHeaders) -> ExtraHeaders {
    let mut clean = crate::message::Headers::new();
    add_headers(&mut clean, &headers, &[]);
    clean
        .iter()
        .map(|header| (header.name().to_owned(), header.value().to_owned()))
        .collect()
}
