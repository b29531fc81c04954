//! Calls of peers (RFC 3261 section 13.3): ringing, taken, refused, cancelled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::outgoing::allows_update;
use super::reliable::{Queued, Unacknowledged};
use super::{CANCELLED, Call, Phase};
use crate::agent::compose::{Speaker, add_headers, set_response_body};
use crate::agent::incoming::Usage;
use crate::agent::{AccountId, Agent, AgentEvent, Body, CallId, CallTimer, Cause, ExtraHeaders};
use crate::dialog::Dialog;
use crate::flow::Flow;
use crate::message::{Message, Request, Response, StatusCode};
use crate::transaction::{NewRequest, ServerId};

/// How often a provisional answer is repeated, so that no proxy gives up (RFC 3261 section 13.3.1.1).
const REPEAT: Duration = Duration::from_secs(60);

/// An incoming call without a final answer.
#[derive(Debug)]
pub(super) struct Ringing {
    pub(super) server: ServerId,
    pub(super) request: Arc<Request>,
    pub(super) flow: Flow,
    /// The provisional answer given last, for its repetition.
    last: Option<u16>,
    /// Whether the peer wants provisional answers to be reliable.
    pub(super) reliable: bool,
    pub(super) rseq: u32,
    /// The reliable provisional answer that was not acknowledged.
    pub(super) unacknowledged: Option<Unacknowledged>,
    /// Those that wait for that.
    pub(super) waiting: VecDeque<Queued>,
    /// The 2xx that waits for that.
    pub(super) accept: Option<(ExtraHeaders, Option<Body>)>,
}

impl Agent {
    /// Takes a new INVITE, which has passed all checks, with the accounts by whose entrance it came.
    pub(in crate::agent) fn ring_in(
        &mut self,
        now: Instant,
        new: &NewRequest,
        (speaker, entrances): (Speaker, Vec<AccountId>),
        bytes: &[u8],
    ) {
        let limits = &self.options.limits;
        if self.calls.len() >= limits.calls || self.ringing >= limits.ringing {
            self.refuse_full(new);
            return;
        }
        let tag = self.tag();
        let Ok(dialog) = Dialog::of_request(&new.request, &tag) else {
            self.refuse(new, 400, &[]);
            return;
        };
        let trusted = self.is_known(new.flow.remote.ip());
        let Ok(server) = self.transactions.accept(now, new, trusted) else {
            self.refuse_full(new);
            return;
        };
        let id = CallId::own(self.number());
        let request = new.request.clone();
        let name = dialog.id().clone();
        let account = speaker.account;
        let ringing = Ringing {
            server,
            request: request.clone(),
            flow: new.flow,
            last: None,
            reliable: request.headers.has_token("Require", "100rel"),
            rseq: self.first_rseq(),
            unacknowledged: None,
            waiting: VecDeque::new(),
            accept: None,
        };
        let call = Call {
            call_id: name.call_id.clone(),
            local_tag: tag.clone(),
            outgoing: false,
            dialog: Some(dialog),
            flow: new.flow.connection.is_some().then_some(new.flow),
            unacked: None,
            owed: None,
            reinvite: None,
            theirs: None,
            session: None,
            sdp: None,
            peer_updates: allows_update(&request.headers),
            referring: 0,
            asking: false,
            waiting: VecDeque::new(),
            leaving: None,
            credentials: None,
            phase: Phase::Ringing(Box::new(ringing)),
            speaker: speaker.clone(),
        };
        self.trace(&speaker, Some(id), false, &new.route, bytes);
        self.tags.insert(tag, Usage::Call(id));
        self.servers.insert(server, id);
        self.calls.insert(id, call);
        self.ringing = self.ringing.saturating_add(1);
        let asked = request
            .headers
            .expires()
            .ok()
            .flatten()
            .filter(|expires| !expires.is_zero());
        let patience = self
            .options
            .limits
            .unanswered
            .min(asked.unwrap_or(Duration::MAX));
        self.set_timer(id, CallTimer::Unanswered, now + patience);
        let trying = Response::to(&request, StatusCode::TRYING);
        self.answer(now, Some(id), &speaker, server, &trying);
        let replaces = self.replaced(&request);
        let flow = new.flow;
        self.tell(AgentEvent::Incoming {
            call: id,
            account,
            entrances,
            flow,
            dialog: name,
            replaces,
            request,
        });
    }

    /// The call of ours that Replaces names (RFC 3891).
    fn replaced(&self, request: &Request) -> Option<CallId> {
        let replaces = request.headers.replaces().ok()??;
        let Some(Usage::Call(id)) = self.tags.get(&replaces.to_tag) else {
            return None;
        };
        let dialog = self.calls.get(id)?.dialog.as_ref()?;
        dialog
            .fits(&replaces.call_id, &replaces.from_tag)
            .then_some(*id)
    }

    /// Answers a request, and tells it where it is to be traced. Gives what was sent.
    pub(in crate::agent) fn answer(
        &mut self,
        now: Instant,
        call: Option<CallId>,
        speaker: &Speaker,
        server: ServerId,
        response: &Response,
    ) -> Option<(crate::flow::Route, Arc<[u8]>)> {
        let (route, bytes) = self.transactions.respond(now, server, response)?;
        self.trace(speaker, call, true, &route, &bytes);
        Some((route, bytes))
    }

    fn ringing(&mut self, id: CallId) -> Option<(&Speaker, &str, &mut Ringing)> {
        match self.calls.get_mut(&id) {
            Some(Call {
                phase: Phase::Ringing(ringing),
                speaker,
                local_tag,
                ..
            }) => Some((speaker, local_tag, ringing)),
            _ => None,
        }
    }

    /// Gives a provisional answer.
    pub(in crate::agent) fn progress(
        &mut self,
        now: Instant,
        id: CallId,
        code: u16,
        headers: &ExtraHeaders,
        body: Option<Body>,
    ) {
        let Some((.., ringing)) = self.ringing(id).filter(|_| (101..200).contains(&code)) else {
            return;
        };
        ringing.last = Some(code);
        if ringing.reliable && ringing.unacknowledged.is_some() {
            ringing.wait(code, headers.clone(), body);
            return;
        }
        self.send_progress(now, id, code, headers, body);
    }

    pub(super) fn send_progress(
        &mut self,
        now: Instant,
        id: CallId,
        code: u16,
        headers: &ExtraHeaders,
        body: Option<Body>,
    ) {
        let Some((speaker, tag, ringing)) = self.ringing(id) else {
            return;
        };
        let (speaker, tag, server) = (speaker.clone(), tag.to_owned(), ringing.server);
        let (request, flow, reliable) = (ringing.request.clone(), ringing.flow, ringing.reliable);
        let rseq = ringing.rseq;
        if reliable {
            ringing.rseq = ringing.rseq.wrapping_add(1);
        }
        let mut response = self.dialog_response(&speaker, &request, &flow, code, &tag);
        if reliable {
            response.headers.push("Require", "100rel");
            response.headers.push("RSeq", rseq);
        }
        add_headers(&mut response.headers, headers, &[]);
        set_response_body(&mut response, body.as_ref());
        let sent = self.answer(now, Some(id), &speaker, server, &response);
        self.set_timer(id, CallTimer::Ringing, now + REPEAT);
        if let (true, Some(sent)) = (reliable, sent) {
            self.keep_reliable(now, id, rseq, sent, body.is_some());
        }
        if let (Some(body), Some(call)) = (body, self.calls.get_mut(&id)) {
            call.sdp = Some(body);
        }
    }

    pub(super) fn ringing_due(&mut self, now: Instant, id: CallId) {
        if let Some((.., ringing)) = self.ringing(id)
            && let Some(code) = ringing.last
        {
            if ringing.reliable && ringing.unacknowledged.is_some() {
                self.set_timer(id, CallTimer::Ringing, now + REPEAT);
            } else {
                self.send_progress(now, id, code, &Vec::new(), None);
            }
        }
    }

    /// Takes the call.
    pub(in crate::agent) fn accept(
        &mut self,
        now: Instant,
        id: CallId,
        headers: ExtraHeaders,
        body: Option<Body>,
    ) {
        let Some((speaker, tag, ringing)) = self.ringing(id) else {
            return;
        };
        // An offer or answer in a provisional answer has to arrive before the 2xx (RFC 3262 section 3).
        if ringing
            .unacknowledged
            .as_ref()
            .is_some_and(|one| one.has_sdp)
        {
            ringing.accept = Some((headers, body));
            return;
        }
        let (speaker, tag, server) = (speaker.clone(), tag.to_owned(), ringing.server);
        let (request, flow) = (ringing.request.clone(), ringing.flow);
        let mut response = self.dialog_response(&speaker, &request, &flow, 200, &tag);
        add_headers(&mut response.headers, &headers, &[]);
        set_response_body(&mut response, body.as_ref());
        self.session_of_request(now, id, &request, &mut response);
        let Some(sent) = self.answer(now, Some(id), &speaker, server, &response) else {
            return;
        };
        let cseq = request
            .headers
            .cseq()
            .ok()
            .flatten()
            .map_or(0, |cseq| cseq.number);
        for timer in [
            CallTimer::Ringing,
            CallTimer::Unanswered,
            CallTimer::Reliable,
        ] {
            self.clear_timer(id, timer);
        }
        self.ringing = self.ringing.saturating_sub(1);
        self.servers.remove(&server);
        if let Some(call) = self.calls.get_mut(&id) {
            call.phase = Phase::Up;
            if let Some(dialog) = &mut call.dialog {
                dialog.confirm();
            }
            if body.is_some() {
                call.sdp = body;
            }
        }
        self.keep_ok(now, id, sent, cseq);
    }

    /// Refuses the call.
    pub(in crate::agent) fn reject(
        &mut self,
        now: Instant,
        id: CallId,
        code: u16,
        reason: Option<String>,
        headers: &ExtraHeaders,
    ) {
        let code = if (300..700).contains(&code) {
            code
        } else {
            480
        };
        let Some(response) = self.final_answer(now, id, code, reason, headers) else {
            return;
        };
        let cause = if code == 480 {
            Cause::Hangup
        } else {
            Cause::Declined
        };
        self.end_as(now, id, cause, code, response.reason, None);
    }

    fn final_answer(
        &mut self,
        now: Instant,
        id: CallId,
        code: u16,
        reason: Option<String>,
        headers: &ExtraHeaders,
    ) -> Option<Response> {
        let (speaker, tag, ringing) = self.ringing(id)?;
        let (speaker, tag, server, request) = (
            speaker.clone(),
            tag.to_owned(),
            ringing.server,
            ringing.request.clone(),
        );
        let mut response = self.response(&speaker, &request, code, &tag);
        if let Some(reason) = reason {
            response.reason = reason;
        }
        let allowed: &[&str] = match code {
            300..=399 => &["Contact"],
            401 => &["WWW-Authenticate"],
            _ => &[],
        };
        add_headers(&mut response.headers, headers, allowed);
        self.answer(now, Some(id), &speaker, server, &response);
        Some(response)
    }

    /// The peer takes its call back.
    pub(in crate::agent) fn cancelled(&mut self, now: Instant, id: CallId, cancel: &Arc<Request>) {
        if self.final_answer(now, id, 487, None, &Vec::new()).is_some() {
            let message = Arc::new(Message::Request(Request::clone(cancel)));
            self.end(now, id, CANCELLED, Some(message));
        }
    }

    /// The peer sent BYE before we answered.
    pub(super) fn ended_early(&mut self, now: Instant, id: CallId, bye: &Arc<Request>) {
        self.cancelled(now, id, bye);
    }
}

impl Agent {
    /// Whether an INVITE of a peer is not answered yet.
    pub(in crate::agent) fn is_ringing(&self, id: CallId) -> bool {
        self.calls
            .get(&id)
            .is_some_and(|call| matches!(call.phase, Phase::Ringing(_)))
    }
}
