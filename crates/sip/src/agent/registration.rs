//! Registrations (RFC 3261 section 10, RFC 3327, RFC 3608): made, refreshed, kept alive, tried again, ended.

use std::time::{Duration, Instant};

use rand::Rng;

use super::account::{Account, State};
use super::compose::{Contact, Speaker, add_headers};
use super::exchange::{Answer, ExchangeId, Owner, Sending};
use super::registrars::Registered;
use super::{AccountId, Agent, AgentEvent, Timer};
use crate::flow::{Flow, Route, Transport};
use crate::message::{Contacts, Method, NameAddr, Response, SipUri, Uri};

/// The first and the longest wait before a registration is tried again that had no answer, or none of use (RFC 5626
/// section 4.5).
const RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(1800));
/// The same where it was refused: who shows a wrong secret often is locked out.
const REFUSED: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(3600));
/// A registration that is granted for less is of no use: it is refreshed as seldom as one that failed is tried again.
const SHORTEST: Duration = Duration::from_secs(5);
/// Contacts of a 3xx that are looked at.
const MOST_CONTACTS: usize = 8;
/// A registrar corrects us so often in a row.
const MOST_CORRECTIONS: u8 = 3;

impl Agent {
    /// Registers an account now, and not when it is due.
    pub(super) fn register_now(&mut self, now: Instant, id: AccountId) {
        let is_leaving = |account: &Account| account.state == State::Leaving;
        if !self.accounts.get(&id).is_some_and(is_leaving) {
            self.register(now, id);
        }
    }

    /// Sends REGISTER to the registrar, or to where the registration is that is to be ended.
    pub(super) fn register(&mut self, now: Instant, id: AccountId) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        if account.exchange.is_some() {
            return;
        }
        account.tried.clear();
        account.next.clear();
        let uri = match (&account.state, &account.redirected) {
            (State::Leaving, Some(redirected)) => redirected.clone(),
            _ => registrar(&account.speaker),
        };
        self.register_at(now, id, uri);
    }

    fn register_at(&mut self, now: Instant, id: AccountId, uri: Uri) {
        let Some(account) = self
            .accounts
            .get_mut(&id)
            .filter(|account| account.exchange.is_none())
        else {
            return;
        };
        let speaker = account.speaker.clone();
        let Some(registration) = &speaker.profile.registration else {
            return;
        };
        if account.state == State::Idle {
            account.state = State::Registering;
        }
        account.cseq = account.cseq.wrapping_add(1) & 0x7fff_ffff;
        let seconds = if account.state == State::Leaving {
            0
        } else {
            account.expires.as_secs()
        };
        let (call_id, tag, cseq) = (account.call_id.clone(), account.tag.clone(), account.cseq);
        let digest = std::mem::take(&mut account.digest);
        let to = NameAddr::new(speaker.profile.identity.clone())
            .with_display(&speaker.profile.display_name);
        let mut request =
            self.request(&speaker, Method::Register, uri, &to, (&call_id, &tag, cseq));
        request.headers.push("Expires", seconds);
        request.headers.push("Allow", self.allow());
        request.headers.push("Supported", "path");
        add_headers(&mut request.headers, &registration.headers, &[]);
        let mut sending = Sending::outside(Owner::Register(id), speaker, request, None);
        sending.contact = Contact::Register(seconds);
        sending.digest = digest;
        // The timers of before count no more: this answer sets them anew.
        self.deadlines.set(Timer::Register(id), None);
        self.deadlines.set(Timer::KeepAlive(id), None);
        let exchange = self.send(now, sending);
        if let Some(account) = self.accounts.get_mut(&id) {
            account.exchange = Some(exchange);
        }
    }

    /// Takes the answer of the registrar.
    pub(super) fn registered(
        &mut self,
        now: Instant,
        id: AccountId,
        exchange: ExchangeId,
        answer: Answer,
    ) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        if account.exchange.is_some_and(|current| current != exchange) {
            return;
        }
        account.exchange = None;
        if let Ok(Some(cseq)) = answer.request.headers.cseq() {
            account.cseq = cseq.number;
        }
        account.digest = answer.digest.clone();
        let asked = answer
            .request
            .headers
            .expires()
            .ok()
            .flatten()
            .unwrap_or_default();
        if account.state == State::Leaving {
            let is_over = match &answer.response {
                Some(response) => {
                    !response.status.is_success() && !response.status.is_redirection()
                }
                None => true,
            };
            if asked.is_zero() || is_over {
                self.drop_account(id);
                self.tell(AgentEvent::Unregistered {
                    account: id,
                    response: answer.response,
                });
            } else {
                self.register(now, id);
            }
            return;
        }
        match &answer.response {
            Some(response) if answer.is_success() => {
                self.take_registration(now, id, asked, &answer, response)
            }
            Some(response) if answer.code == 423 => {
                let least = response
                    .headers
                    .min_expires()
                    .ok()
                    .flatten()
                    .unwrap_or_default();
                if least > asked && account.corrections < MOST_CORRECTIONS {
                    account.corrections = account.corrections.saturating_add(1);
                    account.expires = least;
                    self.register(now, id);
                } else {
                    self.registration_failed(now, id, answer);
                }
            }
            Some(response) if response.status.is_redirection() => {
                account.follow(response);
                self.try_next(now, id, answer);
            }
            _ => self.try_next(now, id, answer),
        }
    }

    /// Goes on with the next registrar that we were sent to, if there is one.
    fn try_next(&mut self, now: Instant, id: AccountId, answer: Answer) {
        let most = usize::from(self.options.limits.redirections);
        let account = self.accounts.get_mut(&id);
        let next = account
            .filter(|account| account.tried.len() < most)
            .and_then(|account| {
                let uri = account.next.pop()?;
                account.tried.push(uri.clone());
                Some(uri)
            });
        match next {
            Some(uri) => self.register_at(now, id, uri),
            None => self.registration_failed(now, id, answer),
        }
    }

    fn take_registration(
        &mut self,
        now: Instant,
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
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        account.contact = contact;
        account.redirected = account.tried.pop();
        if let Ok(route) = response.headers.addresses("Service-Route") {
            account.service_route = route;
        }
        if let Some(route) = &answer.route {
            let registered = Registered {
                route: route.clone(),
                addresses: answer.addresses.clone(),
            };
            match account.speaker.profile.entrance {
                true => self.entrances.set(id, registered),
                false => self.registrars.set(id, registered),
            }
        }
        let route = answer.route.as_ref();
        if account.speaker.profile.behind_nat
            && account.corrections < MOST_CORRECTIONS
            && learn_public(account, route, response)
        {
            account.corrections = account.corrections.saturating_add(1);
            self.register(now, id);
            return;
        }
        account.corrections = 0;
        account.state = State::Registered;
        account.failures = match expires < SHORTEST {
            true => account.failures.saturating_add(1),
            false => 0,
        };
        let failures = account.failures;
        let keepalive = account
            .speaker
            .profile
            .registration
            .as_ref()
            .and_then(|registration| registration.keepalive);
        // Early enough for several tries before it expires, and not all accounts at once.
        let wait = match failures {
            0 => expires.mul_f64(self.random.random_range(0.65..0.75)),
            failures => self.back_off(failures, RETRY),
        };
        self.deadlines.set(Timer::Register(id), Some(now + wait));
        self.deadlines.set(
            Timer::KeepAlive(id),
            keepalive
                .filter(|every| !every.is_zero())
                .map(|every| now + every),
        );
        if let Some(response) = &answer.response {
            self.tell(AgentEvent::Registered {
                account: id,
                expires,
                response: response.clone(),
            });
        }
    }

    fn registration_failed(&mut self, now: Instant, id: AccountId, answer: Answer) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        account.state = State::Idle;
        account.corrections = 0;
        account.failures = account.failures.saturating_add(1);
        // Where an entrance is registered is configured: its calls are taken from there all the same.
        self.registrars.remove(id);
        let failures = account.failures;
        let wanted = account
            .speaker
            .profile
            .registration
            .as_ref()
            .is_some_and(|registration| registration.retry);
        let transient = answer.code == 408 || (500..600).contains(&answer.code);
        let range = if transient { RETRY } else { REFUSED };
        let retry = wanted.then(|| {
            let later = answer.later().unwrap_or_default().min(range.1);
            self.back_off(failures, range).max(later)
        });
        self.deadlines
            .set(Timer::Register(id), retry.map(|wait| now + wait));
        let Answer {
            code,
            reason,
            response,
            ..
        } = answer;
        self.tell(AgentEvent::RegistrationFailed {
            account: id,
            code,
            reason,
            response,
            retry,
        });
    }

    /// How long to wait after so many failures in a row: twice as long each time, and not all accounts equally long.
    fn back_off(&mut self, failures: u32, (first, longest): (Duration, Duration)) -> Duration {
        let wait = first
            .saturating_mul(1 << failures.saturating_sub(1).min(10))
            .min(longest);
        wait.mul_f64(self.random.random_range(0.5..1.0))
    }

    /// Unregisters and removes an account.
    pub(super) fn remove_account(&mut self, now: Instant, id: AccountId) {
        let Some(account) = self.accounts.get_mut(&id) else {
            self.tell(AgentEvent::Unregistered {
                account: id,
                response: None,
            });
            return;
        };
        let is_known = matches!(account.state, State::Registering | State::Registered);
        if !is_known && account.state != State::Leaving {
            self.drop_account(id);
            self.tell(AgentEvent::Unregistered {
                account: id,
                response: None,
            });
            return;
        }
        account.state = State::Leaving;
        if let Some(keepalive) = account.keepalive.take() {
            self.abandon(keepalive);
        }
        // With a REGISTER under way, its answer comes first.
        self.register(now, id);
    }

    /// Sends OPTIONS to the registrar, so that the way from it stays open.
    pub(super) fn keep_alive(&mut self, now: Instant, id: AccountId) {
        let Some(account) = self
            .accounts
            .get(&id)
            .filter(|account| account.state == State::Registered)
        else {
            return;
        };
        if account.keepalive.is_some() || account.exchange.is_some() {
            return;
        }
        let speaker = account.speaker.clone();
        let route = self.registration_of(id).map(|it| it.route.clone());
        let redirected = account.redirected.clone();
        let uri = redirected.unwrap_or_else(|| registrar(&speaker));
        let to = NameAddr::new(uri.clone());
        let (call_id, tag) = (self.new_call_id(), self.tag());
        let request = self.request(&speaker, Method::Options, uri, &to, (&call_id, &tag, 1));
        let mut sending = Sending::outside(Owner::KeepAlive(id), speaker, request, None);
        sending.flow = match route {
            Some(Route::Flow(flow)) => Some(flow),
            _ => None,
        };
        // Any answer will do.
        sending.credentials = None;
        let exchange = self.send(now, sending);
        if let Some(account) = self.accounts.get_mut(&id) {
            account.keepalive = Some(exchange);
        }
    }

    pub(super) fn kept_alive(&mut self, now: Instant, id: AccountId, answer: &Answer) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        account.keepalive = None;
        if answer.response.is_none() {
            self.register(now, id);
            return;
        }
        let every = account
            .speaker
            .profile
            .registration
            .as_ref()
            .and_then(|registration| registration.keepalive);
        if account.exchange.is_none() {
            self.deadlines
                .set(Timer::KeepAlive(id), every.map(|every| now + every));
        }
    }

    /// A connection is gone over which registrars reached us: accounts that used it register anew.
    pub(super) fn registrars_closed(&mut self, now: Instant, flow: &Flow) {
        let gone = |id: &AccountId, account: &Account| {
            let registered = self.registration_of(*id);
            account.state == State::Registered
                && registered.is_some_and(|it| it.is_over(flow.transport, flow.remote))
        };
        let mut ids: Vec<AccountId> = self
            .accounts
            .iter()
            .filter(|(id, account)| gone(id, account))
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        for id in ids {
            let wait = Duration::from_millis(self.random.random_range(200..3000));
            self.deadlines.set(Timer::Register(id), Some(now + wait));
        }
    }
}

/// The Request-URI of REGISTER: a domain without a user.
fn registrar(speaker: &Speaker) -> Uri {
    let profile = &speaker.profile;
    let given = profile
        .registration
        .as_ref()
        .and_then(|registration| registration.registrar.clone());
    match given.unwrap_or_else(|| profile.identity.clone()) {
        Uri::Sip(uri) => SipUri {
            user: None,
            password: None,
            headers: None,
            ..uri
        }
        .into(),
        other => other,
    }
}

impl Account {
    /// Takes the contacts of a 3xx, best last (RFC 3261 section 8.1.3.4).
    fn follow(&mut self, response: &Response) {
        let Ok(Contacts::These(mut contacts)) = response.headers.contacts() else {
            return;
        };
        let quality = |contact: &NameAddr| -> f32 {
            let q = contact.params.get("q");
            q.and_then(|q| q.parse().ok()).unwrap_or(1.0)
        };
        contacts.sort_by(|one, other| quality(other).total_cmp(&quality(one)));
        contacts.truncate(MOST_CONTACTS);
        let first = registrar(&self.speaker);
        for contact in contacts.iter().rev() {
            let uri = first.as_sip().zip(contact.uri.as_sip());
            let uri = uri.and_then(|(first, contact)| elsewhere(first, contact));
            let Some(uri) = uri.map(Uri::from) else {
                continue;
            };
            let is_known = {
                let mut known = self.tried.iter().chain(&self.next).chain([&first]);
                known.any(|known| known.matches(&uri))
            };
            if !is_known {
                self.next.push(uri);
            }
        }
    }
}

/// The URI of the registrar to which another one has sent us. Who has asked for TLS is sent nowhere in the clear.
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

/// For how long the registrar has taken our Contact.
fn granted(response: &Response, contact: Option<&Uri>) -> Option<Duration> {
    let own = contact.and_then(Uri::as_sip)?;
    let same = |other: &NameAddr| {
        other.uri.as_sip().is_some_and(|other| {
            other.host == own.host && other.port == own.port && other.user == own.user
        })
    };
    let listed = match response.headers.contacts() {
        // One alone is ours, though the registrar may show it as it sees it from behind a NAT.
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

/// Whether the registrar sees us at another address than we have thought.
fn learn_public(account: &mut Account, route: Option<&Route>, response: &Response) -> bool {
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
    let known = match account.public {
        Some(public) => public == seen,
        None => *host == address.into() && sent_port == seen_port,
    };
    if !known {
        account.public = Some(seen);
    }
    !known
}
