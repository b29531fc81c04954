//! Responses to our requests: results, challenges, failures.

use std::sync::Arc;

use super::Stack;
use super::exchanges::{Answer, ExchangeId, Outcome, Owner, REFUSED, Sending, to_tag};
use crate::agent::{AgentEvent, extensions};
use crate::digest::{Client as Digest, DigestError, Kind};
use crate::flow::{Flow, Route};
use crate::message::{Method, Response, StatusCode};
use crate::transaction::{ClientId, Event};

/// The maximum number of changes to a request: one for 421, one for 420, and one for a proxy.
const MOST_ADAPTED: u8 = 3;

impl Stack {
    /// Takes a response to a request of ours.
    pub(in crate::agent) fn on_response(
        &mut self,
        client: ClientId,
        response: Arc<Response>,
        bytes: &[u8],
        flow: &Flow,
    ) -> Option<Outcome> {
        let id = self.exchanges.of_client(client)?;
        let exchange = self.exchanges.get_mut(id)?;
        let (speaker, call) = (exchange.sending.speaker.clone(), exchange.sending.call);
        if speaker.profile.trace {
            self.trace(&speaker, call, false, &Route::Flow(*flow), bytes);
        }
        if response.status.is_provisional() {
            self.provisional(id, response)
        } else if response.status.is_success() {
            self.succeeded(id, response)
        } else {
            self.refused(id, response)
        }
    }

    fn provisional(&mut self, id: ExchangeId, response: Arc<Response>) -> Option<Outcome> {
        let exchange = self.exchanges.get_mut(id)?;
        exchange.fallback = None;
        let first = !std::mem::replace(&mut exchange.proceeding, true);
        if let (true, Some(client), Some(headers)) = (first, exchange.client, &exchange.cancel) {
            self.transactions.cancel(self.now, client, headers);
            return None;
        }
        let Owner::Invite(call) = exchange.sending.owner else {
            return None;
        };
        let is_told = response.status != StatusCode::TRYING && exchange.cancel.is_none();
        is_told.then(|| Outcome::Progress {
            call,
            request: Box::new(exchange.sending.request.clone()),
            response,
        })
    }

    fn succeeded(&mut self, id: ExchangeId, response: Arc<Response>) -> Option<Outcome> {
        let most = self.options.limits.forks;
        let exchange = self.exchanges.get_mut(id)?;
        if exchange.sending.request.method != Method::Invite {
            return self.finish(id, Ending::of(response));
        }
        // An INVITE stays for the responses of other forks, and for repetitions.
        let tag = to_tag(response.headers.to().ok().flatten());
        if let Some(ack) = exchange.acks.iter().find(|ack| ack.tag == tag) {
            let ack = ack.clone();
            self.transactions.send(ack.route, ack.bytes);
            return None;
        }
        if exchange.acks.len() >= most {
            return None;
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
        Some(Outcome::Accepted {
            owner,
            exchange: id,
            answer: Box::new(answer),
        })
    }

    fn refused(&mut self, id: ExchangeId, response: Arc<Response>) -> Option<Outcome> {
        let exchange = self.exchanges.get(id)?;
        let (owner, route) = (exchange.sending.owner, exchange.route.clone());
        let changed = Outcome::Changed {
            owner,
            exchange: id,
            route,
        };
        let is_cancelled = exchange.cancel.is_some();
        if !is_cancelled && Kind::of(response.status).is_some() {
            return match self.authorize(id, &response) {
                Authorization::Added => Some(changed),
                Authorization::Impossible => self.finish(id, Ending::of(response)),
                Authorization::Refused => {
                    let ending = Ending {
                        code: REFUSED,
                        reason: "Operation has no matching challenge".to_owned(),
                        response: Some(response),
                    };
                    self.finish(id, ending)
                }
            };
        }
        if !is_cancelled && self.adapt(id, &response) {
            return Some(changed);
        }
        let exchange = self.exchanges.get(id)?;
        if response.status.code() == 503 && !is_cancelled && !exchange.targets.is_empty() {
            self.attempt(id, None);
            return None;
        }
        self.finish(id, Ending::of(response))
    }

    /// Answers a challenge.
    fn authorize(&mut self, id: ExchangeId, response: &Response) -> Authorization {
        let cnonce = self.random.token(16);
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return Authorization::Impossible;
        };
        let Sending {
            credentials,
            digest,
            request,
            ..
        } = &mut exchange.sending;
        let Some(credentials) = credentials.as_ref().filter(|_| exchange.route.is_some()) else {
            return Authorization::Impossible;
        };
        match digest.challenged(response, credentials) {
            Ok(()) => {}
            Err(DigestError::NoChallenge) => return Authorization::Impossible,
            Err(DigestError::NoMatch | DigestError::Refused) => return Authorization::Refused,
        }
        digest.authorize(request, credentials, &cnonce);
        Authorization::Added
    }

    /// Changes a request as the peer that refuses it wants it (420, 421). Returns whether it is to
    /// be sent again.
    fn adapt(&mut self, id: ExchangeId, response: &Response) -> bool {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return false;
        };
        let may = exchange.adapted < MOST_ADAPTED && exchange.route.is_some();
        if !may || !extensions::adapt(&mut exchange.sending.request, response) {
            return false;
        }
        exchange.adapted = exchange.adapted.saturating_add(1);
        true
    }

    /// Sends a changed request again. `number` is the next one of its dialog, where other requests
    /// may have been sent meanwhile.
    pub(in crate::agent) fn send_again(
        &mut self,
        id: ExchangeId,
        number: Option<u32>,
        route: Option<Route>,
    ) {
        if let Some(exchange) = self.exchanges.get_mut(id) {
            let request = &mut exchange.sending.request;
            let used = request.headers.cseq().ok().flatten();
            let used = used.map_or(0, |cseq| cseq.number);
            let number = number.unwrap_or_else(|| used.wrapping_add(1) & 0x7fff_ffff);
            let cseq = format!("{number} {}", request.method);
            request.headers.set("CSeq", cseq);
        }
        self.attempt(id, route);
    }

    /// Takes an event of a transaction of ours.
    pub(in crate::agent) fn on_event(&mut self, event: &Event) -> Option<Outcome> {
        let (client, code, reason) = match *event {
            Event::TimedOut(client) => (client, 408, "Request Timeout"),
            Event::Unreachable(client) => (client, 503, "Service Unavailable"),
            Event::ClientEnded(client) => {
                let id = self.exchanges.forget_client(client)?;
                self.exchanges.take(id);
                return None;
            }
            Event::ServerEnded(_) => return None,
        };
        let id = self.exchanges.forget_client(client)?;
        let exchange = self.exchanges.get(id)?;
        let is_wanted = exchange.cancel.is_none();
        let has_more = !exchange.targets.is_empty();
        if code == 503 && is_wanted && self.fall_back(id) {
            return None;
        }
        if is_wanted && has_more {
            self.attempt(id, None);
            return None;
        }
        self.failed(id, code, reason)
    }

    /// Ends an exchange that failed before it was sent, if there is one.
    pub(in crate::agent) fn next_unsent(&mut self) -> Option<Option<Outcome>> {
        let (id, reason) = self.exchanges.take_unsent()?;
        Some(self.failed(id, 503, reason))
    }

    pub(super) fn failed(&mut self, id: ExchangeId, code: u16, reason: &str) -> Option<Outcome> {
        let ending = Ending {
            code,
            reason: reason.to_owned(),
            response: None,
        };
        self.finish(id, ending)
    }

    /// Ends an exchange.
    fn finish(&mut self, id: ExchangeId, ending: Ending) -> Option<Outcome> {
        let exchange = self.exchanges.remove(id)?;
        let Sending {
            owner,
            request,
            digest,
            ..
        } = exchange.sending;
        let answer = Answer {
            code: ending.code,
            reason: ending.reason,
            response: ending.response,
            request,
            route: exchange.route,
            addresses: exchange.addresses,
            digest,
        };
        if let (Some(address), None) = (exchange.forbidden, &answer.response) {
            let about = owner.about();
            self.report(AgentEvent::Forbidden { about, address });
        }
        Some(Outcome::Finished {
            owner,
            exchange: id,
            answer: Box::new(answer),
        })
    }
}

/// The result that ends an exchange.
struct Ending {
    code: u16,
    reason: String,
    response: Option<Arc<Response>>,
}

impl Ending {
    fn of(response: Arc<Response>) -> Self {
        Self {
            code: response.status.code(),
            reason: response.reason.clone(),
            response: Some(response),
        }
    }
}

/// The result of a challenge.
enum Authorization {
    /// The request has credentials for it.
    Added,
    /// It refused the credentials.
    Refused,
    /// It cannot be answered.
    Impossible,
}
