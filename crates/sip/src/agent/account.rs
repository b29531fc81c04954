//! Accounts: who they are, and which one a request is for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::Profile;
use super::compose::Speaker;
use super::exchange::ExchangeId;
use super::{AccountId, Agent, AgentEvent, Timer};
use crate::digest::Client as Digest;
use crate::flow::{Flow, Route};
use crate::message::{NameAddr, Request, SipUri, Uri};

/// Where an account is with its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not registered, and not about to be.
    Idle,
    /// REGISTER was sent for the first time, or after a failure.
    Registering,
    /// Registered; perhaps being refreshed.
    Registered,
    /// To be removed as soon as the registrar has answered.
    Leaving,
}

#[derive(Debug)]
pub(super) struct Account {
    pub(super) speaker: Speaker,
    pub(super) state: State,
    pub(super) call_id: String,
    pub(super) tag: String,
    pub(super) cseq: u32,
    pub(super) digest: Digest,
    pub(super) exchange: Option<ExchangeId>,
    pub(super) keepalive: Option<ExchangeId>,
    /// For how long we ask; the registrar may want more.
    pub(super) expires: Duration,
    pub(super) service_route: Vec<NameAddr>,
    /// What the registrar saw as our address.
    pub(super) public: Option<(IpAddr, u16)>,
    /// The Contact that is registered.
    pub(super) contact: Option<Uri>,
    /// The way to the registrar, of the registration that is in force.
    pub(super) route: Option<Route>,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Times in a row that the registrar made us ask anew: another address, a longer time.
    pub(super) corrections: u8,
}

impl Agent {
    /// Adds an account, or changes its profile.
    pub(super) fn set_account(&mut self, now: Instant, id: AccountId, profile: Profile) {
        if let Some(exchange) = self.accounts.get(&id).and_then(|account| account.exchange) {
            self.abandon(exchange);
        }
        if !self.accounts.contains_key(&id) && self.accounts.len() >= self.options.limits.accounts {
            self.counters.full = self.counters.full.saturating_add(1);
            self.tell(AgentEvent::RegistrationFailed {
                account: id,
                code: 503,
                reason: "Too many accounts".to_owned(),
                response: None,
                retry: None,
            });
            return;
        }
        let expires = profile
            .registration
            .as_ref()
            .map_or(Duration::ZERO, |registration| registration.expires);
        let registers = profile.registration.is_some();
        let wanted = user_of(&profile.identity);
        if let Some(account) = self.accounts.get_mut(&id) {
            let old = account.speaker.profile.identity.clone();
            account.speaker.profile = Arc::new(profile);
            account.expires = expires;
            account.exchange = None;
            account.corrections = 0;
            account.failures = 0;
            account.state = State::Idle;
            self.unlist(id, &user_of(&old));
        } else {
            let user = if self.users.contains_key(&wanted) {
                format!("{wanted}-{}", self.token(6))
            } else {
                wanted.clone()
            };
            let speaker = Speaker {
                account: Some(id),
                profile: Arc::new(profile),
                user: user.into(),
            };
            let account = Account {
                speaker,
                state: State::Idle,
                call_id: self.new_call_id(),
                tag: self.tag(),
                cseq: 0,
                digest: Digest::new(),
                exchange: None,
                keepalive: None,
                expires,
                service_route: Vec::new(),
                public: None,
                contact: None,
                route: None,
                failures: 0,
                corrections: 0,
            };
            let user = account.speaker.user.to_string();
            self.accounts.insert(id, account);
            if user != wanted {
                self.list(id, user);
            }
        }
        self.list(id, wanted);
        self.deadlines.set(Timer::Register(id), None);
        self.deadlines.set(Timer::KeepAlive(id), None);
        if registers {
            self.register(now, id);
        }
    }

    /// Takes an account away.
    pub(super) fn drop_account(&mut self, id: AccountId) {
        let Some(account) = self.accounts.remove(&id) else {
            return;
        };
        for exchange in [account.exchange, account.keepalive].into_iter().flatten() {
            self.abandon(exchange);
        }
        if let Some(route) = account.route {
            self.guard.distrust(route.remote().ip());
        }
        self.deadlines.set(Timer::Register(id), None);
        self.deadlines.set(Timer::KeepAlive(id), None);
        self.unlist(id, &user_of(&account.speaker.profile.identity));
        self.unlist(id, &account.speaker.user);
    }

    fn list(&mut self, id: AccountId, user: String) {
        let ids = self.users.entry(user).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    fn unlist(&mut self, id: AccountId, user: &str) {
        if let Some(ids) = self.users.get_mut(user) {
            // The user part of the Contact stays, whatever the identity is.
            if self
                .accounts
                .get(&id)
                .is_none_or(|account| *account.speaker.user != *user)
            {
                ids.retain(|other| *other != id);
            }
            if ids.is_empty() {
                self.users.remove(user);
            }
        }
    }

    /// The account that a request outside of dialogs is for.
    pub(super) fn account_for(&self, request: &Request, flow: &Flow) -> Option<AccountId> {
        let uri = request.uri.as_sip()?;
        let source = flow.remote.ip();
        // Who has an entrance of its own here (a trunk) calls an account only if it says so.
        let may_guess = !(self.options.strangers && self.guard.has_entrance(source));
        self.account_of(uri, flow, may_guess).or_else(|| {
            // A registrar may ask for a number of which it knows that it is ours.
            if self.guard.serves(source) == 0 {
                return None;
            }
            let to = request.headers.to().ok().flatten();
            let by_to = to
                .as_ref()
                .and_then(|to| self.account_of(to.uri.as_sip()?, flow, may_guess))
                .filter(|id| self.is_registrar_of(*id, flow));
            by_to.or_else(|| {
                let only = may_guess && self.guard.serves(source) == 1;
                let mut there = self
                    .accounts
                    .iter()
                    .filter(|(_, account)| came_from(account, flow));
                only.then(|| there.next().map(|(id, _)| *id)).flatten()
            })
        })
    }

    /// Whether what came on `flow` came from the registrar that has the account.
    pub(super) fn is_registrar_of(&self, id: AccountId, flow: &Flow) -> bool {
        self.accounts
            .get(&id)
            .is_some_and(|account| came_from(account, flow))
    }

    /// `may_guess`: the user part alone is enough.
    fn account_of(&self, uri: &SipUri, flow: &Flow, may_guess: bool) -> Option<AccountId> {
        let user = uri.subscriber()?;
        let ids = self.users.get(&*user)?;
        let by = |fits: &dyn Fn(&Account) -> bool| {
            ids.iter()
                .copied()
                .find(|id| self.accounts.get(id).is_some_and(fits))
        };
        // By Contact, by identity, by registrar, by the user part alone.
        let is_contact =
            |account: &Account| *account.speaker.user == *user && is_host_of(&account.contact, uri);
        by(&|account| is_contact(account) && came_from(account, flow))
            .or_else(|| {
                by(&|account| is_host_of(&Some(account.speaker.profile.identity.clone()), uri))
            })
            .or_else(|| by(&|account| came_from(account, flow)))
            .or_else(|| by(&is_contact))
            .or_else(|| by(&|account| may_guess && *account.speaker.user == *user))
            .or_else(|| ids.first().copied().filter(|_| may_guess))
    }

    pub(super) fn speaker(&self, id: AccountId) -> Option<Speaker> {
        self.accounts
            .get(&id)
            .map(|account| account.speaker.clone())
    }
}

fn is_host_of(own: &Option<Uri>, uri: &SipUri) -> bool {
    own.as_ref()
        .and_then(Uri::as_sip)
        .is_some_and(|own| own.host == uri.host)
}

fn came_from(account: &Account, flow: &Flow) -> bool {
    let registrar = account
        .route
        .as_ref()
        .map(|route| route.remote().ip().to_canonical());
    registrar == Some(flow.remote.ip().to_canonical())
}

fn user_of(identity: &Uri) -> String {
    identity.subscriber().unwrap_or_default().into_owned()
}
