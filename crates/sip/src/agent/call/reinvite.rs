//! Other offers in a call: re-INVITE and UPDATE, of both sides (RFC 3261 section 14, RFC 3311).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::Rng;

use super::outgoing::allows_update;
use super::session::too_small;
use super::{Call, Ending, Owed, Phase};
use crate::agent::compose::{add_headers, set_request_body, set_response_body};
use crate::agent::exchange::{Answer, ExchangeId, Owner, REFUSED};
use crate::agent::{Agent, AgentEvent, Body, CallId, CallTimer, Cause, ExtraHeaders};
use crate::message::{Method, Request, Response, StatusCode};
use crate::transaction::{NewRequest, ServerId};

/// Glares in a row, after which a re-INVITE is given up.
const MOST_GLARES: u8 = 20;
/// A re-INVITE waits no longer for Retry-After: more than RFC 3261 section 14.2 lets a peer ask for.
const MOST_LATER: Duration = Duration::from_secs(10);

/// A re-INVITE of ours.
#[derive(Debug)]
pub(super) struct Reinvite {
    /// Set while its answer is awaited.
    exchange: Option<ExchangeId>,
    headers: ExtraHeaders,
    body: Option<Body>,
    glares: u8,
    /// Whether it is to refresh the session only: its answer is told to nobody.
    refresh: bool,
    /// The owner's, which waits for the end of this refresh.
    next: Option<Box<Reinvite>>,
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

impl Agent {
    /// Makes another offer.
    pub(in crate::agent) fn reinvite(
        &mut self,
        now: Instant,
        id: CallId,
        headers: ExtraHeaders,
        body: Option<Body>,
    ) {
        let unanswered = |call: &Call| matches!(call.phase, Phase::Calling(_) | Phase::Ringing(_));
        if self.calls.get(&id).is_some_and(unanswered) {
            return self.tell_pending(id);
        }
        let Some(call) = self.up(id).filter(|call| call.leaving.is_none()) else {
            return;
        };
        let new = Reinvite::new(headers, body, false);
        match &mut call.reinvite {
            // One that refreshes the session gives way, or comes first if it was sent.
            Some(refresh) if refresh.refresh && refresh.exchange.is_some() => {
                if refresh.next.is_none() {
                    refresh.next = Some(Box::new(new));
                    return;
                }
            }
            Some(own) if !own.refresh => {}
            _ => {
                call.reinvite = Some(new);
                return self.send_reinvite(now, id);
            }
        }
        self.tell_pending(id);
    }

    /// There can be no other offer now.
    fn tell_pending(&mut self, call: CallId) {
        let reason = StatusCode::REQUEST_PENDING.reason().to_owned();
        self.tell(AgentEvent::ReinviteRejected {
            call,
            code: 491,
            reason,
            response: None,
        });
    }

    /// Sends the re-INVITE that waits, unless another INVITE is under way: then later.
    pub(super) fn send_reinvite(&mut self, now: Instant, id: CallId) {
        let t1 = self.options.timers.t1;
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
            self.set_timer(id, CallTimer::Glare, now + t1);
            return;
        }
        let Some(mut request) = self.request_within(id, Method::Invite) else {
            return;
        };
        self.add_session(id, &mut request);
        add_headers(&mut request.headers, &headers, &[]);
        set_request_body(&mut request, body.as_ref());
        let exchange = self.send_in(now, id, Owner::Reinvite(id), request);
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
        now: Instant,
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
            self.ack_within(now, id, exchange, cseq, None);
        } else {
            call.owed = Some(Owed { exchange, cseq });
        }
        if self.up(id).is_none() {
            // Hung up meanwhile.
            self.acknowledge_owed(now, id, None);
            return;
        }
        self.session_of_answer(now, id, &answer.request, &response);
        if !reinvite.refresh {
            self.tell(AgentEvent::ReinviteAccepted { call: id, response });
        }
        self.send_next(now, id, reinvite.next);
    }

    /// Sends what has waited for the end of a refresh.
    fn send_next(&mut self, now: Instant, id: CallId, next: Option<Box<Reinvite>>) {
        if let (Some(next), Some(call)) = (next, self.up(id)) {
            call.reinvite = Some(*next);
            self.send_reinvite(now, id);
        }
    }

    /// Takes another final answer to our re-INVITE, or the lack of one.
    pub(in crate::agent) fn reinvite_refused(&mut self, now: Instant, id: CallId, answer: Answer) {
        let drawn: u64 = self.random.random_range(0..=200);
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
            self.set_timer(id, CallTimer::Glare, now + wait);
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
            self.send_reinvite(now, id);
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
            self.refresh_later(now, id);
        } else {
            self.tell(AgentEvent::ReinviteRejected {
                call: id,
                code,
                reason,
                response,
            });
        }
        // The peer does not know the call any more (RFC 3261 section 12.2.1.2). 904 is of our own making.
        if matches!(code, 408 | 481) && code != REFUSED {
            self.leave(
                now,
                id,
                Ending {
                    cause: Cause::Lost,
                    code,
                    reason: "Call Lost",
                },
                Vec::new(),
            );
        }
        self.send_next(now, id, next);
    }

    /// Takes a re-INVITE, or an UPDATE with an offer.
    pub(super) fn take_reinvite(
        &mut self,
        now: Instant,
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
            self.answer(now, Some(id), &speaker, server, &trying);
        }
        self.tell(AgentEvent::Reinvite { call: id, request });
    }

    /// Why a re-INVITE or UPDATE cannot be taken now, if it cannot.
    pub(super) fn glare(&mut self, id: CallId, new: &NewRequest) -> Option<u16> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Some(481);
        };
        match &call.phase {
            Phase::Ringing(_) | Phase::Ending(_) => return Some(500),
            Phase::Calling(_) => return Some(491),
            Phase::Up => {}
        }
        // An UPDATE that nobody answered is gone with its transaction.
        call.theirs = call
            .theirs
            .filter(|theirs| self.transactions.is_owed(*theirs));
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
            // The peer has had our 2xx, or it would not ask again: its ACK is what got lost.
            let left = self.no_longer_unacked(id);
            if let (Some(left), Some(call)) = (left, self.calls.get_mut(&id)) {
                call.leaving = Some(left);
                return Some(500);
            }
        }
        None
    }

    /// Takes the peer's offer.
    pub(in crate::agent) fn accept_reinvite(
        &mut self,
        now: Instant,
        id: CallId,
        headers: &ExtraHeaders,
        body: Option<Body>,
    ) {
        let Some((server, request, tag)) = self.their_request(id) else {
            return;
        };
        let Some((speaker, flow)) = self
            .calls
            .get(&id)
            .map(|call| call.speaker.clone())
            .zip(self.transactions.flow_of(server).copied())
        else {
            return;
        };
        let mut response = self.dialog_response(&speaker, &request, &flow, 200, &tag);
        add_headers(&mut response.headers, headers, &[]);
        set_response_body(&mut response, body.as_ref());
        self.session_of_request(now, id, &request, &mut response);
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
        let sent = self.answer(now, Some(id), &speaker, server, &response);
        if let (true, Some(sent)) = (request.method == Method::Invite, sent) {
            let cseq = request
                .headers
                .cseq()
                .ok()
                .flatten()
                .map_or(0, |cseq| cseq.number);
            self.keep_ok(now, id, sent, cseq);
        }
    }

    /// Refuses the peer's offer.
    pub(in crate::agent) fn reject_reinvite(
        &mut self,
        now: Instant,
        id: CallId,
        code: u16,
        headers: &ExtraHeaders,
    ) {
        let code = if (300..700).contains(&code) {
            code
        } else {
            488
        };
        let Some((server, request, tag)) = self.their_request(id) else {
            return;
        };
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.theirs = None;
        let speaker = call.speaker.clone();
        self.servers.remove(&server);
        let mut response = self.response(&speaker, &request, code, &tag);
        add_headers(&mut response.headers, headers, &[]);
        self.answer(now, Some(id), &speaker, server, &response);
    }

    /// The peer takes its re-INVITE back.
    pub(in crate::agent) fn reinvite_cancelled(&mut self, now: Instant, id: CallId) {
        self.reject_reinvite(now, id, 487, &Vec::new());
        self.tell(AgentEvent::ReinviteCancelled { call: id });
    }

    /// The call ends: the peer's re-INVITE is answered.
    pub(super) fn drop_theirs(&mut self, now: Instant, id: CallId) {
        if self
            .calls
            .get(&id)
            .is_some_and(|call| call.theirs.is_some())
        {
            self.reject_reinvite(now, id, 487, &Vec::new());
        }
    }

    fn their_request(&self, id: CallId) -> Option<(ServerId, Arc<Request>, String)> {
        let Call {
            theirs, local_tag, ..
        } = self.calls.get(&id)?;
        let server = (*theirs)?;
        let request = self.transactions.request_of(server)?.clone();
        Some((server, request, local_tag.clone()))
    }
}
