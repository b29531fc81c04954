//! Requests within a call.

use std::sync::Arc;

use super::{Call, Calls, HUNG_UP, Phase};
use crate::agent::stack::{Answer, Owner, Stack, add_headers, set_request_body, to_tag};
use crate::agent::{AgentEvent, Body, CallId, ExtraHeaders, RequestId};
use crate::dialog::Dialog;
use crate::message::{Message, Method, Request, StatusCode};
use crate::transaction::{NewRequest, ServerId};

/// The maximum number of our REFERs in one call that wait for notifications.
const MOST_REFERS: u8 = 8;

/// The maximum number of waiting requests of the owner in one call.
const MOST_WAITING: usize = 64;

/// A request of the owner in a call.
#[derive(Debug)]
pub(in crate::agent) struct OwnerRequest {
    pub(in crate::agent) request: RequestId,
    pub(in crate::agent) method: Method,
    pub(in crate::agent) headers: ExtraHeaders,
    pub(in crate::agent) body: Option<Body>,
}

impl Calls {
    /// Takes a request that has our tag of a call. Returns the call if the request is a REFER that
    /// is to be followed.
    pub(in crate::agent) fn take_request(
        &mut self,
        stack: &mut Stack,
        new: &NewRequest,
        id: CallId,
        bytes: &[u8],
    ) -> Option<CallId> {
        let request = &new.request;
        let Some(dialog) = self.dialog_for(id, request) else {
            stack.refuse_unknown(new);
            return None;
        };
        if dialog.order(request).is_err() {
            stack.refuse(new, 500, &[]);
            return None;
        }
        if let Some(call) = self.calls.get(&id) {
            let speaker = call.speaker.clone();
            stack.trace(&speaker, Some(id), false, &new.route, bytes);
        }
        if stack.refuses_extensions(new) {
            return None;
        }
        let is_ending = self
            .calls
            .get(&id)
            .is_some_and(|call| matches!(call.phase, Phase::Ending(_)));
        match request.method {
            Method::Bye => self.take_bye(stack, new, id),
            _ if is_ending => stack.refuse(new, 481, &[]),
            Method::Invite => self.take_offer(stack, new, id),
            Method::Update if stack.options.update => self.take_update(stack, new, id),
            Method::Prack => {
                let code = if self.acknowledged_reliable(stack, id, request) {
                    200
                } else {
                    481
                };
                if self.answer_within(stack, new, id, code).is_some() {
                    self.go_on(stack, id);
                }
            }
            Method::Info | Method::Message => {
                if !stack.refuses_encoding(new) && self.answer_within(stack, new, id, 200).is_some()
                {
                    let account = self.calls.get(&id).and_then(|call| call.speaker.account);
                    let (flow, request) = (new.flow, request.clone());
                    stack.report(AgentEvent::Request {
                        account,
                        call: Some(id),
                        flow,
                        request,
                    });
                }
            }
            Method::Refer if self.takes_refers(id) => return Some(id),
            Method::Notify => self.take_refer_notify(stack, new, id),
            Method::Options => {
                self.answer_within(stack, new, id, 200);
            }
            _ => {
                let speaker = self.calls.get(&id).map(|call| call.speaker.clone());
                stack.refuse_method(new, speaker.as_ref());
            }
        }
        None
    }

    fn takes_refers(&self, id: CallId) -> bool {
        self.calls
            .get(&id)
            .is_some_and(|call| call.speaker.profile.refers)
    }

    /// Returns the dialog of a call that a request belongs to.
    fn dialog_for(&mut self, id: CallId, request: &Request) -> Option<&mut Dialog> {
        let call = self.calls.get_mut(&id)?;
        let tag = to_tag(request.headers.from().ok().flatten());
        let dialog = match &mut call.phase {
            Phase::Calling(calling) => calling.fork(&tag)?,
            _ => call.dialog.as_mut()?,
        };
        dialog
            .fits(request.headers.call_id()?, &tag)
            .then_some(dialog)
    }

    /// Sends a response without a body to a request in a call. Returns the transaction.
    pub(in crate::agent) fn answer_within(
        &mut self,
        stack: &mut Stack,
        new: &NewRequest,
        id: CallId,
        code: u16,
    ) -> Option<ServerId> {
        let server = stack.open(new)?;
        let call = self.calls.get(&id)?;
        let (speaker, tag) = (call.speaker.clone(), call.local_tag.clone());
        let response = match new.request.method {
            // They refresh the remote target, or list our methods.
            Method::Refer | Method::Notify | Method::Options => {
                stack.dialog_response(&speaker, &new.request, &new.flow, code, &tag)
            }
            _ => stack.response(&speaker, &new.request, code, &tag),
        };
        stack.answer(Some(id), &speaker, server, &response);
        Some(server)
    }

    fn take_bye(&mut self, stack: &mut Stack, new: &NewRequest, id: CallId) {
        if self.answer_within(stack, new, id, 200).is_none() {
            return;
        }
        match self.calls.get(&id).map(|call| &call.phase) {
            Some(Phase::Ringing(_)) => self.ended_early(stack, id, &new.request),
            Some(Phase::Up) => {
                let message = Arc::new(Message::Request(Request::clone(&new.request)));
                self.end(stack, id, HUNG_UP, Some(message));
            }
            // Our INVITE still gets its final response, and so does our BYE.
            _ => {}
        }
    }

    fn take_offer(&mut self, stack: &mut Stack, new: &NewRequest, id: CallId) {
        if stack.refuses_offer(new) {
            return;
        }
        if let Some(code) = self.glare(stack, id, new) {
            stack.refuse_for_now(new, code);
            return;
        }
        if let Some(server) = stack.open(new) {
            self.take_reinvite(stack, id, server, new.request.clone());
        }
    }

    fn take_update(&mut self, stack: &mut Stack, new: &NewRequest, id: CallId) {
        if stack.refuses_offer(new) {
            return;
        }
        let has_offer = !new.request.body.is_empty();
        if has_offer && let Some(code) = self.glare(stack, id, new) {
            stack.refuse_for_now(new, code);
            return;
        }
        let Some(server) = stack.open(new) else {
            return;
        };
        if has_offer {
            self.take_reinvite(stack, id, server, new.request.clone());
            return;
        }
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if let (Some(dialog), Ok(contact)) = (&mut call.dialog, new.request.headers.contact()) {
            dialog.retarget(contact);
        }
        let (speaker, tag, is_up) = (
            call.speaker.clone(),
            call.local_tag.clone(),
            matches!(call.phase, Phase::Up),
        );
        let mut response = stack.dialog_response(&speaker, &new.request, &new.flow, 200, &tag);
        if is_up {
            self.session_of_request(stack, id, &new.request, &mut response);
        }
        stack.answer(Some(id), &speaker, server, &response);
    }

    /// Takes the ACK to a 2xx of ours.
    pub(in crate::agent) fn take_ack(&mut self, stack: &mut Stack, new: &NewRequest, bytes: &[u8]) {
        let tag = to_tag(new.request.headers.to().ok().flatten());
        let Some(id) = self.of_tag(&tag) else {
            return;
        };
        if self.dialog_for(id, &new.request).is_none() {
            return;
        }
        let Ok(Some(cseq)) = new.request.headers.cseq() else {
            return;
        };
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        if call
            .unacked
            .as_ref()
            .is_none_or(|ok| ok.cseq != cseq.number)
        {
            return;
        }
        let speaker = call.speaker.clone();
        stack.trace(&speaker, Some(id), false, &new.route, bytes);
        let leaving = self.no_longer_unacked(stack, id);
        stack.report(AgentEvent::Acknowledged {
            call: id,
            request: new.request.clone(),
        });
        if let Some((ending, headers)) = leaving {
            self.leave(stack, id, ending, headers);
        }
    }

    /// Sends a request of the owner in a call. It waits for the response to the one before, because
    /// the peer would refuse requests that arrive out of order.
    pub(in crate::agent) fn send_request(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        asked: OwnerRequest,
    ) {
        let not_by_owner = [
            Method::Invite,
            Method::Ack,
            Method::Bye,
            Method::Cancel,
            Method::Prack,
            Method::Update,
        ];
        if not_by_owner.contains(&asked.method) {
            stack.report_unsent(asked.request, 405, StatusCode::METHOD_NOT_ALLOWED.reason());
            return;
        }
        match self.calls.get_mut(&id) {
            Some(call) if call.asking && call.waiting.len() >= MOST_WAITING => {
                stack.report_unsent(asked.request, 503, "Too many requests");
            }
            Some(call) if call.asking => call.waiting.push_back(asked),
            _ => self.ask(stack, id, asked),
        }
    }

    fn ask(&mut self, stack: &mut Stack, id: CallId, asked: OwnerRequest) {
        let is_refer = asked.method == Method::Refer;
        let ending = self
            .calls
            .get(&id)
            .is_none_or(|call| matches!(call.phase, Phase::Ending(_)));
        let request = if ending {
            None
        } else {
            self.request_within(stack, id, asked.method)
        };
        let Some(mut request) = request else {
            stack.report_unsent(asked.request, 481, StatusCode::CALL_DOES_NOT_EXIST.reason());
            return;
        };
        add_headers(&mut request.headers, &asked.headers, &[]);
        set_request_body(&mut request, asked.body.as_ref());
        if let Some(call) = self.calls.get_mut(&id) {
            call.asking = true;
            if is_refer {
                call.referring = call.referring.saturating_add(1).min(MOST_REFERS);
            }
        }
        self.send_in(stack, id, Owner::InDialog(id, asked.request), request);
    }

    pub(in crate::agent) fn answered(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        request: RequestId,
        answer: Answer,
    ) {
        let refused_refer = answer.request.method == Method::Refer && !answer.is_success();
        stack.report_answer(request, answer);
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if refused_refer {
            call.referring = call.referring.saturating_sub(1);
        }
        call.asking = false;
        while let Some(asked) = self
            .calls
            .get_mut(&id)
            .filter(|call| !call.asking)
            .and_then(|call| call.waiting.pop_front())
        {
            self.ask(stack, id, asked);
        }
    }

    /// Takes a NOTIFY for a REFER of ours.
    fn take_refer_notify(&mut self, stack: &mut Stack, new: &NewRequest, id: CallId) {
        let is_refer = matches!(new.request.headers.event(), Ok(Some(event)) if event.package.eq_ignore_ascii_case("refer"));
        let Some(Call { referring, .. }) = self
            .calls
            .get(&id)
            .filter(|call| is_refer && call.referring > 0)
        else {
            stack.refuse(new, 481, &[]);
            return;
        };
        let last = matches!(new.request.headers.subscription_state(), Ok(Some(state)) if state.state == "terminated");
        let left = if last {
            referring.saturating_sub(1)
        } else {
            *referring
        };
        if self.answer_within(stack, new, id, 200).is_none() {
            return;
        }
        if let Some(call) = self.calls.get_mut(&id) {
            call.referring = left;
        }
        stack.report(AgentEvent::ReferNotify {
            call: id,
            request: new.request.clone(),
        });
    }
}
