//! The account that a request outside of dialogs is for. The rules are a table in
//! docs/sip.md#who-is-called.

use std::net::IpAddr;

use super::{Accounts, Registered};
use crate::agent::AccountId;
use crate::agent::guard::covers;
use crate::flow::Flow;
use crate::message::{Request, SipUri};

/// The length of the random part of a Contact's user part.
pub(in crate::agent) const RANDOM: usize = 16;

/// The receiver of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) enum Callee {
    /// An account.
    Account(AccountId),
    /// The owner of the entrance that it came by.
    Entrance {
        /// The accounts with an entrance that are registered at the source.
        all: Vec<AccountId>,
        /// The one that the request names, or the only one.
        named: Option<AccountId>,
    },
    /// An account that is gone.
    Gone,
    /// Nobody.
    Nobody,
}

/// The names in a request.
struct Called<'a> {
    uri: &'a SipUri,
    /// The user part as written, which may be that of a Contact.
    written: &'a str,
    user: &'a str,
    to: Option<&'a SipUri>,
    to_user: &'a str,
}

impl Called<'_> {
    /// Returns the names in their order of precedence.
    fn users(&self) -> [&str; 2] {
        [self.user, self.to_user]
    }
}

/// The accounts with a name.
enum Named {
    One(AccountId),
    Several,
    Nobody,
}

impl Accounts {
    /// Finds the receiver of a request outside of dialogs. Requests by an entrance are for its
    /// owner; accounts without a registration can be called from the networks `direct`.
    /// `direct`.
    pub(in crate::agent) fn callee(
        &self,
        request: &Request,
        flow: &Flow,
        is_entrance: bool,
        direct: &[(IpAddr, u8)],
    ) -> Callee {
        let Some(uri) = request.uri.as_sip() else {
            return Callee::Nobody;
        };
        let written = uri.user_name().unwrap_or_default();
        // Only the registrar and those who were called know the random part of a Contact.
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
        if let Some(entrance) = self.entrance(&called, source, is_entrance) {
            return entrance;
        }
        let found = match self.registrars.has(source) {
            true => self.registered_as(&called, source, flow),
            false => self.called_directly(&called, source, direct),
        };
        found.map_or(Callee::Nobody, Callee::Account)
    }

    fn entrance(&self, called: &Called<'_>, source: IpAddr, is_entrance: bool) -> Option<Callee> {
        if !is_entrance && !self.entrances.has(source) {
            return None;
        }
        // It was the Contact of a former account at the same exchange.
        if is_contact(called.written) {
            return Some(Callee::Gone);
        }
        // Their registrars are configured, so all addresses of their names count.
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

    /// Finds the account whose registrar at `source` has sent the request.
    fn registered_as(&self, called: &Called<'_>, source: IpAddr, flow: &Flow) -> Option<AccountId> {
        let is = |id: AccountId, what: &dyn Fn(&Registered) -> bool| {
            self.registrars.get(id).is_some_and(what)
        };
        let is_way = |it: &Registered| it.is_way_of(flow);
        let is_at = |it: &Registered| it.address() == source;
        let is_beside = |it: &Registered| it.siblings().any(|address| address == source);
        // The owner of a domain may give it any address, so the domain has to be called, too.
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
            // A former Contact: its owner is not called any more.
            if is_contact(called.written) {
                return None;
            }
        }
        // A registrar may call a number that only the registrar can assign.
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

    /// Finds the account without a registration that is called by name from an allowed network.
    fn called_directly(
        &self,
        called: &Called<'_>,
        source: IpAddr,
        direct: &[(IpAddr, u8)],
    ) -> Option<AccountId> {
        let mut networks = direct.iter();
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

    /// Finds the account, among those that `is_there` accepts, whose identity has this user part.
    /// To may select one of several.
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

/// Whether a user part looks like that of a Contact: a name, a hyphen and the random part.
fn is_contact(user: &str) -> bool {
    user.rsplit_once('-').is_some_and(|(_, random)| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}
