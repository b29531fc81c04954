//! Registrations (RFC 3261 section 10, RFC 3327, RFC 3608) with their refreshes and keep-alives.

mod answers;

use std::collections::HashMap;
use std::time::Duration;

use super::accounts::{RANDOM, Speaker};
use super::stack::{Answer, Contact, ExchangeId, FirstRequest, Owner, Sending, Stack, add_headers};
use super::timers::Timer;
use super::{AccountId, AgentEvent, Profile};
use crate::digest::Client as Digest;
use crate::flow::{Flow, Route};
use crate::message::{Method, NameAddr, SipUri, Uri};

/// The state of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not registered, and not about to be.
    Idle,
    /// REGISTER was sent for the first time, or after a failure.
    Registering,
    /// Registered; perhaps being refreshed.
    Registered,
    /// To be removed as soon as the registrar has answered.
    Leaving,
}

/// The registration of an account.
#[derive(Debug)]
struct Binding {
    state: State,
    call_id: String,
    tag: String,
    cseq: u32,
    digest: Digest,
    exchange: Option<ExchangeId>,
    keepalive: Option<ExchangeId>,
    /// The interval that is asked for; the registrar may want a longer one.
    expires: Duration,
    /// Where the registrar of the identity has redirected the registration.
    redirected: Option<Uri>,
    /// Where redirections have sent the REGISTER that is under way, the present one last.
    tried: Vec<Uri>,
    /// Where it is still to go, if that fails; the next is last.
    next: Vec<Uri>,
    /// Failures in a row.
    failures: u32,
    /// Corrections by the registrar in a row: another address, a longer interval.
    corrections: u8,
}

/// The registrations of all accounts. Each account has one, even if it does not register.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    bindings: HashMap<AccountId, Binding>,
}

impl Registrations {
    /// Adds an account, or changes its profile.
    pub(super) fn set_account(&mut self, stack: &mut Stack, id: AccountId, profile: Profile) {
        let known = self.bindings.get(&id);
        if let Some(exchange) = known.and_then(|binding| binding.exchange) {
            stack.abandon(exchange);
        }
        if known.is_none() && stack.accounts.len() >= stack.options.limits.accounts {
            stack.count_full();
            stack.report(AgentEvent::RegistrationFailed {
                account: id,
                code: 503,
                reason: "Too many accounts".to_owned(),
                response: None,
                retry: None,
            });
            return;
        }
        let registration = profile.registration.as_ref();
        let expires = registration.map_or(Duration::ZERO, |registration| registration.expires);
        let registers = registration.is_some();
        if let Some(binding) = self.bindings.get_mut(&id) {
            if stack.accounts.change(id, profile) {
                binding.redirected = None;
            }
            binding.expires = expires;
            binding.exchange = None;
            binding.corrections = 0;
            binding.failures = 0;
            binding.state = State::Idle;
        } else {
            // All requests from an entrance are for it, so its Contact need not be secret.
            let random = (!profile.entrance).then(|| stack.random.token(RANDOM));
            stack.accounts.add(id, profile, random.as_deref());
            let binding = Binding {
                state: State::Idle,
                call_id: stack.random.call_id(),
                tag: stack.random.tag(),
                cseq: 0,
                digest: Digest::new(),
                exchange: None,
                keepalive: None,
                expires,
                redirected: None,
                tried: Vec::new(),
                next: Vec::new(),
                failures: 0,
                corrections: 0,
            };
            self.bindings.insert(id, binding);
        }
        clear_timers(stack, id);
        if registers {
            self.register(stack, id);
        }
    }

    fn drop_account(&mut self, stack: &mut Stack, id: AccountId) {
        let Some(binding) = self.bindings.remove(&id) else {
            return;
        };
        for exchange in [binding.exchange, binding.keepalive].into_iter().flatten() {
            stack.abandon(exchange);
        }
        stack.accounts.remove(id);
        clear_timers(stack, id);
    }

    /// Registers an account at once.
    pub(super) fn register_now(&mut self, stack: &mut Stack, id: AccountId) {
        let is_leaving = |binding: &Binding| binding.state == State::Leaving;
        if !self.bindings.get(&id).is_some_and(is_leaving) {
            self.register(stack, id);
        }
    }

    /// Sends REGISTER to the registrar. To unregister, sends it to where the registration is.
    pub(super) fn register(&mut self, stack: &mut Stack, id: AccountId) {
        let Some(binding) = self.bindings.get_mut(&id) else {
            return;
        };
        if binding.exchange.is_some() {
            return;
        }
        binding.tried.clear();
        binding.next.clear();
        let uri = match (&binding.state, &binding.redirected) {
            (State::Leaving, Some(redirected)) => redirected.clone(),
            _ => match stack.speaker(id) {
                Some(speaker) => registrar(&speaker),
                None => return,
            },
        };
        self.register_at(stack, id, uri);
    }

    fn register_at(&mut self, stack: &mut Stack, id: AccountId, uri: Uri) {
        let Some(binding) = self
            .bindings
            .get_mut(&id)
            .filter(|binding| binding.exchange.is_none())
        else {
            return;
        };
        let Some(speaker) = stack.speaker(id) else {
            return;
        };
        let Some(registration) = &speaker.profile.registration else {
            return;
        };
        if binding.state == State::Idle {
            binding.state = State::Registering;
        }
        binding.cseq = binding.cseq.wrapping_add(1) & 0x7fff_ffff;
        let seconds = if binding.state == State::Leaving {
            0
        } else {
            binding.expires.as_secs()
        };
        let (call_id, tag, cseq) = (binding.call_id.clone(), binding.tag.clone(), binding.cseq);
        let digest = std::mem::take(&mut binding.digest);
        let to = NameAddr::new(speaker.profile.identity.clone())
            .with_display(&speaker.profile.display_name);
        let first = FirstRequest {
            method: Method::Register,
            uri,
            to: &to,
            call_id: &call_id,
            tag: &tag,
            number: cseq,
        };
        let mut request = stack.request(&speaker, first);
        request.headers.push("Expires", seconds);
        add_headers(&mut request.headers, &registration.headers, &[]);
        let mut sending = Sending::outside(Owner::Register(id), speaker, request, None);
        sending.contact = Contact::Register(seconds);
        sending.digest = digest;
        // The answer sets them anew.
        clear_timers(stack, id);
        let exchange = stack.send(sending);
        if let Some(binding) = self.bindings.get_mut(&id) {
            binding.exchange = Some(exchange);
        }
    }

    /// Unregisters and removes an account.
    pub(super) fn remove_account(&mut self, stack: &mut Stack, id: AccountId) {
        let Some(binding) = self.bindings.get_mut(&id) else {
            stack.report(AgentEvent::Unregistered {
                account: id,
                response: None,
            });
            return;
        };
        let is_known = matches!(binding.state, State::Registering | State::Registered);
        if !is_known && binding.state != State::Leaving {
            self.drop_account(stack, id);
            stack.report(AgentEvent::Unregistered {
                account: id,
                response: None,
            });
            return;
        }
        binding.state = State::Leaving;
        if let Some(keepalive) = binding.keepalive.take() {
            stack.abandon(keepalive);
        }
        // If a REGISTER is under way, its response comes first.
        self.register(stack, id);
    }

    /// Sends OPTIONS to the registrar, which keeps the connection or NAT binding open.
    pub(super) fn keep_alive(&mut self, stack: &mut Stack, id: AccountId) {
        let Some(binding) = self
            .bindings
            .get(&id)
            .filter(|binding| binding.state == State::Registered)
        else {
            return;
        };
        if binding.keepalive.is_some() || binding.exchange.is_some() {
            return;
        }
        let Some(speaker) = stack.speaker(id) else {
            return;
        };
        let registered = stack.accounts.registration_of(id);
        let route = registered.map(|registered| registered.route.clone());
        let redirected = binding.redirected.clone();
        let uri = redirected.unwrap_or_else(|| registrar(&speaker));
        let to = NameAddr::new(uri.clone());
        let (call_id, tag) = (stack.random.call_id(), stack.random.tag());
        let first = FirstRequest {
            method: Method::Options,
            uri,
            to: &to,
            call_id: &call_id,
            tag: &tag,
            number: 1,
        };
        let request = stack.request(&speaker, first);
        let mut sending = Sending::outside(Owner::KeepAlive(id), speaker, request, None);
        sending.flow = match route {
            Some(Route::Flow(flow)) => Some(flow),
            _ => None,
        };
        // Any response will do.
        sending.credentials = None;
        let exchange = stack.send(sending);
        if let Some(binding) = self.bindings.get_mut(&id) {
            binding.keepalive = Some(exchange);
        }
    }

    /// Takes the response to OPTIONS: any will do.
    pub(super) fn kept_alive(&mut self, stack: &mut Stack, id: AccountId, answer: &Answer) {
        let Some(binding) = self.bindings.get_mut(&id) else {
            return;
        };
        binding.keepalive = None;
        if answer.response.is_none() {
            self.register(stack, id);
            return;
        }
        let speaker = stack.accounts.get(id).map(|account| &account.speaker);
        let every = speaker.and_then(keepalive_of);
        if binding.exchange.is_none() {
            stack
                .deadlines
                .set(Timer::KeepAlive(id), every.map(|every| stack.now + every));
        }
    }

    /// Registers the accounts again that used a connection which is gone.
    pub(super) fn connection_closed(&mut self, stack: &mut Stack, flow: &Flow) {
        let gone = |id: &AccountId, binding: &Binding| {
            let registered = stack.accounts.registration_of(*id);
            binding.state == State::Registered
                && registered.is_some_and(|it| it.is_over(flow.transport, flow.remote))
        };
        let bindings = self.bindings.iter();
        let gone = bindings.filter(|(id, binding)| gone(id, binding));
        let mut ids: Vec<AccountId> = gone.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            let wait = Duration::from_millis(stack.random.range(200..3000));
            stack
                .deadlines
                .set(Timer::Register(id), Some(stack.now + wait));
        }
    }
}

fn clear_timers(stack: &mut Stack, id: AccountId) {
    stack.deadlines.set(Timer::Register(id), None);
    stack.deadlines.set(Timer::KeepAlive(id), None);
}

/// The interval of OPTIONS of an account.
fn keepalive_of(speaker: &Speaker) -> Option<Duration> {
    let registration = speaker.profile.registration.as_ref();
    registration.and_then(|registration| registration.keepalive)
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
