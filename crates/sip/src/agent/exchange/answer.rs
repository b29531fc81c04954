//! What becomes of a request: answers, challenges, failures.

use std::sync::Arc;
use std::time::Instant;

use super::{Answer, Digest, ExchangeId, Owner, REFUSED, Sending, to_tag};
use crate::agent::{Agent, AgentEvent};
use crate::digest::{DigestError, Kind};
use crate::flow::{Flow, Route};
use crate::message::{Method, Response, StatusCode};
use crate::transaction::{ClientId, Event};

impl Agent {
    /// Takes an answer to a request of ours.
    pub(in crate::agent) fn on_response(
        &mut self,
        now: Instant,
        client: ClientId,
        response: Arc<Response>,
        bytes: &[u8],
        flow: &Flow,
    ) {
        let Some(&id) = self.clients.get(&client) else {
            return;
        };
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        let (speaker, call) = (exchange.sending.speaker.clone(), exchange.sending.call);
        if speaker.profile.trace {
            self.trace(&speaker, call, false, &Route::Flow(*flow), bytes);
        }
        if response.status.is_provisional() {
            self.provisional(now, id, response);
        } else if response.status.is_success() {
            self.succeeded(now, id, response);
        } else {
            self.refused(now, id, response);
        }
    }

    fn provisional(&mut self, now: Instant, id: ExchangeId, response: Arc<Response>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        exchange.fallback = None;
        let first = !std::mem::replace(&mut exchange.proceeding, true);
        if let (true, Some(client), Some(headers)) = (first, exchange.client, &exchange.cancel) {
            self.transactions.cancel(now, client, headers);
            return;
        }
        if let Owner::Invite(call) = exchange.sending.owner
            && response.status != StatusCode::TRYING
            && exchange.cancel.is_none()
        {
            let request = exchange.sending.request.clone();
            self.call_progress(now, call, &request, response);
        }
    }

    fn succeeded(&mut self, now: Instant, id: ExchangeId, response: Arc<Response>) {
        let most = self.options.limits.forks;
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        if exchange.sending.request.method != Method::Invite {
            self.finish(
                now,
                id,
                response.status.code(),
                response.reason.clone(),
                Some(response),
            );
            return;
        }
        // An INVITE stays for the answers of other forks, and for repetitions.
        exchange.accepted = true;
        let tag = to_tag(response.headers.to().ok().flatten());
        if let Some((_, route, bytes)) = exchange.acks.iter().find(|(other, ..)| *other == tag) {
            let (route, bytes) = (route.clone(), bytes.clone());
            self.transactions.send(route, bytes);
            return;
        }
        if exchange.acks.len() >= most {
            return;
        }
        let owner = exchange.sending.owner;
        let answer = Answer {
            code: response.status.code(),
            reason: response.reason.clone(),
            response: Some(response),
            request: exchange.sending.request.clone(),
            route: exchange.route.clone(),
            addresses: Vec::new(),
            digest: Digest::new(),
        };
        self.invite_accepted(now, owner, id, answer);
    }

    fn refused(&mut self, now: Instant, id: ExchangeId, response: Arc<Response>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        let code = response.status.code();
        let cancelled = exchange.cancel.is_some();
        if !cancelled && Kind::of(response.status).is_some() {
            match self.authorize(id, &response) {
                Authorized::Again(route) => self.attempt(now, id, Some(route)),
                Authorized::Refused => {
                    let reason = "Operation has no matching challenge".to_owned();
                    self.finish(now, id, REFUSED, reason, Some(response));
                }
                Authorized::NoAnswer => {
                    self.finish(now, id, code, response.reason.clone(), Some(response))
                }
            }
            return;
        }
        if code == 503 && !cancelled && !exchange.targets.is_empty() {
            self.attempt(now, id, None);
            return;
        }
        self.finish(now, id, code, response.reason.clone(), Some(response));
    }

    /// Answers a challenge.
    fn authorize(&mut self, id: ExchangeId, response: &Response) -> Authorized {
        let cnonce = self.token(16);
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return Authorized::NoAnswer;
        };
        let Sending {
            credentials,
            digest,
            request,
            owner,
            ..
        } = &mut exchange.sending;
        let (Some(credentials), Some(route)) = (credentials, exchange.route.clone()) else {
            return Authorized::NoAnswer;
        };
        match digest.challenged(response, credentials) {
            Ok(()) => {}
            Err(DigestError::NoChallenge) => return Authorized::NoAnswer,
            Err(DigestError::NoMatch | DigestError::Refused) => return Authorized::Refused,
        }
        digest.authorize(request, credentials, &cnonce);
        let owner = *owner;
        let method = request.method.clone();
        let used = request
            .headers
            .cseq()
            .ok()
            .flatten()
            .map_or(0, |cseq| cseq.number);
        // Within a dialog others may have been sent meanwhile.
        let number = self
            .next_cseq(owner)
            .unwrap_or_else(|| used.wrapping_add(1) & 0x7fff_ffff);
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange
                .sending
                .request
                .headers
                .set("CSeq", format_args!("{number} {method}"));
        }
        Authorized::Again(route)
    }

    /// Takes what time, or the lack of a way, brought for a transaction of ours.
    pub(in crate::agent) fn on_event(&mut self, now: Instant, event: &Event) {
        let (client, code, reason) = match *event {
            Event::TimedOut(client) => (client, 408, "Request Timeout"),
            Event::Unreachable(client) => (client, 503, "Service Unavailable"),
            Event::ClientEnded(client) => {
                if let Some(id) = self.clients.remove(&client)
                    && self
                        .exchanges
                        .get(&id)
                        .is_some_and(|exchange| exchange.client == Some(client))
                {
                    self.exchanges.remove(&id);
                }
                return;
            }
            Event::ServerEnded(server) => {
                self.servers.remove(&server);
                return;
            }
        };
        let Some(id) = self.clients.remove(&client) else {
            return;
        };
        let Some(exchange) = self
            .exchanges
            .get(&id)
            .filter(|exchange| exchange.client == Some(client))
        else {
            return;
        };
        let is_wanted = exchange.cancel.is_none();
        let has_more = !exchange.targets.is_empty();
        if code == 503 && is_wanted && self.fall_back(now, id) {
            return;
        }
        if is_wanted && has_more {
            self.attempt(now, id, None);
        } else {
            self.failed(now, id, code, reason);
        }
    }

    pub(in crate::agent) fn failed(
        &mut self,
        now: Instant,
        id: ExchangeId,
        code: u16,
        reason: &str,
    ) {
        self.finish(now, id, code, reason.to_owned(), None);
    }

    /// Ends an exchange, and tells its owner.
    fn finish(
        &mut self,
        now: Instant,
        id: ExchangeId,
        code: u16,
        reason: String,
        response: Option<Arc<Response>>,
    ) {
        let Some(exchange) = self.exchanges.remove(&id) else {
            return;
        };
        if let Some(client) = exchange.client {
            self.clients.remove(&client);
        }
        let Sending {
            owner,
            request,
            digest,
            ..
        } = exchange.sending;
        let answer = Answer {
            code,
            reason,
            response,
            request,
            route: exchange.route,
            addresses: exchange.addresses,
            digest,
        };
        if let (Some(address), None) = (exchange.forbidden, &answer.response) {
            let about = owner.about();
            self.tell(AgentEvent::Forbidden { about, address });
        }
        match owner {
            Owner::Register(account) => self.registered(now, account, id, answer),
            Owner::KeepAlive(account) => self.kept_alive(now, account, &answer),
            Owner::Invite(call) => self.invite_refused(now, call, answer),
            Owner::Reinvite(call) => self.reinvite_refused(now, call, answer),
            Owner::Refresh(call) => self.refreshed(now, call, &answer),
            Owner::Bye(call) => self.bye_answered(now, call),
            Owner::Within(call, request) => self.answered_within(now, call, request, answer),
            Owner::Outside(request) => self.answered_outside(request, answer),
            Owner::Subscribe(subscription) => self.subscribed(now, subscription, answer),
            Owner::Publish(publication) => self.published(now, publication, answer),
            Owner::NotifyRefer(refer) => self.notified_refer(now, refer, &answer),
            Owner::Ack(_) | Owner::Nobody => {}
        }
    }

    /// The number for a request that is sent again within a dialog.
    fn next_cseq(&mut self, owner: Owner) -> Option<u32> {
        match owner {
            Owner::Reinvite(call)
            | Owner::Refresh(call)
            | Owner::Bye(call)
            | Owner::Within(call, _) => self
                .calls
                .get_mut(&call)?
                .dialog
                .as_mut()
                .map(|dialog| dialog.next_cseq()),
            Owner::Subscribe(subscription) => self
                .subscriptions
                .get_mut(&subscription)?
                .dialog
                .as_mut()
                .map(|dialog| dialog.next_cseq()),
            Owner::NotifyRefer(refer) => self.refer_dialog(refer).map(|dialog| dialog.next_cseq()),
            _ => None,
        }
    }
}

enum Authorized {
    Again(Route),
    Refused,
    NoAnswer,
}
