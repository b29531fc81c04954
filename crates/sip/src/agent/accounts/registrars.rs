//! The registrations of accounts by the addresses of their registrars.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::agent::AccountId;
use crate::flow::{Flow, Route, Transport};
use crate::message::Host;

/// A registration at a registrar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) struct Registered {
    /// The route to the registrar.
    pub(in crate::agent) route: Route,
    /// All addresses of the name of the registrar, including its own.
    pub(in crate::agent) addresses: Vec<IpAddr>,
}

impl Registered {
    /// Whether `flow` has the route of the registration.
    pub(super) fn is_way_of(&self, flow: &Flow) -> bool {
        let remote = self.route.remote();
        self.route.transport() == flow.transport
            && remote.port() == flow.remote.port()
            && remote.ip().to_canonical() == flow.remote.ip().to_canonical()
    }

    /// Whether a connection to `remote` carries the registration.
    pub(in crate::agent) fn is_over(
        &self,
        transport: Transport,
        remote: std::net::SocketAddr,
    ) -> bool {
        self.route.transport() == transport && self.route.remote() == remote
    }

    /// Returns the name or address of the registrar, or `None` if only its flow is known.
    pub(super) fn name(&self) -> Option<&Host> {
        match &self.route {
            Route::Target(target) => Some(&target.host),
            Route::Flow(_) => None,
        }
    }

    /// Returns the address of the registrar.
    pub(super) fn address(&self) -> IpAddr {
        self.route.remote().ip().to_canonical()
    }

    /// Returns the other addresses of the registrar's name.
    pub(super) fn siblings(&self) -> impl Iterator<Item = IpAddr> {
        let own = self.address();
        let all = self.addresses.iter().map(IpAddr::to_canonical);
        all.filter(move |address| *address != own)
    }
}

/// The current registrations of some accounts, by address. Bounded by the number of accounts and by
/// [`crate::locate::MAX_TARGETS`].
#[derive(Debug, Default)]
pub(super) struct Registrars {
    of: HashMap<AccountId, Registered>,
    at: HashMap<IpAddr, Vec<AccountId>>,
    beside: HashMap<IpAddr, Vec<AccountId>>,
}

impl Registrars {
    /// Replaces the registration of an account.
    pub(super) fn set(&mut self, id: AccountId, registered: Registered) {
        if self.of.get(&id) == Some(&registered) {
            return;
        }
        self.remove(id);
        self.at.entry(registered.address()).or_default().push(id);
        for address in registered.siblings() {
            let ids = self.beside.entry(address).or_default();
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        self.of.insert(id, registered);
    }

    /// Forgets the registration of an account.
    pub(super) fn remove(&mut self, id: AccountId) {
        let Some(registered) = self.of.remove(&id) else {
            return;
        };
        forget(&mut self.at, registered.address(), id);
        for address in registered.siblings() {
            forget(&mut self.beside, address, id);
        }
    }

    /// Returns the registration of an account.
    pub(super) fn get(&self, id: AccountId) -> Option<&Registered> {
        self.of.get(&id)
    }

    /// Whether a registrar, or its name, has this address.
    pub(super) fn has(&self, source: IpAddr) -> bool {
        !self.at(source).is_empty() || !self.beside(source).is_empty()
    }

    /// Returns the accounts whose registrar has this address.
    pub(super) fn at(&self, source: IpAddr) -> &[AccountId] {
        of(&self.at, source)
    }

    /// Returns the accounts whose registrar has another address, but a name with this one.
    pub(super) fn beside(&self, source: IpAddr) -> &[AccountId] {
        of(&self.beside, source)
    }
}

fn of(table: &HashMap<IpAddr, Vec<AccountId>>, source: IpAddr) -> &[AccountId] {
    let ids = table.get(&source.to_canonical());
    ids.map(Vec::as_slice).unwrap_or_default()
}

fn forget(table: &mut HashMap<IpAddr, Vec<AccountId>>, address: IpAddr, id: AccountId) {
    if let Some(ids) = table.get_mut(&address) {
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            table.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::flow::Target;

    fn registered(remote: &str, others: &[&str]) -> Registered {
        Registered {
            route: Route::Target(Target {
                transport: Transport::Udp,
                remote: remote.parse().unwrap(),
                host: Host::Name("provider.test".to_owned()),
            }),
            addresses: others.iter().map(|it| it.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn an_account_that_registers_elsewhere_leaves_nothing_behind() {
        let mut registrars = Registrars::default();
        let (one, two) = (AccountId::new(1), AccountId::new(2));
        let (first, second) = (
            "192.0.2.1".parse().unwrap(),
            "::ffff:192.0.2.2".parse().unwrap(),
        );
        registrars.set(
            one,
            registered("192.0.2.1:5060", &["192.0.2.1", "192.0.2.2", "192.0.2.2"]),
        );
        registrars.set(two, registered("192.0.2.2:5060", &[]));
        assert_eq!(
            (registrars.at(first), registrars.beside(first)),
            (&[one][..], &[][..])
        );
        assert_eq!(
            (registrars.at(second), registrars.beside(second)),
            (&[two][..], &[one][..])
        );
        registrars.set(one, registered("192.0.2.2:5060", &["192.0.2.2"]));
        assert!(registrars.at(first).is_empty() && registrars.beside(second).is_empty());
        registrars.remove(one);
        registrars.remove(two);
        assert!(
            registrars.at.is_empty() && registrars.beside.is_empty() && registrars.of.is_empty()
        );
    }
}
