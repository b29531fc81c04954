//! Answers of registrars.

use std::time::Duration;

use super::{Binding, Registrations, State, keepalive_of, registrar};
use crate::agent::accounts::Registered;
use crate::agent::stack::{Answer, ExchangeId, Stack};
use crate::agent::timers::Timer;
use crate::agent::{AccountId, AgentEvent};
use crate::flow::{Route, Transport};
use crate::message::{Contacts, NameAddr, Response, SipUri, Uri};

/// The waits before a failed registration is tried again: the first doubles with each failure.
#[derive(Clone, Copy)]
struct Retry {
    first: Duration,
    longest: Duration,
}

/// After no response, or 5xx (RFC 5626 section 4.5).
const TRANSIENT: Retry = Retry {
    first: Duration::from_secs(30),
    longest: Duration::from_secs(1800),
};
/// After a refusal: a registrar may lock out those who send a wrong password often.
const REFUSED: Retry = Retry {
    first: Duration::from_secs(300),
    longest: Duration::from_secs(3600),
};
/// A shorter registration is of no use: it is refreshed as seldom as a failed one is tried again.
const SHORTEST: Duration = Duration::from_secs(5);
/// The number of contacts of a 3xx that count.
const MOST_CONTACTS: usize = 8;
/// The number of corrections by a registrar in a row.
const MOST_CORRECTIONS: u8 = 3;

impl Registrations {
    /// Takes the answer of the registrar.
    pub(in crate::agent) fn registered(
        &mut self,
        stack: &mut Stack,
        id: AccountId,
        exchange: ExchangeId,
        answer: Answer,
    ) {
        let Some(binding) = self.bindings.get_mut(&id) else {
            return;
        };
        if binding.exchange.is_some_and(|current| current != exchange) {
            return;
        }
        binding.exchange = None;
        if let Ok(Some(cseq)) = answer.request.headers.cseq() {
            binding.cseq = cseq.number;
        }
        binding.digest = answer.digest.clone();
        let asked = answer
            .request
            .headers
            .expires()
            .ok()
            .flatten()
            .unwrap_or_default();
        if binding.state == State::Leaving {
            let is_over = match &answer.response {
                Some(response) => {
                    !response.status.is_success() && !response.status.is_redirection()
                }
                None => true,
            };
            if asked.is_zero() || is_over {
                self.drop_account(stack, id);
                stack.report(AgentEvent::Unregistered {
                    account: id,
                    response: answer.response,
                });
            } else {
                self.register(stack, id);
            }
            return;
        }
        match &answer.response {
            Some(response) if answer.is_success() => {
                self.take_registration(stack, id, asked, &answer, response)
            }
            Some(response) if answer.code == 423 => {
                let least = response
                    .headers
                    .min_expires()
                    .ok()
                    .flatten()
                    .unwrap_or_default();
                if least > asked && binding.corrections < MOST_CORRECTIONS {
                    binding.corrections = binding.corrections.saturating_add(1);
                    binding.expires = least;
                    self.register(stack, id);
                } else {
                    self.registration_failed(stack, id, answer);
                }
            }
            Some(response) if response.status.is_redirection() => {
                let first = stack.speaker(id).as_ref().map(registrar);
                if let Some(first) = first {
                    binding.follow(&first, response);
                }
                self.try_next(stack, id, answer);
            }
            _ => self.try_next(stack, id, answer),
        }
    }

    /// Tries the next registrar of a redirection, or reports the failure.
    fn try_next(&mut self, stack: &mut Stack, id: AccountId, answer: Answer) {
        let most = usize::from(stack.options.limits.redirections);
        let binding = self.bindings.get_mut(&id);
        let next = binding
            .filter(|binding| binding.tried.len() < most)
            .and_then(|binding| {
                let uri = binding.next.pop()?;
                binding.tried.push(uri.clone());
                Some(uri)
            });
        match next {
            Some(uri) => self.register_at(stack, id, uri),
            None => self.registration_failed(stack, id, answer),
        }
    }

    fn take_registration(
        &mut self,
        stack: &mut Stack,
        id: AccountId,
        asked: Duration,
        answer: &Answer,
        response: &Response,
    ) {
        let contact = answer
            .request
            .headers
            .contact()
            .ok()
            .flatten()
            .map(|contact| contact.uri);
        let expires = granted(response, contact.as_ref()).unwrap_or(asked);
        let Some(binding) = self.bindings.get_mut(&id) else {
            return;
        };
        let Some(account) = stack.accounts.get_mut(id) else {
            return;
        };
        account.contact = contact;
        binding.redirected = binding.tried.pop();
        if let Ok(route) = response.headers.addresses("Service-Route") {
            account.service_route = route;
        }
        let speaker = account.speaker.clone();
        if let Some(route) = &answer.route {
            let registered = Registered {
                route: route.clone(),
                addresses: answer.addresses.clone(),
            };
            stack.accounts.set_registered(id, registered);
        }
        let route = answer.route.as_ref();
        if speaker.profile.behind_nat
            && binding.corrections < MOST_CORRECTIONS
            && learn_public(stack, id, route, response)
        {
            binding.corrections = binding.corrections.saturating_add(1);
            self.register(stack, id);
            return;
        }
        binding.corrections = 0;
        binding.state = State::Registered;
        binding.failures = match expires < SHORTEST {
            true => binding.failures.saturating_add(1),
            false => 0,
        };
        let failures = binding.failures;
        let keepalive = keepalive_of(&speaker);
        // This leaves time for several attempts, and spreads the accounts.
        let wait = match failures {
            0 => expires.mul_f64(stack.random.range(0.65..0.75)),
            failures => back_off(stack, failures, TRANSIENT),
        };
        stack
            .deadlines
            .set(Timer::Register(id), Some(stack.now + wait));
        stack.deadlines.set(
            Timer::KeepAlive(id),
            keepalive
                .filter(|every| !every.is_zero())
                .map(|every| stack.now + every),
        );
        if let Some(response) = &answer.response {
            stack.report(AgentEvent::Registered {
                account: id,
                expires,
                response: response.clone(),
            });
        }
    }

    fn registration_failed(&mut self, stack: &mut Stack, id: AccountId, answer: Answer) {
        let Some(binding) = self.bindings.get_mut(&id) else {
            return;
        };
        binding.state = State::Idle;
        binding.corrections = 0;
        binding.failures = binding.failures.saturating_add(1);
        // An entrance is configured: its calls are accepted all the same.
        stack.accounts.set_unregistered(id);
        let failures = binding.failures;
        let speaker = stack.speaker(id);
        let wanted = speaker.is_some_and(|speaker| {
            let registration = speaker.profile.registration.as_ref();
            registration.is_some_and(|registration| registration.retry)
        });
        let transient = answer.code == 408 || (500..600).contains(&answer.code);
        let range = if transient { TRANSIENT } else { REFUSED };
        let retry = wanted.then(|| {
            let later = answer.later().unwrap_or_default().min(range.longest);
            back_off(stack, failures, range).max(later)
        });
        stack
            .deadlines
            .set(Timer::Register(id), retry.map(|wait| stack.now + wait));
        let Answer {
            code,
            reason,
            response,
            ..
        } = answer;
        stack.report(AgentEvent::RegistrationFailed {
            account: id,
            code,
            reason,
            response,
            retry,
        });
    }
}

/// Returns the wait after `failures` in a row: twice as long each time, and not equally long for
/// all accounts.
fn back_off(stack: &mut Stack, failures: u32, retry: Retry) -> Duration {
    let wait = retry
        .first
        .saturating_mul(1 << failures.saturating_sub(1).min(10))
        .min(retry.longest);
    wait.mul_f64(stack.random.range(0.5..1.0))
}

impl Binding {
    /// Takes the contacts of a 3xx, best last (RFC 3261 section 8.1.3.4).
    fn follow(&mut self, first: &Uri, response: &Response) {
        let Ok(Contacts::These(mut contacts)) = response.headers.contacts() else {
            return;
        };
        let quality = |contact: &NameAddr| -> f32 {
            let q = contact.params.get("q");
            q.and_then(|q| q.parse().ok()).unwrap_or(1.0)
        };
        contacts.sort_by(|one, other| quality(other).total_cmp(&quality(one)));
        contacts.truncate(MOST_CONTACTS);
        for contact in contacts.iter().rev() {
            let uri = first.as_sip().zip(contact.uri.as_sip());
            let uri = uri.and_then(|(first, contact)| elsewhere(first, contact));
            let Some(uri) = uri.map(Uri::from) else {
                continue;
            };
            let is_known = {
                let mut known = self.tried.iter().chain(&self.next).chain([first]);
                known.any(|known| known.matches(&uri))
            };
            if !is_known {
                self.next.push(uri);
            }
        }
    }
}

/// Returns the URI of a redirection's registrar. An account that asked for TLS is never sent
/// anywhere in the clear.
fn elsewhere(registrar: &SipUri, contact: &SipUri) -> Option<SipUri> {
    let mut uri = SipUri {
        user: None,
        password: None,
        headers: None,
        ..contact.clone()
    };
    let transport = |uri: &SipUri| {
        let transport = uri.transport()?.parse::<Transport>();
        transport.ok()
    };
    let is_secure = registrar.secure || transport(registrar).is_some_and(Transport::is_secure);
    if is_secure && !uri.secure {
        match (transport(&uri), registrar.transport()) {
            (Some(transport), _) if transport.is_secure() => {}
            (None, Some(secure)) if uri.transport().is_none() && !registrar.secure => {
                uri.params.set("transport", Some(secure));
            }
            _ => return None,
        }
    }
    Some(uri)
}

/// Returns the interval that the registrar granted to our Contact.
fn granted(response: &Response, contact: Option<&Uri>) -> Option<Duration> {
    let own = contact.and_then(Uri::as_sip)?;
    let same = |other: &NameAddr| {
        other.uri.as_sip().is_some_and(|other| {
            other.host == own.host && other.port == own.port && other.user == own.user
        })
    };
    let listed = match response.headers.contacts() {
        // A single contact is ours, though the registrar may show the address behind a NAT.
        Ok(Contacts::These(contacts)) if contacts.len() == 1 => contacts.into_iter().next(),
        Ok(Contacts::These(contacts)) => contacts.into_iter().find(same),
        _ => None,
    };
    let seconds = listed.and_then(|contact| contact.params.get("expires")?.parse::<u32>().ok());
    match seconds {
        Some(seconds) => Some(Duration::from_secs(seconds.into())),
        None => response.headers.expires().ok().flatten(),
    }
}

/// Notes our address as the registrar saw it. Returns whether it is new.
fn learn_public(
    stack: &mut Stack,
    id: AccountId,
    route: Option<&Route>,
    response: &Response,
) -> bool {
    let Ok(Some(via)) = response.headers.via() else {
        return false;
    };
    let (host, port) = via.sent_by();
    let seen_host = via.received().map_or_else(|| host.clone(), Into::into);
    let default = route.map_or(5060, |route| route.transport().default_port());
    let sent_port = port.unwrap_or(default);
    let seen_port = via.rport().unwrap_or(sent_port);
    let crate::message::Host::Address(address) = seen_host else {
        return false;
    };
    let seen = (address, seen_port);
    let Some(account) = stack.accounts.get_mut(id) else {
        return false;
    };
    let known = match account.public {
        Some(public) => public == seen,
        None => *host == address.into() && sent_port == seen_port,
    };
    if !known {
        account.public = Some(seen);
    }
    !known
}
