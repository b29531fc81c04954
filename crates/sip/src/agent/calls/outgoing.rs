//! Calls to peers (RFC 3261 section 13.2): forks, redirections, CANCEL.

use std::collections::VecDeque;
use std::sync::Arc;

use super::session::{MOST_LONGER, SESSION_EXPIRES, too_small};
use super::{CANCELLED, Call, Calls, Owed, Phase};
use crate::agent::stack::{
    Answer, ExchangeId, FirstRequest, Owner, Sending, Stack, add_headers, set_request_body, to_tag,
};
use crate::agent::{AccountId, AgentEvent, CallId, Cause, Invite};
use crate::dialog::{Dialog, DialogId};
use crate::message::{
    Contacts, Message, Method, NameAddr, Request, Response, SipUri, StatusCode, Uri,
};

/// An outgoing call without a final response.
#[derive(Debug)]
pub(super) struct Calling {
    pub(super) exchange: ExchangeId,
    pub(super) invite: Invite,
    /// The callee, for To.
    to: NameAddr,
    cseq: u32,
    /// Early dialogs, one for each fork that answered.
    forks: Vec<Fork>,
    /// The number of provisional responses.
    provisional: u32,
    /// Redirection targets to try; the next is last.
    next: Vec<Uri>,
    /// Targets that were tried.
    tried: Vec<Uri>,
    pub(super) cancelled: bool,
    /// The shortest session interval that the peer accepts.
    least_session: Option<std::time::Duration>,
    /// The number of times that this was longer than ours.
    longer_session: u8,
}

#[derive(Debug)]
struct Fork {
    dialog: Dialog,
    /// The number of the latest reliable provisional response.
    rseq: Option<u32>,
    /// The numbers of its latest provisional response, and of its latest with a description; 0 for
    /// none.
    latest: (u32, u32),
}

impl Calling {
    /// Returns the early dialog for our requests: that of the fork that is heard, whose description
    /// came last; without descriptions, that of the fork that responded last.
    pub(super) fn latest_dialog(&mut self) -> Option<&mut Dialog> {
        let forks = self.forks.iter_mut();
        let fork = forks.max_by_key(|fork| (fork.latest.1, fork.latest.0))?;
        Some(&mut fork.dialog)
    }

    pub(super) fn fork(&mut self, remote_tag: &str) -> Option<&mut Dialog> {
        self.forks
            .iter_mut()
            .map(|fork| &mut fork.dialog)
            .find(|dialog| dialog.id().remote_tag == remote_tag)
    }
}

impl Calls {
    /// Calls.
    pub(in crate::agent) fn invite(
        &mut self,
        stack: &mut Stack,
        account: AccountId,
        id: CallId,
        invite: Invite,
    ) {
        if self.calls.contains_key(&id) {
            return;
        }
        let Some(speaker) = stack.speaker(account) else {
            self.never(stack, id, 500, "No such account");
            return;
        };
        if self.calls.len() >= stack.options.limits.calls {
            stack.count_full();
            self.never(stack, id, 503, "Too many calls");
            return;
        }
        let Some(uri) = plain(&invite.uri) else {
            self.never(stack, id, 416, StatusCode::UNSUPPORTED_URI_SCHEME.reason());
            return;
        };
        let call_id = match &invite.call_id {
            Some(call_id) => call_id.clone(),
            None => stack.random.call_id(),
        };
        let local_tag = stack.random.tag();
        self.tags.insert(local_tag.clone(), id);
        let calling = Calling {
            exchange: ExchangeId::NONE,
            to: NameAddr::new(uri.clone()),
            cseq: 0,
            forks: Vec::new(),
            provisional: 0,
            next: Vec::new(),
            tried: Vec::new(),
            cancelled: false,
            least_session: None,
            longer_session: 0,
            invite,
        };
        let call = Call {
            speaker,
            call_id,
            local_tag,
            outgoing: true,
            dialog: None,
            flow: None,
            unacked: None,
            owed: None,
            reinvite: None,
            theirs: None,
            session: None,
            sdp: calling.invite.offer.clone(),
            peer_updates: false,
            referring: 0,
            asking: false,
            waiting: VecDeque::new(),
            leaving: None,
            credentials: calling.invite.credentials.clone(),
            phase: Phase::Calling(Box::new(calling)),
        };
        self.calls.insert(id, call);
        self.send_invite(stack, id, uri);
    }

    fn send_invite(&mut self, stack: &mut Stack, id: CallId, uri: Uri) {
        let offer = stack.options.session.offer;
        let min = stack.options.session.min;
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let Phase::Calling(calling) = &mut call.phase else {
            return;
        };
        calling.cseq = calling.cseq.wrapping_add(1) & 0x7fff_ffff;
        calling.forks.clear();
        calling.tried.push(uri.clone());
        let (to, cseq, least) = (calling.to.clone(), calling.cseq, calling.least_session);
        let (headers, body) = (calling.invite.headers.clone(), calling.invite.offer.clone());
        let (speaker, call_id, tag) = (
            call.speaker.clone(),
            call.call_id.clone(),
            call.local_tag.clone(),
        );
        let credentials = call.credentials.clone();
        let first = FirstRequest {
            method: Method::Invite,
            uri,
            to: &to,
            call_id: &call_id,
            tag: &tag,
            number: cseq,
        };
        let mut request = stack.request(&speaker, first);
        if let Some(interval) = offer.map(|offer| offer.max(min).max(least.unwrap_or_default())) {
            request.headers.push(SESSION_EXPIRES, interval.as_secs());
            request
                .headers
                .push("Min-SE", least.unwrap_or(min).as_secs());
        }
        add_headers(&mut request.headers, &headers, &[]);
        set_request_body(&mut request, body.as_ref());
        let mut sending = Sending::outside(Owner::Invite(id), speaker, request, Some(id));
        if credentials.is_some() {
            sending.credentials = credentials;
        }
        let exchange = stack.send(sending);
        if let Some(Phase::Calling(calling)) = self.calls.get_mut(&id).map(|call| &mut call.phase) {
            calling.exchange = exchange;
        }
    }

    /// Takes a provisional response other than 100.
    pub(in crate::agent) fn progressed(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        request: &Request,
        response: Arc<Response>,
    ) {
        let most = stack.options.limits.forks;
        let Some(Call {
            phase: Phase::Calling(calling),
            call_id,
            local_tag,
            ..
        }) = self.calls.get_mut(&id)
        else {
            return;
        };
        let tag = to_tag(response.headers.to().ok().flatten());
        let name = DialogId {
            call_id: call_id.clone(),
            local_tag: local_tag.clone(),
            remote_tag: tag.clone(),
        };
        let mut prack = None;
        if !tag.is_empty() {
            let known = |fork: &Fork| fork.dialog.id().remote_tag == tag;
            if !calling.forks.iter().any(known) {
                let Ok(dialog) = Dialog::of_response(request, &response) else {
                    return;
                };
                if calling.forks.len() >= most {
                    return;
                }
                calling.forks.push(Fork {
                    dialog,
                    rseq: None,
                    latest: (0, 0),
                });
            }
            calling.provisional = calling.provisional.saturating_add(1);
            if let Some(fork) = calling.forks.iter_mut().find(|fork| known(fork)) {
                fork.latest.0 = calling.provisional;
                if !response.body.is_empty() {
                    fork.latest.1 = calling.provisional;
                }
                fork.dialog.learn(&response);
                if let (true, Ok(Some(rseq))) = (
                    response.headers.has_token("Require", "100rel"),
                    response.headers.rseq(),
                ) {
                    // A repetition, or a response out of order (RFC 3262 section 4).
                    if fork
                        .rseq
                        .is_some_and(|last| last.checked_add(1) != Some(rseq))
                    {
                        return;
                    }
                    fork.rseq = Some(rseq);
                    let mut request = fork.dialog.request(Method::Prack);
                    request.headers.push(
                        "RAck",
                        format_args!("{rseq} {} INVITE", calling.cseq_of(&response)),
                    );
                    prack = Some(request);
                }
            }
        }
        if let Some(request) = prack {
            self.send_in(stack, id, Owner::Nobody, request);
        }
        stack.report(AgentEvent::Provisional {
            call: id,
            dialog: name,
            response,
        });
    }

    /// Takes a 2xx to an INVITE or re-INVITE: the first, or that of another fork.
    pub(in crate::agent) fn invite_accepted(
        &mut self,
        stack: &mut Stack,
        owner: Owner,
        exchange: ExchangeId,
        answer: Answer,
    ) {
        let id = match owner {
            Owner::Invite(id) => id,
            Owner::Reinvite(id) => {
                self.reinvite_accepted(stack, id, exchange, answer);
                return;
            }
            _ => return,
        };
        let Some(response) = answer.response else {
            return;
        };
        let cancelled = match self.calls.get(&id).map(|call| &call.phase) {
            Some(Phase::Calling(calling)) if calling.exchange == exchange => calling.cancelled,
            _ => {
                self.discard(stack, exchange, &answer.request, &response);
                return;
            }
        };
        if cancelled {
            self.discard(stack, exchange, &answer.request, &response);
            self.end(stack, id, CANCELLED, Some(message_of(&response)));
            return;
        }
        let Ok(mut dialog) = Dialog::of_response(&answer.request, &response) else {
            return;
        };
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let Phase::Calling(calling) = std::mem::replace(&mut call.phase, Phase::Up) else {
            return;
        };
        // The numbers of the early dialog continue.
        let mut calling = *calling;
        if let Some(early) = calling.fork(&dialog.id().remote_tag) {
            early.learn(&response);
            dialog = early.clone();
        }
        let name = dialog.id().clone();
        let cseq = calling.cseq_of(&response);
        call.dialog = Some(dialog);
        call.peer_updates = allows_update(&response.headers);
        if calling.invite.offer.is_some() {
            self.ack_within(stack, id, exchange, cseq, None);
        } else {
            call.owed = Some(Owed { exchange, cseq });
        }
        self.session_of_answer(stack, id, &answer.request, &response);
        stack.report(AgentEvent::Accepted {
            call: id,
            dialog: name,
            response,
        });
    }

    /// Acknowledges and hangs up a 2xx that comes too late, or from another fork.
    fn discard(
        &mut self,
        stack: &mut Stack,
        exchange: ExchangeId,
        request: &Request,
        response: &Response,
    ) {
        let Some(speaker) = stack.speaker_of(exchange) else {
            return;
        };
        let Ok(mut dialog) = Dialog::of_response(request, response) else {
            return;
        };
        let cseq = response
            .headers
            .cseq()
            .ok()
            .flatten()
            .map_or(1, |cseq| cseq.number);
        stack.acknowledge(exchange, &speaker, dialog.ack(cseq), None, None);
        let mut bye = dialog.request(Method::Bye);
        stack.sign(&speaker, &mut bye.headers, "User-Agent");
        stack.send(Sending::within(Owner::Nobody, speaker, bye, None));
    }

    /// Takes a final response other than 2xx, or a failure.
    pub(in crate::agent) fn invite_refused(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        answer: Answer,
    ) {
        let most = usize::from(stack.options.limits.redirections);
        let Some(Call {
            phase: Phase::Calling(calling),
            ..
        }) = self.calls.get_mut(&id)
        else {
            return;
        };
        if let Ok(Some(cseq)) = answer.request.headers.cseq() {
            calling.cseq = cseq.number;
        }
        let message = answer.response.as_ref().map(message_of);
        if calling.cancelled {
            self.end(stack, id, CANCELLED, message);
            return;
        }
        if let Some(response) = &answer.response {
            if response.status.is_redirection() {
                calling.follow(response);
            }
            if let Some(least) = too_small(&answer.request, response)
                && calling.longer_session < MOST_LONGER
            {
                calling.longer_session = calling.longer_session.saturating_add(1);
                calling.least_session = Some(least);
                let uri = answer.request.uri.clone();
                self.send_invite(stack, id, uri);
                return;
            }
        }
        // 6xx is final for all targets (RFC 3261 section 21.6).
        if answer.code < 600
            && calling.tried.len() <= most
            && let Some(uri) = calling.next.pop()
        {
            self.send_invite(stack, id, uri);
            return;
        }
        let cause = match (&answer.response, answer.code) {
            (Some(_), _) => Cause::Rejected,
            (None, 408) => Cause::Timeout,
            (None, _) => Cause::Unreachable,
        };
        self.end_as(stack, id, cause, answer.code, answer.reason, message);
    }
}

impl Calling {
    /// Returns the number of the INVITE that a response is for. A challenge leads to several
    /// INVITEs.
    fn cseq_of(&self, response: &Response) -> u32 {
        response
            .headers
            .cseq()
            .ok()
            .flatten()
            .map_or(self.cseq, |cseq| cseq.number)
    }

    /// Takes the contacts of a 3xx, best first (RFC 3261 section 8.1.3.4).
    fn follow(&mut self, response: &Response) {
        let Ok(Contacts::These(contacts)) = response.headers.contacts() else {
            return;
        };
        let quality = |contact: &NameAddr| -> f32 {
            contact
                .params
                .get("q")
                .and_then(|q| q.parse().ok())
                .unwrap_or(1.0)
        };
        let mut found: Vec<(f32, Uri)> = contacts
            .iter()
            .filter_map(|contact| Some((quality(contact), plain(&contact.uri)?)))
            .collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        for (_, uri) in found.into_iter().rev() {
            if !self
                .tried
                .iter()
                .chain(&self.next)
                .any(|known| known.matches(&uri))
            {
                self.next.push(uri);
            }
        }
    }
}

/// Returns a URI to call, without its header fields.
fn plain(uri: &Uri) -> Option<Uri> {
    let uri = uri.as_sip()?.clone();
    Some(
        SipUri {
            headers: None,
            ..uri
        }
        .into(),
    )
}

pub(super) fn message_of(response: &Arc<Response>) -> Arc<Message> {
    Arc::new(Message::Response(Response::clone(response)))
}

/// Whether Allow lists UPDATE.
pub(super) fn allows_update(headers: &crate::message::Headers) -> bool {
    headers
        .allow()
        .is_ok_and(|methods| methods.contains(&Method::Update))
}
