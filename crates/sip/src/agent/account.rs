//! Accounts: who they are, and where they are registered.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::callee::RANDOM;
use super::command::Profile;
use super::compose::Speaker;
use super::exchange::ExchangeId;
use super::{AccountId, Agent, AgentEvent, Timer};
use crate::digest::Client as Digest;
use crate::message::{NameAddr, SipUri, Uri};

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
    /// Where the registrar of the identity has sent us in its place.
    pub(super) redirected: Option<Uri>,
    /// Where redirections have sent the REGISTER that is under way, the present one last.
    pub(super) tried: Vec<Uri>,
    /// Where it is still to go, if that fails; the next is last.
    pub(super) next: Vec<Uri>,
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
            if !is_same_server(&account.speaker.profile, &profile) {
                // What the former registrar has said is nothing that this one has.
                self.registrars.remove(id);
                self.entrances.remove(id);
                account.service_route.clear();
                account.redirected = None;
            }
            account.speaker.profile = Arc::new(profile);
            account.expires = expires;
            account.exchange = None;
            account.corrections = 0;
            account.failures = 0;
            account.state = State::Idle;
            self.unlist(id, &user_of(&old));
        } else {
            // All that comes from where an entrance is registered is its own: its Contact may be known.
            let user = match profile.entrance {
                true => wanted.clone(),
                false => format!("{wanted}-{}", self.token(RANDOM)),
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
                redirected: None,
                tried: Vec::new(),
                next: Vec::new(),
                failures: 0,
                corrections: 0,
            };
            if !account.speaker.profile.entrance {
                let user = account.speaker.user.to_string();
                self.contacts.insert(user, id);
            }
            self.accounts.insert(id, account);
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
        self.registrars.remove(id);
        self.entrances.remove(id);
        self.deadlines.set(Timer::Register(id), None);
        self.deadlines.set(Timer::KeepAlive(id), None);
        self.unlist(id, &user_of(&account.speaker.profile.identity));
        self.contacts.remove(&*account.speaker.user);
    }

    fn list(&mut self, id: AccountId, user: String) {
        let ids = self.users.entry(user).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    fn unlist(&mut self, id: AccountId, user: &str) {
        if let Some(ids) = self.users.get_mut(user) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.users.remove(user);
            }
        }
    }

    pub(super) fn speaker(&self, id: AccountId) -> Option<Speaker> {
        self.accounts
            .get(&id)
            .map(|account| account.speaker.clone())
    }
}

/// Whether two profiles have the same identity, registered at the same server on the same way.
fn is_same_server(one: &Profile, other: &Profile) -> bool {
    let registrar = |profile: &Profile| {
        let registration = profile.registration.as_ref();
        registration.map(|registration| registration.registrar.clone())
    };
    one.identity == other.identity
        && one.outbound_proxy == other.outbound_proxy
        && one.entrance == other.entrance
        && one.registration.is_some()
        && registrar(one) == registrar(other)
}

fn user_of(identity: &Uri) -> String {
    identity
        .as_sip()
        .and_then(SipUri::user_name)
        .unwrap_or_default()
        .into_owned()
}
