//! Budgets of what clients hold, in bytes or in connections. Each client address has a part of the
//! whole.
//!
//! Code that keeps something for a client first takes a [`Share`] from the client's [`Purse`], and
//! drops the share together with the thing, which gives the amount back. Purses are nested: a
//! connection or a session pays from its address, and an address from the whole. Only looking up
//! the purse of an address takes a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{ClientAddress, LogGate, Network};

/// A budget for all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// All clients pay from it.
    whole: Purse,
    /// All clients but the trusted pay from it. The rest of the whole is the reserve.
    strangers: Purse,
    limits: Mutex<BudgetLimits>,
    /// The limit of each address.
    address: Arc<AtomicUsize>,
    shared_addresses: Arc<[Network]>,
    purses: Mutex<HashMap<ClientAddress, Weak<Level>>>,
    tally: Arc<Tally>,
}

/// How much a budget has, in bytes or in connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// For all clients together.
    pub whole: usize,
    /// For each client address.
    pub address: usize,
    /// The part of the whole that only the trusted may use.
    pub reserve: usize,
}

impl BudgetLimits {
    fn for_strangers(&self) -> usize {
        self.whole.saturating_sub(self.reserve)
    }
}

/// The keys of the configuration that a refusal is explained with.
#[derive(Debug, Clone, Copy)]
pub struct BudgetKeys {
    /// The key of the whole.
    pub whole: &'static str,
    /// The key of an address's share.
    pub address: &'static str,
}

/// What is counted of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetTotals {
    /// How much is held now.
    pub used: u64,
    /// How much all clients may hold.
    pub limit: u64,
    /// How often an address's share was used up, since the start.
    pub refused_to_address: u64,
    /// How often the whole was used up, since the start.
    pub refused_to_all: u64,
}

/// The budget of memory is used up. The text is for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// Clients at this address hold their share.
    #[error(
        "The clients at your address hold all the memory that one address may have here: \
         read what you are sent, close what you do not use, or try again later"
    )]
    Address(ClientAddress),
    /// All clients together hold the whole.
    #[error("Clients hold all the memory that the server has for them: try again later")]
    All,
}

/// Refusals: counted, and logged at most once a second.
#[derive(Debug)]
struct Tally {
    keys: BudgetKeys,
    address: AtomicU64,
    all: AtomicU64,
    gate: LogGate,
}

/// What an address, a connection or a session pays from. Cheap to clone. The default purse has no
/// limit.
#[derive(Debug, Clone, Default)]
pub struct Purse {
    level: Option<Arc<Level>>,
}

#[derive(Debug)]
struct Level {
    /// The address whose purse it is.
    address: Option<ClientAddress>,
    /// `None` means no limit of its own.
    limit: Option<Arc<AtomicUsize>>,
    /// The amount that the price covers, so that taking it costs the parent nothing more.
    prepaid: usize,
    used: AtomicUsize,
    parent: Purse,
    /// What the purse itself costs the parent.
    _price: Share,
    tally: Arc<Tally>,
}

/// An amount taken from a purse, which gets it back on drop. The default share is empty.
#[derive(Debug, Default)]
pub struct Share {
    purse: Purse,
    amount: usize,
}

impl Budget {
    /// Makes a budget of `limits`. Many clients are behind addresses in `shared_addresses`, Unix
    /// sockets and brokers, so these have no limit of their own.
    pub fn new(limits: BudgetLimits, shared_addresses: &[Network], keys: BudgetKeys) -> Self {
        let tally = Arc::new(Tally {
            keys,
            address: AtomicU64::new(0),
            all: AtomicU64::new(0),
            gate: LogGate::default(),
        });
        let level = |limit, parent| Level {
            address: None,
            limit: Some(Arc::new(AtomicUsize::new(limit))),
            prepaid: 0,
            used: AtomicUsize::new(0),
            parent,
            _price: Share::default(),
            tally: tally.clone(),
        };
        let whole = Purse::from(level(limits.whole, Purse::default()));
        let strangers = Purse::from(level(limits.for_strangers(), whole.clone()));
        Budget {
            inner: Arc::new(Inner {
                whole,
                strangers,
                limits: Mutex::new(limits),
                address: Arc::new(AtomicUsize::new(limits.address)),
                shared_addresses: shared_addresses.into(),
                purses: Mutex::default(),
                tally,
            }),
        }
    }

    /// Makes another budget with the same shared addresses.
    #[must_use]
    pub fn with_limits(&self, limits: BudgetLimits, keys: BudgetKeys) -> Self {
        Budget::new(limits, &self.inner.shared_addresses, keys)
    }

    /// Returns the purse of the clients at `address`.
    pub fn purse(&self, address: ClientAddress) -> Purse {
        let inner = &self.inner;
        if is_shared(address, &inner.shared_addresses) {
            return inner.strangers.clone();
        }
        let mut purses = inner.purses();
        if let Some(level) = purses.get(&address).and_then(Weak::upgrade) {
            return Purse { level: Some(level) };
        }
        let level = Arc::new(Level {
            address: Some(address),
            limit: Some(inner.address.clone()),
            prepaid: 0,
            used: AtomicUsize::new(0),
            parent: inner.strangers.clone(),
            _price: Share::default(),
            tally: inner.tally.clone(),
        });
        purses.insert(address, Arc::downgrade(&level));
        Purse { level: Some(level) }
    }

    /// Returns the purse of trusted clients, which only the whole limits.
    pub fn trusted(&self) -> Purse {
        self.inner.whole.clone()
    }

    /// Returns how much the budget has.
    pub fn limits(&self) -> BudgetLimits {
        let limits = self.inner.limits.lock();
        *limits.unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how much the budget has. Clients keep what they hold, even if it is more.
    pub fn set_limits(&self, limits: BudgetLimits) {
        let inner = &self.inner;
        let known = inner.limits.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        *known = limits;
        inner.address.store(limits.address, Ordering::Relaxed);
        inner.whole.set_limit(limits.whole);
        inner.strangers.set_limit(limits.for_strangers());
    }

    /// Whether hardly anything is left for clients that are not trusted: 1 % of the whole at most.
    pub(crate) fn is_nearly_used_up(&self) -> bool {
        let limits = self.limits();
        let left = limits
            .for_strangers()
            .saturating_sub(self.inner.strangers.used());
        left <= limits.whole / 100
    }

    /// Returns what is held, and how often something was refused.
    pub fn totals(&self) -> BudgetTotals {
        let Inner { whole, tally, .. } = &*self.inner;
        BudgetTotals {
            used: whole.used() as u64,
            limit: self.limits().whole as u64,
            refused_to_address: tally.address.load(Ordering::Relaxed),
            refused_to_all: tally.all.load(Ordering::Relaxed),
        }
    }

    /// Forgets the addresses whose clients hold nothing.
    pub(crate) fn forget(&self) {
        let mut purses = self.inner.purses();
        purses.retain(|_, level| level.strong_count() > 0);
    }
}

impl Inner {
    fn purses(&self) -> MutexGuard<'_, HashMap<ClientAddress, Weak<Level>>> {
        self.purses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether many clients are behind `address`.
fn is_shared(address: ClientAddress, networks: &[Network]) -> bool {
    let first = match address {
        ClientAddress::Unix | ClientAddress::Broker(_) => return true,
        ClientAddress::Ipv4(address) => address.into(),
        ClientAddress::Ipv6([a, b, c, d]) => std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(),
    };
    let is_in = |network: &Network| {
        // One machine of an IPv6 network stands for the network.
        network.contains(first) || ClientAddress::from(network.parts().0) == address
    };
    networks.iter().any(is_in)
}

impl Purse {
    /// Takes `amount`.
    pub fn take(&self, amount: usize) -> Result<Share, OverBudget> {
        self.pay(amount)?;
        Ok(Share {
            purse: self.clone(),
            amount,
        })
    }

    /// Returns an empty share, which can grow.
    pub fn empty_share(&self) -> Share {
        Share {
            purse: self.clone(),
            amount: 0,
        }
    }

    /// Opens a purse for a connection or a session, which costs `price` as long as it exists.
    /// `prepaid` of the price pays for what is taken from the new purse, so that a little can be
    /// taken even when nothing else is left.
    pub fn open(&self, price: usize, prepaid: usize) -> Result<Purse, OverBudget> {
        let Some(level) = &self.level else {
            return Ok(Purse::default());
        };
        Ok(Purse::from(Level {
            address: None,
            limit: None,
            prepaid: prepaid.min(price),
            used: AtomicUsize::new(0),
            parent: self.clone(),
            _price: self.take(price)?,
            tally: level.tally.clone(),
        }))
    }

    /// Returns the amount that was taken and not given back.
    pub fn used(&self) -> usize {
        let level = self.level.as_ref();
        level.map_or(0, |level| level.used.load(Ordering::Relaxed))
    }

    fn set_limit(&self, limit: usize) {
        let level = self.level.as_ref();
        if let Some(known) = level.and_then(|level| level.limit.as_ref()) {
            known.store(limit, Ordering::Relaxed);
        }
    }

    fn pay(&self, amount: usize) -> Result<(), OverBudget> {
        match &self.level {
            Some(level) => level.pay(amount),
            None => Ok(()),
        }
    }

    fn give_back(&self, amount: usize) {
        if let Some(level) = &self.level {
            level.give_back(amount);
        }
    }
}

impl From<Level> for Purse {
    fn from(level: Level) -> Self {
        Purse {
            level: Some(Arc::new(level)),
        }
    }
}

impl Level {
    fn pay(&self, amount: usize) -> Result<(), OverBudget> {
        let limit = self.limit.as_ref();
        let limit = limit.map_or(usize::MAX, |limit| limit.load(Ordering::Relaxed));
        let fits = |used: usize| used.checked_add(amount).filter(|sum| *sum <= limit);
        let before = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| self.tally.refused(self.address))?;
        let due = self.due(before.saturating_add(amount)) - self.due(before);
        if due == 0 {
            return Ok(());
        }
        self.parent.pay(due).inspect_err(|_| {
            // A payment that came after this one cost the parent more than it had to, because
            // this one had used the prepaid amount.
            let now = self.used.fetch_sub(amount, Ordering::Relaxed);
            let freed = self.due(now) - self.due(now.saturating_sub(amount));
            self.parent.give_back(freed.saturating_sub(due));
        })
    }

    fn give_back(&self, amount: usize) {
        let now = self.used.fetch_sub(amount, Ordering::Relaxed);
        let freed = self.due(now) - self.due(now.saturating_sub(amount));
        if freed > 0 {
            self.parent.give_back(freed);
        }
    }

    /// Returns the part of `used` that the parent pays.
    fn due(&self, used: usize) -> usize {
        used.saturating_sub(self.prepaid)
    }
}

impl Tally {
    fn refused(&self, address: Option<ClientAddress>) -> OverBudget {
        let count = match address {
            Some(_) => &self.address,
            None => &self.all,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let Some(suppressed) = self.gate.open() else {
            return address.map_or(OverBudget::All, OverBudget::Address);
        };
        let BudgetKeys { whole, address: of } = self.keys;
        match address {
            Some(address) => {
                tracing::warn!(
                    %address,
                    suppressed,
                    "the clients at one address hold all that they may: see {of}, \
                     and server.shared_addresses for proxies"
                );
                OverBudget::Address(address)
            }
            None => {
                tracing::warn!(suppressed, "clients hold all that they may: see {whole}");
                OverBudget::All
            }
        }
    }
}

impl Share {
    /// Takes `amount` more.
    pub fn grow(&mut self, amount: usize) -> Result<(), OverBudget> {
        self.purse.pay(amount)?;
        self.amount = self.amount.saturating_add(amount);
        Ok(())
    }

    /// Takes more or gives back, so that the share is `amount`.
    pub fn resize(&mut self, amount: usize) -> Result<(), OverBudget> {
        if let Some(more) = amount.checked_sub(self.amount) {
            return self.grow(more);
        }
        self.purse.give_back(self.amount.saturating_sub(amount));
        self.amount = amount;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.purse.give_back(self.amount);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::IpAddr;
    use std::thread;

    use super::*;

    const KEYS: BudgetKeys = BudgetKeys {
        whole: "whole",
        address: "address",
    };

    fn budget(whole: usize, address: usize, reserve: usize) -> Budget {
        let limits = BudgetLimits {
            whole,
            address,
            reserve,
        };
        let shared = ["192.0.2.8/30", "2001:db8:5::7", "127.0.0.0/8", "::1"]
            .map(|network| network.parse().unwrap());
        Budget::new(limits, &shared, KEYS)
    }

    fn at(address: &str) -> ClientAddress {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn limits_that_change_hold_for_those_who_are_there() {
        let budget = budget(1_000, 100, 0);
        let (one, other) = (
            budget.purse(at("198.51.100.1")),
            budget.purse(at("198.51.100.2")),
        );
        let held = one.take(100).unwrap();
        assert!(one.take(1).is_err());
        let limits = |whole, address| BudgetLimits {
            whole,
            address,
            reserve: 0,
        };
        budget.set_limits(limits(1_000, 200));
        let more = one.take(100).unwrap();
        budget.set_limits(limits(150, 150));
        assert!(one.take(1).is_err() && other.take(1).is_err());
        assert_eq!(budget.totals().limit, 150);
        drop((held, more));
        assert!(other.take(150).is_ok());
    }

    #[test]
    fn a_budget_is_nearly_used_up_when_strangers_have_hardly_anything_left() {
        let budget = budget(1_000, 1_000, 100);
        let purse = budget.purse(at("198.51.100.1"));
        let held = purse.take(889).unwrap();
        assert!(!budget.is_nearly_used_up());
        let more = purse.take(1).unwrap();
        assert!(budget.is_nearly_used_up());
        drop((held, more));
        assert!(!budget.is_nearly_used_up());
    }

    #[test]
    fn an_address_has_its_share_and_others_have_theirs() {
        let budget = budget(100, 40, 0);
        let (one, other) = (at("198.51.100.1"), at("2001:db8:1:2::3"));
        let held = budget.purse(one).take(30).unwrap();
        let refused = budget.purse(one).take(11).unwrap_err();
        assert_eq!(refused, OverBudget::Address(one));
        let more = budget.purse(one).take(10).unwrap();
        let theirs = budget.purse(other).take(40).unwrap();
        // Machines of one IPv6 network are one client.
        let beside = at("2001:db8:1:2:ffff::");
        assert!(budget.purse(beside).take(1).is_err());
        let last = budget.purse(at("198.51.100.2")).take(20).unwrap();
        let refused = budget.purse(at("198.51.100.3")).take(1).unwrap_err();
        assert_eq!(refused, OverBudget::All);
        assert_eq!(
            budget.totals(),
            BudgetTotals {
                used: 100,
                limit: 100,
                refused_to_address: 2,
                refused_to_all: 1,
            }
        );
        drop((held, more, theirs, last));
        assert_eq!(budget.totals().used, 0);
        assert_eq!(budget.inner.purses().len(), 4);
        budget.forget();
        assert_eq!(budget.inner.purses().len(), 0);
    }

    #[test]
    fn only_the_whole_bounds_addresses_that_many_clients_share() {
        let proxies = [
            at("127.0.0.1"),
            at("127.4.5.6"),
            at("::1"),
            at("192.0.2.9"),
            at("2001:db8:5::7"),
            ClientAddress::Unix,
            ClientAddress::Broker("mqtt"),
        ];
        for address in proxies {
            let budget = budget(100, 10, 20);
            let held = budget.purse(address).take(80);
            assert!(held.is_ok(), "{address}");
            assert_eq!(budget.purse(address).take(1).err(), Some(OverBudget::All));
            // The reserve is for the trusted.
            let reserve = budget.trusted().take(20);
            assert!(reserve.is_ok());
            assert!(budget.trusted().take(1).is_err());
        }
        for address in ["192.0.2.12", "2001:db8:6::7", "::2:0:0:0:1"] {
            assert!(budget(100, 10, 0).purse(at(address)).take(11).is_err());
        }
    }

    #[test]
    fn a_connection_has_what_it_prepaid_even_when_nothing_is_left() {
        let budget = budget(100, 100, 0);
        let address = budget.purse(at("198.51.100.1"));
        let connection = address.open(30, 10).unwrap();
        let rest = address.take(70).unwrap();
        let mut little = connection.take(6).unwrap();
        assert!(connection.take(5).is_err());
        assert!(little.grow(5).is_err());
        little.grow(4).unwrap();
        drop(rest);
        little.resize(80).unwrap();
        assert_eq!(budget.totals().used, 100);
        little.resize(8).unwrap();
        assert_eq!(budget.totals().used, 30);
        // What it holds outlives its other owners.
        drop((connection, address));
        budget.forget();
        assert_eq!(budget.totals().used, 30);
        drop(little);
        assert_eq!(budget.totals().used, 0);
        assert!(budget.purse(at("198.51.100.1")).open(101, 0).is_err());
    }

    #[test]
    fn nothing_is_lost_or_won_when_many_take_at_once() {
        let budget = budget(1_000, 700, 100);
        let connection = budget.purse(at("198.51.100.1")).open(100, 60).unwrap();
        thread::scope(|scope| {
            for seed in 0..4_usize {
                let (budget, connection) = (&budget, &connection);
                scope.spawn(move || {
                    let mut shares = Vec::new();
                    for step in 0..20_000 {
                        let amount = (step * 7 + seed * 13) % 97;
                        let other = budget.purse(at("198.51.100.2"));
                        shares.extend(connection.take(amount));
                        shares.extend(other.take(amount));
                        assert!(budget.totals().used <= 1_000);
                        if step % 3 == seed % 3 {
                            shares.clear();
                        }
                    }
                });
            }
        });
        assert_eq!(budget.totals().used, 100);
        drop(connection);
        assert_eq!(budget.totals().used, 0);
    }

    #[test]
    fn a_purse_without_a_budget_has_no_bound() {
        let purse = Purse::default();
        let mut share = purse.take(usize::MAX).unwrap();
        share.resize(0).unwrap();
        assert_eq!(purse.open(1, 1).unwrap().used(), 0);
    }
}
