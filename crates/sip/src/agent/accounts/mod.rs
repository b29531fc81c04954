//! Accounts, and the selection of the account that a request is for.

mod callee;
mod registrars;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::{AccountId, Profile};
use crate::message::{NameAddr, Uri};

pub(super) use callee::{Callee, RANDOM};
pub(super) use registrars::Registered;
use registrars::Registrars;

/// The sender of requests and responses: an account, or the callee of a stranger's call.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    pub(super) account: Option<AccountId>,
    pub(super) profile: Arc<Profile>,
    /// The user part of Contact.
    pub(super) user: Arc<str>,
}

/// An account, with the answers of its registrar.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) speaker: Speaker,
    pub(super) service_route: Vec<NameAddr>,
    /// Our address as the registrar saw it.
    pub(super) public: Option<(IpAddr, u16)>,
    /// The Contact that is registered.
    pub(super) contact: Option<Uri>,
}

/// All accounts, by the names that peers call them by.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    accounts: HashMap<AccountId, Account>,
    /// Accounts by the user part of their identity, oldest first.
    users: HashMap<String, Vec<AccountId>>,
    /// Accounts by the user part of their Contact, which nobody can guess.
    contacts: HashMap<String, AccountId>,
    /// Where accounts without an entrance are registered.
    registrars: Registrars,
    /// Where accounts with an entrance are registered.
    entrances: Registrars,
}

impl Accounts {
    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    pub(super) fn get(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: AccountId) -> Option<&mut Account> {
        self.accounts.get_mut(&id)
    }

    pub(super) fn speaker(&self, id: AccountId) -> Option<Speaker> {
        self.get(id).map(|account| account.speaker.clone())
    }

    /// Adds an account. `random` makes the user part of its Contact one that nobody can guess.
    pub(super) fn add(&mut self, id: AccountId, profile: Profile, random: Option<&str>) {
        let wanted = user_of(&profile.identity);
        let user = match random {
            Some(random) => format!("{wanted}-{random}"),
            None => wanted.clone(),
        };
        if random.is_some() {
            self.contacts.insert(user.clone(), id);
        }
        let speaker = Speaker {
            account: Some(id),
            profile: Arc::new(profile),
            user: user.into(),
        };
        let account = Account {
            speaker,
            service_route: Vec::new(),
            public: None,
            contact: None,
        };
        self.accounts.insert(id, account);
        self.list(id, wanted);
    }

    /// Gives an account another profile. The answers of the former registrar are forgotten, unless
    /// the new profile has the same. Returns whether they were forgotten.
    pub(super) fn change(&mut self, id: AccountId, profile: Profile) -> bool {
        let Some(account) = self.accounts.get_mut(&id) else {
            return false;
        };
        let is_other = !is_same_server(&account.speaker.profile, &profile);
        if is_other {
            account.service_route.clear();
            self.registrars.remove(id);
            self.entrances.remove(id);
        }
        let wanted = user_of(&profile.identity);
        let old = std::mem::replace(&mut account.speaker.profile, Arc::new(profile));
        self.unlist(id, &user_of(&old.identity));
        self.list(id, wanted);
        is_other
    }

    pub(super) fn remove(&mut self, id: AccountId) {
        let Some(account) = self.accounts.remove(&id) else {
            return;
        };
        self.registrars.remove(id);
        self.entrances.remove(id);
        self.unlist(id, &user_of(&account.speaker.profile.identity));
        self.contacts.remove(&*account.speaker.user);
    }

    /// Notes where a registrar has taken the registration of an account.
    pub(super) fn set_registered(&mut self, id: AccountId, registered: Registered) {
        let account = self.accounts.get(&id);
        match account.is_some_and(|account| account.speaker.profile.entrance) {
            true => self.entrances.set(id, registered),
            false => self.registrars.set(id, registered),
        }
    }

    /// Forgets the registration of an account without an entrance. An entrance is configured: its
    /// calls are taken from there all the same.
    pub(super) fn set_unregistered(&mut self, id: AccountId) {
        self.registrars.remove(id);
    }

    /// Where an account is registered.
    pub(super) fn registration_of(&self, id: AccountId) -> Option<&Registered> {
        self.registrars.get(id).or_else(|| self.entrances.get(id))
    }

    /// The number of accounts without an entrance whose registrar has this address.
    pub(super) fn registered_at(&self, source: IpAddr) -> usize {
        self.registrars.at(source).len()
    }

    /// Whether accounts with an entrance are registered at this address, or beside it.
    pub(super) fn has_entrance(&self, source: IpAddr) -> bool {
        self.entrances.has(source)
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
    identity.subscriber().unwrap_or_default().into_owned()
}
