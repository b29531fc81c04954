//! Calls of peers (RFC 3261 section 13.3).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::outgoing::allows_update;
use super::reliable::{Provisional, Unacknowledged};
use super::{CANCELLED, Call, Calls, Phase};
use crate::agent::accounts::Speaker;
use crate::agent::stack::{Stack, add_headers, set_response_body};
use crate::agent::timers::CallTimer;
use crate::agent::{AccountId, AgentEvent, Body, CallId, Cause, ExtraHeaders};
use crate::dialog::Dialog;
use crate::flow::Flow;
use crate::message::{Message, Request, Response, StatusCode};
use crate::transaction::{NewRequest, ServerId};

/// The interval of repeated provisional responses, which keep proxies from ending the call (RFC
/// 3261 section 13.3.1.1).
const REPEAT: Duration = Duration::from_secs(60);

/// An incoming call without a final response.
#[derive(Debug)]
pub(super) struct Ringing {
    pub(super) server: ServerId,
    pub(super) request: Arc<Request>,
    pub(super) flow: Flow,
    /// The last provisional response, for its repetition.
    last: Option<u16>,
    /// Whether the peer wants reliable provisional responses.
    pub(super) reliable: bool,
    pub(super) rseq: u32,
    /// The reliable provisional response that was not acknowledged.
    pub(super) unacknowledged: Option<Unacknowledged>,
    /// The responses that wait for its PRACK.
    pub(super) waiting: VecDeque<Provisional>,
    /// The 2xx that waits for its PRACK.
    pub(super) accept: Option<(ExtraHeaders, Option<Body>)>,
}

impl Calls {
    /// Takes a new INVITE that passed all checks. The second part of the pair has the accounts by
    /// whose entrance it came.
    pub(in crate::agent) fn ring(
        &mut self,
        stack: &mut Stack,
        new: &NewRequest,
        (speaker, entrances): (Speaker, Vec<AccountId>),
        bytes: &[u8],
    ) {
        let limits = &stack.options.limits;
        if self.calls.len() >= limits.calls || self.ringing >= limits.ringing {
            stack.refuse_full(new);
            return;
        }
        let tag = stack.random.tag();
        let Ok(dialog) = Dialog::of_request(&new.request, &tag) else {
            stack.refuse(new, 400, &[]);
            return;
        };
        let Some(server) = stack.open_new(new) else {
            return;
        };
        let id = CallId::own(stack.random.number());
        let request = new.request.clone();
        let name = dialog.id().clone();
        let account = speaker.account;
        let ringing = Ringing {
            server,
            request: request.clone(),
            flow: new.flow,
            last: None,
            reliable: request.headers.has_token("Require", "100rel"),
            rseq: self.first_rseq(stack),
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
        stack.trace(&speaker, Some(id), false, &new.route, bytes);
        self.tags.insert(tag, id);
        self.servers.insert(server, id);
        self.calls.insert(id, call);
        self.ringing = self.ringing.saturating_add(1);
        let asked = request
            .headers
            .expires()
            .ok()
            .flatten()
            .filter(|expires| !expires.is_zero());
        let patience = stack
            .options
            .limits
            .unanswered
            .min(asked.unwrap_or(Duration::MAX));
        stack.set_call_timer(id, CallTimer::Unanswered, stack.now + patience);
        let trying = Response::to(&request, StatusCode::TRYING);
        stack.answer(Some(id), &speaker, server, &trying);
        let replaces = self.replaced(&request);
        let flow = new.flow;
        stack.report(AgentEvent::Incoming {
            call: id,
            account,
            entrances,
            flow,
            dialog: name,
            replaces,
            request,
        });
    }

    /// Returns the call that Replaces names (RFC 3891).
    fn replaced(&self, request: &Request) -> Option<CallId> {
        let replaces = request.headers.replaces().ok()??;
        let id = self.of_tag(&replaces.to_tag)?;
        let dialog = self.calls.get(&id)?.dialog.as_ref()?;
        dialog
            .fits(&replaces.call_id, &replaces.from_tag)
            .then_some(id)
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

    /// Sends a provisional response.
    pub(in crate::agent) fn progress(
        &mut self,
        stack: &mut Stack,
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
        self.send_progress(stack, id, code, headers, body);
    }

    pub(super) fn send_progress(
        &mut self,
        stack: &mut Stack,
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
        let mut response = stack.dialog_response(&speaker, &request, &flow, code, &tag);
        if reliable {
            response.headers.push("Require", "100rel");
            response.headers.push("RSeq", rseq);
        }
        add_headers(&mut response.headers, headers, &[]);
        set_response_body(&mut response, body.as_ref());
        let sent = stack.answer(Some(id), &speaker, server, &response);
        stack.set_call_timer(id, CallTimer::Ringing, stack.now + REPEAT);
        if let (true, Some(sent)) = (reliable, sent) {
            self.keep_reliable(stack, id, rseq, sent, body.is_some());
        }
        if let (Some(body), Some(call)) = (body, self.calls.get_mut(&id)) {
            call.sdp = Some(body);
        }
    }

    pub(super) fn ringing_due(&mut self, stack: &mut Stack, id: CallId) {
        if let Some((.., ringing)) = self.ringing(id)
            && let Some(code) = ringing.last
        {
            if ringing.reliable && ringing.unacknowledged.is_some() {
                stack.set_call_timer(id, CallTimer::Ringing, stack.now + REPEAT);
            } else {
                self.send_progress(stack, id, code, &Vec::new(), None);
            }
        }
    }

    /// Accepts the call.
    pub(in crate::agent) fn accept(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        headers: ExtraHeaders,
        body: Option<Body>,
    ) {
        let Some((speaker, tag, ringing)) = self.ringing(id) else {
            return;
        };
        // A description in a provisional response has to arrive before the 2xx (RFC 3262 section
        // 3).
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
        let mut response = stack.dialog_response(&speaker, &request, &flow, 200, &tag);
        add_headers(&mut response.headers, &headers, &[]);
        set_response_body(&mut response, body.as_ref());
        self.session_of_request(stack, id, &request, &mut response);
        let Some(sent) = stack.answer(Some(id), &speaker, server, &response) else {
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
            stack.clear_call_timer(id, timer);
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
        self.keep_ok(stack, id, sent, cseq);
    }

    /// Refuses the call.
    pub(in crate::agent) fn reject(
        &mut self,
        stack: &mut Stack,
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
        let Some(response) = self.final_answer(stack, id, code, reason, headers) else {
            return;
        };
        let cause = if code == 480 {
            Cause::Hangup
        } else {
            Cause::Declined
        };
        self.end_as(stack, id, cause, code, response.reason, None);
    }

    fn final_answer(
        &mut self,
        stack: &mut Stack,
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
        let mut response = stack.response(&speaker, &request, code, &tag);
        if let Some(reason) = reason {
            response.reason = reason;
        }
        let allowed: &[&str] = match code {
            300..=399 => &["Contact"],
            401 => &["WWW-Authenticate"],
            _ => &[],
        };
        add_headers(&mut response.headers, headers, allowed);
        stack.answer(Some(id), &speaker, server, &response);
        Some(response)
    }

    /// The peer cancels its call.
    fn cancelled(&mut self, stack: &mut Stack, id: CallId, cancel: &Arc<Request>) {
        if self
            .final_answer(stack, id, 487, None, &Vec::new())
            .is_some()
        {
            let message = Arc::new(Message::Request(Request::clone(cancel)));
            self.end(stack, id, CANCELLED, Some(message));
        }
    }

    /// The peer sent BYE before the final response.
    pub(super) fn ended_early(&mut self, stack: &mut Stack, id: CallId, bye: &Arc<Request>) {
        self.cancelled(stack, id, bye);
    }
}

impl Calls {
    /// Takes a CANCEL for an INVITE or re-INVITE of a peer.
    pub(in crate::agent) fn take_cancel(
        &mut self,
        stack: &mut Stack,
        new: &NewRequest,
        invite: ServerId,
        bytes: &[u8],
    ) {
        let Some(server) = stack.open(new) else {
            return;
        };
        let mut response = Response::to(&new.request, StatusCode::OK);
        let call = self.servers.get(&invite).copied();
        let call = call.and_then(|id| Some((id, self.calls.get(&id)?)));
        let Some((id, call)) = call else {
            // It has its response already.
            return stack.answer_strange(server, &new.request, response);
        };
        stack.trace(&call.speaker, Some(id), false, &new.route, bytes);
        response.headers.set_to_tag(&call.local_tag);
        stack.answer(Some(id), &call.speaker, server, &response);
        if self.is_ringing(id) {
            self.cancelled(stack, id, &new.request);
        } else {
            self.reinvite_cancelled(stack, id);
        }
    }

    /// Whether the INVITE of a peer was not answered.
    fn is_ringing(&self, id: CallId) -> bool {
        self.calls
            .get(&id)
            .is_some_and(|call| matches!(call.phase, Phase::Ringing(_)))
    }
}
