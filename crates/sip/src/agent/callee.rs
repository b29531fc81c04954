//! Whose a request outside of dialogs is. The rules are a table in docs/sip.md#who-is-called.

use std::net::IpAddr;

use super::guard::covers;
use super::registrars::Registered;
use super::{AccountId, Agent};
use crate::flow::Flow;
use crate::message::{Request, SipUri};

/// The length of the random part of a Contact's user part.
pub(super) const RANDOM: usize = 16;

/// Whose a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee {
    /// An account's.
    Account(AccountId),
    /// That of whoever has the entrance that it came by.
    Entrance {
        /// The accounts with an entrance that are registered at its source.
        all: Vec<AccountId>,
        /// That of them which it names, or the only one.
        named: Option<AccountId>,
    },
    /// That of an account which is there no longer.
    Gone,
    /// Nobody's.
    Nobody,
}

/// Whom a request names.
struct Called<'a> {
    uri: &'a SipUri,
    /// The user part as it is written: that of a Contact is no number.
    written: &'a str,
    user: &'a str,
    to: Option<&'a SipUri>,
    to_user: &'a str,
}

impl Called<'_> {
    /// The names in the order in which they count.
    fn users(&self) -> [&str; 2] {
        [self.user, self.to_user]
    }
}

/// Which accounts have a name.
enum Named {
    One(AccountId),
    Several,
    Nobody,
}

impl Agent {
    /// Decides whose a request outside of dialogs is.
    pub(super) fn callee(&self, request: &Request, flow: &Flow) -> Callee {
        let Some(uri) = request.uri.as_sip() else {
            return Callee::Nobody;
        };
        let written = uri.user_name().unwrap_or_default();
        // Only its own registrar, and whom it has called, know the random part of a Contact.
        if let Some(id) = self.contacts.get(&*written) {
            return Callee::Account(*id);
        }
        let user = uri.subscriber().unwrap_or_default();
        let to = request.headers.to().ok().flatten();
        let to = to.as_ref().and_then(|to| to.uri.as_sip());
        let to_user = to.and_then(SipUri::subscriber).unwrap_or_default();
        let called = Called {
            uri,
            written: &written,
            user: &user,
            to,
            to_user: &to_user,
        };
        let source = flow.remote.ip().to_canonical();
        if let Some(entrance) = self.entrance(&called, source) {
            return entrance;
        }
        let found = match self.registrars.has(source) {
            true => self.registered_as(&called, source, flow),
            false => self.called_directly(&called, source),
        };
        found.map_or(Callee::Nobody, Callee::Account)
    }

    /// The account that a request outside of dialogs is for.
    pub(super) fn account_for(&self, request: &Request, flow: &Flow) -> Option<AccountId> {
        match self.callee(request, flow) {
            Callee::Account(id) => Some(id),
            Callee::Entrance { .. } | Callee::Gone | Callee::Nobody => None,
        }
    }

    /// Whether `source` may send what it likes: those with an entrance.
    pub(super) fn is_trusted(&self, source: IpAddr) -> bool {
        self.guard.has_entrance(source) || self.entrances.has(source)
    }

    /// Whether `source` is trusted, or a registrar of accounts.
    pub(super) fn is_known(&self, source: IpAddr) -> bool {
        self.is_trusted(source) || !self.registrars.at(source).is_empty()
    }

    /// Where an account is registered.
    pub(super) fn registration_of(&self, id: AccountId) -> Option<&Registered> {
        self.registrars.get(id).or_else(|| self.entrances.get(id))
    }

    fn entrance(&self, called: &Called<'_>, source: IpAddr) -> Option<Callee> {
        let by_network = self.options.strangers && self.guard.has_entrance(source);
        if !by_network && !self.entrances.has(source) {
            return None;
        }
        // It was that of a page once, which is at the same exchange.
        if is_contact(called.written) {
            return Some(Callee::Gone);
        }
        // Their registrars are configured, so all addresses of their names are believed.
        let at = self.entrances.at(source).iter();
        let all: Vec<AccountId> = at.chain(self.entrances.beside(source)).copied().collect();
        let mut named = match all.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        for user in called.users() {
            if let Named::One(id) = self.named(called, user, |id| all.contains(&id)) {
                named = Some(id);
                break;
            }
        }
        Some(Callee::Entrance { all, named })
    }

    /// The account whose registrar, which is at `source`, has sent the request.
    fn registered_as(&self, called: &Called<'_>, source: IpAddr, flow: &Flow) -> Option<AccountId> {
        let is = |id: AccountId, what: &dyn Fn(&Registered) -> bool| {
            self.registrars.get(id).is_some_and(what)
        };
        let is_way = |it: &Registered| it.is_way_of(flow);
        let is_at = |it: &Registered| it.address() == source;
        let is_beside = |it: &Registered| it.siblings().any(|address| address == source);
        // Whoever owns a domain may give it any address: it has to be the domain that is called, too.
        let is_of_domain = |it: &Registered| {
            let is_called = it.name().is_some_and(|name| {
                *name == called.uri.host || called.to.is_some_and(|to| *name == to.host)
            });
            is_called && is_beside(it)
        };
        for user in called.users() {
            for class in [
                &is_way as &dyn Fn(&Registered) -> bool,
                &is_at,
                &is_of_domain,
            ] {
                match self.named(called, user, |id| is(id, class)) {
                    Named::One(id) => return Some(id),
                    Named::Several => return None,
                    Named::Nobody => {}
                }
            }
            // A Contact of before: whoever had it is not called any more.
            if is_contact(called.written) {
                return None;
            }
        }
        // A registrar may ask for a number of which it alone knows whose it is.
        let is_other = called.users().iter().any(|user| {
            let named = self.named(called, user, |id| is(id, &is_beside));
            !matches!(named, Named::Nobody)
        });
        let at = self.registrars.at(source);
        let mut way = at.iter().filter(|id| is(**id, &is_way));
        match (at, way.next(), way.next()) {
            _ if is_other => None,
            ([only], ..) | (_, Some(only), None) => Some(*only),
            _ => None,
        }
    }

    /// The account without a registration that is called by its name, from where that may be done.
    fn called_directly(&self, called: &Called<'_>, source: IpAddr) -> Option<AccountId> {
        let mut networks = self.options.direct.iter();
        if is_contact(called.written)
            || !networks.any(|&(network, bits)| covers(network, bits, source))
        {
            return None;
        }
        let mut ids = self.users.get(called.user)?.iter().copied();
        ids.find(|id| {
            let account = self.accounts.get(id);
            let profile = account.map(|account| &account.speaker.profile);
            profile.is_some_and(|it| it.registration.is_none() && !it.entrance)
        })
    }

    /// The accounts of those that `is_there` whose identity has this user part. Of several, To may say which one is meant.
    fn named(
        &self,
        called: &Called<'_>,
        user: &str,
        is_there: impl Fn(AccountId) -> bool,
    ) -> Named {
        let ids = self.users.get(user).map(Vec::as_slice).unwrap_or_default();
        let found = || ids.iter().copied().filter(|id| is_there(*id));
        let is_meant = |id: &AccountId| {
            let account = self.accounts.get(id);
            let own = account.and_then(|account| account.speaker.profile.identity.as_sip());
            own.zip(called.to)
                .is_some_and(|(own, to)| own.host == to.host && own.subscriber() == to.subscriber())
        };
        let (mut all, mut meant) = (found(), found().filter(is_meant));
        match (all.next(), all.next(), meant.next(), meant.next()) {
            (None, ..) => Named::Nobody,
            (Some(one), None, ..) | (Some(_), Some(_), Some(one), None) => Named::One(one),
            _ => Named::Several,
        }
    }
}

/// Whether a user part looks as that of a Contact of ours: a name, a hyphen and the random part.
fn is_contact(user: &str) -> bool {
    user.rsplit_once('-').is_some_and(|(_, random)| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}
