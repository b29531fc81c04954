//! Requests within a call.

use std::sync::Arc;
use std::time::Instant;

use super::{Call, HUNG_UP, Phase};
use crate::agent::compose::{add_headers, set_request_body};
use crate::agent::exchange::{Answer, Owner, to_tag};
use crate::agent::{Agent, AgentEvent, Body, CallId, ExtraHeaders, RequestId};
use crate::dialog::Dialog;
use crate::message::{Message, Method, Request, StatusCode};
use crate::transaction::{NewRequest, ServerId};

/// REFERs of ours in one call of which we are still to hear.
const MOST_REFERS: u8 = 8;

/// Requests of the owner that wait in one call.
const MOST_WAITING: usize = 64;

/// A request that the owner wants to be sent in a call.
#[derive(Debug)]
pub(in crate::agent) struct Asked {
    pub(in crate::agent) request: RequestId,
    pub(in crate::agent) method: Method,
    pub(in crate::agent) headers: ExtraHeaders,
    pub(in crate::agent) body: Option<Body>,
}

impl Agent {
    /// Takes a request that has our tag of a call.
    pub(in crate::agent) fn on_within(
        &mut self,
        now: Instant,
        new: &NewRequest,
        id: CallId,
        bytes: &[u8],
    ) {
        let request = &new.request;
        let Some(dialog) = self.dialog_for(id, request) else {
            self.refuse_unknown(new);
            return;
        };
        if dialog.order(request).is_err() {
            self.refuse(new, 500, &[]);
            return;
        }
        if let Some(call) = self.calls.get(&id) {
            let speaker = call.speaker.clone();
            self.trace(&speaker, Some(id), false, &new.route, bytes);
        }
        if self.refuses_extensions(new) {
            return;
        }
        let is_ending = self
            .calls
            .get(&id)
            .is_some_and(|call| matches!(call.phase, Phase::Ending(_)));
        match request.method {
            Method::Bye => self.take_bye(now, new, id),
            _ if is_ending => self.refuse(new, 481, &[]),
            Method::Invite => self.take_offer(now, new, id),
            Method::Update if self.options.update => self.take_update(now, new, id),
            Method::Prack => {
                let code = if self.acknowledged_reliable(id, request) {
                    200
                } else {
                    481
                };
                if self.answer_within(now, new, id, code).is_some() {
                    self.go_on(now, id);
                }
            }
            Method::Info | Method::Message => {
                let code = if self.refuses_encoding(new) {
                    return;
                } else {
                    200
                };
                if self.answer_within(now, new, id, code).is_some() {
                    let account = self.calls.get(&id).and_then(|call| call.speaker.account);
                    let (flow, request) = (new.flow, request.clone());
                    self.tell(AgentEvent::Request {
                        account,
                        call: Some(id),
                        flow,
                        request,
                    });
                }
            }
            Method::Refer if self.takes_refers(id) => self.take_refer(now, new, Some(id)),
            Method::Notify => self.take_refer_notify(now, new, id),
            Method::Options => {
                self.answer_within(now, new, id, 200);
            }
            _ => {
                let speaker = self.calls.get(&id).map(|call| call.speaker.clone());
                self.refuse_method(new, speaker.as_ref());
            }
        }
    }

    fn takes_refers(&self, id: CallId) -> bool {
        self.calls
            .get(&id)
            .is_some_and(|call| call.speaker.profile.refers)
    }

    /// The dialog of a call that a request belongs to.
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

    /// Opens a transaction for a request in a call.
    pub(in crate::agent) fn open(&mut self, now: Instant, new: &NewRequest) -> Option<ServerId> {
        match self.transactions.accept(now, new, true) {
            Ok(server) => Some(server),
            Err(_) => {
                self.refuse_full(new);
                None
            }
        }
    }

    /// Answers a request in a call, with no more than the code. Gives its transaction.
    pub(in crate::agent) fn answer_within(
        &mut self,
        now: Instant,
        new: &NewRequest,
        id: CallId,
        code: u16,
    ) -> Option<ServerId> {
        let server = self.open(now, new)?;
        let call = self.calls.get(&id)?;
        let (speaker, tag) = (call.speaker.clone(), call.local_tag.clone());
        let response = match new.request.method {
            // These refresh the remote target, or say what we take.
            Method::Refer | Method::Notify | Method::Options => {
                self.dialog_response(&speaker, &new.request, &new.flow, code, &tag)
            }
            _ => self.response(&speaker, &new.request, code, &tag),
        };
        self.answer(now, Some(id), &speaker, server, &response);
        Some(server)
    }

    fn take_bye(&mut self, now: Instant, new: &NewRequest, id: CallId) {
        if self.answer_within(now, new, id, 200).is_none() {
            return;
        }
        match self.calls.get(&id).map(|call| &call.phase) {
            Some(Phase::Ringing(_)) => self.ended_early(now, id, &new.request),
            Some(Phase::Up) => {
                let message = Arc::new(Message::Request(Request::clone(&new.request)));
                self.end(now, id, HUNG_UP, Some(message));
            }
            // In an early dialog of ours the final answer to the INVITE is to come; and our own BYE has its own answer.
            _ => {}
        }
    }

    fn take_offer(&mut self, now: Instant, new: &NewRequest, id: CallId) {
        if self.refuses_offer(new) {
            return;
        }
        if let Some(code) = self.glare(id, new) {
            self.refuse_for_now(new, code);
            return;
        }
        if let Some(server) = self.open(now, new) {
            self.take_reinvite(now, id, server, new.request.clone());
        }
    }

    fn take_update(&mut self, now: Instant, new: &NewRequest, id: CallId) {
        if self.refuses_offer(new) {
            return;
        }
        let has_offer = !new.request.body.is_empty();
        if has_offer && let Some(code) = self.glare(id, new) {
            self.refuse_for_now(new, code);
            return;
        }
        let Some(server) = self.open(now, new) else {
            return;
        };
        if has_offer {
            self.take_reinvite(now, id, server, new.request.clone());
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
        let mut response = self.dialog_response(&speaker, &new.request, &new.flow, 200, &tag);
        if is_up {
            self.session_of_request(now, id, &new.request, &mut response);
        }
        self.answer(now, Some(id), &speaker, server, &response);
    }

    /// Takes the ACK to a 2xx of ours.
    pub(in crate::agent) fn on_ack(&mut self, now: Instant, new: &NewRequest, bytes: &[u8]) {
        let tag = to_tag(new.request.headers.to().ok().flatten());
        let Some(crate::agent::incoming::Usage::Call(id)) = self.tags.get(&tag).copied() else {
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
        self.trace(&speaker, Some(id), false, &new.route, bytes);
        let leaving = self.no_longer_unacked(id);
        self.tell(AgentEvent::Acknowledged {
            call: id,
            request: new.request.clone(),
        });
        if let Some((ending, headers)) = leaving {
            self.leave(now, id, ending, headers);
        }
    }

    /// Sends a request of the owner in a call, after those that it asked for before: on their way they could overtake each
    /// other, and the peer would refuse the later one.
    pub(in crate::agent) fn send_within(&mut self, now: Instant, id: CallId, asked: Asked) {
        let not_by_owner = [
            Method::Invite,
            Method::Ack,
            Method::Bye,
            Method::Cancel,
            Method::Prack,
            Method::Update,
        ];
        if not_by_owner.contains(&asked.method) {
            self.tell_response(asked.request, 405, StatusCode::METHOD_NOT_ALLOWED.reason());
            return;
        }
        match self.calls.get_mut(&id) {
            Some(call) if call.asking && call.waiting.len() >= MOST_WAITING => {
                self.tell_response(asked.request, 503, "Too many requests");
            }
            Some(call) if call.asking => call.waiting.push_back(asked),
            _ => self.ask(now, id, asked),
        }
    }

    fn ask(&mut self, now: Instant, id: CallId, asked: Asked) {
        let is_refer = asked.method == Method::Refer;
        let ending = self
            .calls
            .get(&id)
            .is_none_or(|call| matches!(call.phase, Phase::Ending(_)));
        let request = if ending {
            None
        } else {
            self.request_within(id, asked.method)
        };
        let Some(mut request) = request else {
            self.tell_response(asked.request, 481, StatusCode::CALL_DOES_NOT_EXIST.reason());
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
        self.send_in(now, id, Owner::Within(id, asked.request), request);
    }

    pub(in crate::agent) fn answered_within(
        &mut self,
        now: Instant,
        id: CallId,
        request: RequestId,
        answer: Answer,
    ) {
        let refused_refer = answer.request.method == Method::Refer && !answer.is_success();
        self.answered_outside(request, answer);
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
            self.ask(now, id, asked);
        }
    }

    /// How it goes with a REFER of ours.
    fn take_refer_notify(&mut self, now: Instant, new: &NewRequest, id: CallId) {
        let is_refer = matches!(new.request.headers.event(), Ok(Some(event)) if event.package.eq_ignore_ascii_case("refer"));
        let Some(Call { referring, .. }) = self
            .calls
            .get(&id)
            .filter(|call| is_refer && call.referring > 0)
        else {
            self.refuse(new, 481, &[]);
            return;
        };
        let last = matches!(new.request.headers.subscription_state(), Ok(Some(state)) if state.state == "terminated");
        let left = if last {
            referring.saturating_sub(1)
        } else {
            *referring
        };
        if self.answer_within(now, new, id, 200).is_none() {
            return;
        }
        if let Some(call) = self.calls.get_mut(&id) {
            call.referring = left;
        }
        self.tell(AgentEvent::ReferNotify {
            call: id,
            request: new.request.clone(),
        });
    }
}
