//! Re-INVITE and UPDATE of both sides (RFC 3261 section 14, RFC 3311).

use std::sync::Arc;
use std::time::Duration;

use super::outgoing::allows_update;
use super::session::too_small;
use super::{Call, Calls, Ending, Owed, Phase};
use crate::agent::accounts::Speaker;
use crate::agent::stack::{
    Answer, ExchangeId, Owner, REFUSED, Stack, add_headers, set_request_body, set_response_body,
};
use crate::agent::timers::CallTimer;
use crate::agent::{AgentEvent, Body, CallId, Cause, ExtraHeaders};
use crate::flow::Flow;
use crate::message::{Method, Request, Response, StatusCode};
use crate::transaction::{NewRequest, ServerId};

/// The maximum number of glares in a row.
const MOST_GLARES: u8 = 20;
/// The longest Retry-After that counts: more than RFC 3261 section 14.2 lets a peer ask for.
const MOST_LATER: Duration = Duration::from_secs(10);

/// A re-INVITE of ours.
#[derive(Debug)]
pub(super) struct Reinvite {
    /// Set until its response.
    exchange: Option<ExchangeId>,
    headers: ExtraHeaders,
    body: Option<Body>,
    glares: u8,
    /// Whether it only refreshes the session. The owner does not see its response.
    refresh: bool,
    /// The re-INVITE of the owner that waits for the end of this refresh.
    next: Option<Box<Reinvite>>,
}

/// A re-INVITE or UPDATE of the peer that waits for its response.
struct PeerOffer {
    server: ServerId,
    request: Arc<Request>,
    flow: Flow,
    speaker: Speaker,
    /// Our tag.
    tag: String,
}

impl Reinvite {
    pub(super) fn new(headers: ExtraHeaders, body: Option<Body>, refresh: bool) -> Self {
        Self {
            exchange: None,
            headers,
            body,
            glares: 0,
            refresh,
            next: None,
        }
    }

    pub(super) fn exchange(&self) -> Option<ExchangeId> {
        self.exchange
    }
}

impl Calls {
    /// Makes another offer.
    pub(in crate::agent) fn reinvite(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        headers: ExtraHeaders,
        body: Option<Body>,
    ) {
        let unanswered = |call: &Call| matches!(call.phase, Phase::Calling(_) | Phase::Ringing(_));
        if self.calls.get(&id).is_some_and(unanswered) {
            return self.report_pending(stack, id);
        }
        let Some(call) = self.up(id).filter(|call| call.leaving.is_none()) else {
            return;
        };
        let new = Reinvite::new(headers, body, false);
        match &mut call.reinvite {
            // A refresh that was not sent gives way; one that was sent comes first.
            Some(refresh) if refresh.refresh && refresh.exchange.is_some() => {
                if refresh.next.is_none() {
                    refresh.next = Some(Box::new(new));
                    return;
                }
            }
            Some(own) if !own.refresh => {}
            _ => {
                call.reinvite = Some(new);
                return self.send_reinvite(stack, id);
            }
        }
        self.report_pending(stack, id);
    }

    /// Reports that there can be no other offer now.
    fn report_pending(&mut self, stack: &mut Stack, call: CallId) {
        let reason = StatusCode::REQUEST_PENDING.reason().to_owned();
        stack.report(AgentEvent::ReinviteRejected {
            call,
            code: 491,
            reason,
            response: None,
        });
    }

    /// Sends the waiting re-INVITE, or postpones it if another INVITE is under way.
    pub(super) fn send_reinvite(&mut self, stack: &mut Stack, id: CallId) {
        let t1 = stack.options.timers.t1;
        let Some(call) = self.up(id) else {
            return;
        };
        let Some(waiting) = call
            .reinvite
            .as_ref()
            .filter(|reinvite| reinvite.exchange.is_none())
        else {
            return;
        };
        let (headers, body) = (waiting.headers.clone(), waiting.body.clone());
        if call.unacked.is_some() || call.theirs.is_some() || call.owed.is_some() {
            stack.set_call_timer(id, CallTimer::Glare, stack.now + t1);
            return;
        }
        let Some(mut request) = self.request_within(stack, id, Method::Invite) else {
            return;
        };
        self.add_session(stack, id, &mut request);
        add_headers(&mut request.headers, &headers, &[]);
        set_request_body(&mut request, body.as_ref());
        let exchange = self.send_in(stack, id, Owner::Reinvite(id), request);
        if let Some(reinvite) = self
            .calls
            .get_mut(&id)
            .and_then(|call| call.reinvite.as_mut())
        {
            reinvite.exchange = exchange;
        }
    }

    /// Takes the 2xx to our re-INVITE.
    pub(super) fn reinvite_accepted(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        exchange: ExchangeId,
        answer: Answer,
    ) {
        let Some(response) = answer.response else {
            return;
        };
        let cseq = response
            .headers
            .cseq()
            .ok()
            .flatten()
            .map_or(0, |cseq| cseq.number);
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if call
            .reinvite
            .as_ref()
            .is_none_or(|reinvite| reinvite.exchange != Some(exchange))
        {
            return;
        }
        let Some(reinvite) = call.reinvite.take() else {
            return;
        };
        if let (Some(dialog), Ok(contact)) = (&mut call.dialog, response.headers.contact()) {
            dialog.retarget(contact);
        }
        call.peer_updates |= allows_update(&response.headers);
        if reinvite.body.is_some() {
            call.sdp = reinvite.body;
            self.ack_within(stack, id, exchange, cseq, None);
        } else {
            call.owed = Some(Owed { exchange, cseq });
        }
        if self.up(id).is_none() {
            // The call was hung up meanwhile.
            self.acknowledge_owed(stack, id, None);
            return;
        }
        self.session_of_answer(stack, id, &answer.request, &response);
        if !reinvite.refresh {
            stack.report(AgentEvent::ReinviteAccepted { call: id, response });
        }
        self.send_next(stack, id, reinvite.next);
    }

    /// Sends the re-INVITE that waited for the end of a refresh.
    fn send_next(&mut self, stack: &mut Stack, id: CallId, next: Option<Box<Reinvite>>) {
        if let (Some(next), Some(call)) = (next, self.up(id)) {
            call.reinvite = Some(*next);
            self.send_reinvite(stack, id);
        }
    }

    /// Takes another final response to our re-INVITE, or a failure.
    pub(in crate::agent) fn reinvite_refused(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        answer: Answer,
    ) {
        let drawn: u64 = stack.random.range(0..=200);
        let Some(call) = self.up(id) else {
            return;
        };
        let outgoing = call.outgoing;
        let Some(mut reinvite) = call.reinvite.take() else {
            return;
        };
        reinvite.exchange = None;
        // RFC 3261 sections 14.1 and 14.2.
        let wait = match answer.code {
            491 if outgoing => Some(Duration::from_millis(2_100 + drawn.min(190) * 10)),
            491 => Some(Duration::from_millis(drawn * 10)),
            500 => answer.later().map(|later| later.min(MOST_LATER)),
            _ => None,
        };
        if let Some(wait) = wait.filter(|_| reinvite.glares < MOST_GLARES) {
            let glares = reinvite.glares.saturating_add(1);
            if let Some(next) = reinvite.next.take() {
                reinvite = *next;
            }
            reinvite.glares = glares;
            call.reinvite = Some(reinvite);
            stack.set_call_timer(id, CallTimer::Glare, stack.now + wait);
            return;
        }
        let least = answer
            .response
            .as_ref()
            .and_then(|response| too_small(&answer.request, response));
        if let (Some(least), Some(session)) = (least, &mut call.session)
            && session.lengthen(least)
        {
            call.reinvite = Some(reinvite);
            self.send_reinvite(stack, id);
            return;
        }
        let (is_refresh, next) = (reinvite.refresh, reinvite.next);
        let Answer {
            code,
            reason,
            response,
            ..
        } = answer;
        if is_refresh {
            self.refresh_later(stack, id);
        } else {
            stack.report(AgentEvent::ReinviteRejected {
                call: id,
                code,
                reason,
                response,
            });
        }
        // The peer has lost the call (RFC 3261 section 12.2.1.2). 904 is a code of this agent.
        if matches!(code, 408 | 481) && code != REFUSED {
            self.leave(
                stack,
                id,
                Ending {
                    cause: Cause::Lost,
                    code,
                    reason: "Call Lost",
                },
                Vec::new(),
            );
        }
        self.send_next(stack, id, next);
    }

    /// Takes a re-INVITE, or an UPDATE with an offer.
    pub(super) fn take_reinvite(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        server: ServerId,
        request: Arc<Request>,
    ) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.theirs = Some(server);
        let speaker = call.speaker.clone();
        if request.method == Method::Invite {
            self.servers.insert(server, id);
            let trying = Response::to(&request, StatusCode::TRYING);
            stack.answer(Some(id), &speaker, server, &trying);
        }
        stack.report(AgentEvent::Reinvite { call: id, request });
    }

    /// Returns the status that refuses a re-INVITE or UPDATE now, if it is refused.
    pub(super) fn glare(&mut self, stack: &mut Stack, id: CallId, new: &NewRequest) -> Option<u16> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Some(481);
        };
        match &call.phase {
            Phase::Ringing(_) | Phase::Ending(_) => return Some(500),
            Phase::Calling(_) => return Some(491),
            Phase::Up => {}
        }
        // An unanswered UPDATE ends with its transaction.
        call.theirs = call
            .theirs
            .filter(|theirs| stack.transactions.is_owed(*theirs));
        if call.theirs.is_some() {
            return Some(500);
        }
        let ours = call
            .reinvite
            .as_ref()
            .is_some_and(|reinvite| reinvite.exchange.is_some())
            || call.owed.is_some();
        if ours {
            return Some(491);
        }
        if call.unacked.is_some() && new.request.method == Method::Invite {
            // The peer has our 2xx, or it would not send another INVITE: its ACK is lost.
            let left = self.no_longer_unacked(stack, id);
            if let (Some(left), Some(call)) = (left, self.calls.get_mut(&id)) {
                call.leaving = Some(left);
                return Some(500);
            }
        }
        None
    }

    /// Accepts the peer's offer.
    pub(in crate::agent) fn accept_reinvite(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        headers: &ExtraHeaders,
        body: Option<Body>,
    ) {
        let Some(PeerOffer {
            server,
            request,
            flow,
            speaker,
            tag,
        }) = self.peer_offer(stack, id)
        else {
            return;
        };
        let mut response = stack.dialog_response(&speaker, &request, &flow, 200, &tag);
        add_headers(&mut response.headers, headers, &[]);
        set_response_body(&mut response, body.as_ref());
        self.session_of_request(stack, id, &request, &mut response);
        if let Some(call) = self.calls.get_mut(&id) {
            call.theirs = None;
            if body.is_some() {
                call.sdp = body;
            }
            if let (Some(dialog), Ok(contact)) = (&mut call.dialog, request.headers.contact()) {
                dialog.retarget(contact);
            }
        }
        self.servers.remove(&server);
        let sent = stack.answer(Some(id), &speaker, server, &response);
        if let (true, Some(sent)) = (request.method == Method::Invite, sent) {
            let cseq = request
                .headers
                .cseq()
                .ok()
                .flatten()
                .map_or(0, |cseq| cseq.number);
            self.keep_ok(stack, id, sent, cseq);
        }
    }

    /// Refuses the peer's offer.
    pub(in crate::agent) fn reject_reinvite(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        code: u16,
        headers: &ExtraHeaders,
    ) {
        let code = if (300..700).contains(&code) {
            code
        } else {
            488
        };
        let Some(PeerOffer {
            server,
            request,
            speaker,
            tag,
            ..
        }) = self.peer_offer(stack, id)
        else {
            return;
        };
        if let Some(call) = self.calls.get_mut(&id) {
            call.theirs = None;
        }
        self.servers.remove(&server);
        let mut response = stack.response(&speaker, &request, code, &tag);
        add_headers(&mut response.headers, headers, &[]);
        stack.answer(Some(id), &speaker, server, &response);
    }

    /// The peer cancels its re-INVITE.
    pub(in crate::agent) fn reinvite_cancelled(&mut self, stack: &mut Stack, id: CallId) {
        self.reject_reinvite(stack, id, 487, &Vec::new());
        stack.report(AgentEvent::ReinviteCancelled { call: id });
    }

    /// Refuses the peer's re-INVITE, because the call ends.
    pub(super) fn drop_theirs(&mut self, stack: &mut Stack, id: CallId) {
        if self
            .calls
            .get(&id)
            .is_some_and(|call| call.theirs.is_some())
        {
            self.reject_reinvite(stack, id, 487, &Vec::new());
        }
    }

    fn peer_offer(&self, stack: &Stack, id: CallId) -> Option<PeerOffer> {
        let call = self.calls.get(&id)?;
        let server = call.theirs?;
        Some(PeerOffer {
            server,
            request: stack.transactions.request_of(server)?.clone(),
            flow: *stack.transactions.flow_of(server)?,
            speaker: call.speaker.clone(),
            tag: call.local_tag.clone(),
        })
    }
}
