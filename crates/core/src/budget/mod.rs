//! Budgets of memory or connections that clients hold. Each client address has a part of the whole.
//!
//! Code that keeps something for a client first takes a [`Share`] from the client's [`Purse`], and
//! drops the share together with the thing, which gives the amount back. Purses are nested: a
//! connection or a session pays from its address, and an address from the whole. Only looking up
//! the purse of an address takes a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portunus_log_gate::LogGate;

use crate::{ClientAddress, Network};

/// A budget for all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The purse of all clients.
    whole: Purse,
    /// The purse of all clients but the trusted. The rest of the whole is the reserve.
    strangers: Purse,
    limits: Mutex<BudgetLimits>,
    /// The limit of each address.
    address: Arc<AtomicUsize>,
    shared_addresses: Arc<[Network]>,
    purses: Mutex<HashMap<ClientAddress, Weak<Level>>>,
    tally: Arc<Tally>,
}

/// The limits of a budget, in bytes or in connections.
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

/// The configuration keys in the log of refusals.
#[derive(Debug, Clone, Copy)]
pub struct BudgetKeys {
    /// The key of the whole.
    pub whole: &'static str,
    /// The key of an address's share.
    pub address: &'static str,
}

/// The state of a budget.
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

/// The error of a used-up budget. The text is for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// The clients at this address hold their share.
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

/// A purse of an address, a connection or a session. Cheap to clone. The default purse has no
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
    /// The payment to the parent for the purse itself.
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

    /// Returns how much is held, and how often something was refused.
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

/// Whether many clients share `address`.
fn is_shared(address: ClientAddress, networks: &[Network]) -> bool {
    let first = match address {
        ClientAddress::Unix | ClientAddress::Broker(_) => return true,
        ClientAddress::Ipv4(address) => address.into(),
        ClientAddress::Ipv6([a, b, c, d]) => std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(),
    };
    let is_in = |network: &Network| {
        // Any machine of an IPv6 network stands for the network.
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
    /// `prepaid` of the price covers the first amounts taken from the new purse, so that some can
    /// be taken even when nothing else is left.
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
        if let Some(level) = self.level.as_ref().filter(|_| amount > 0) {
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
    /// Takes `amount`. Pays the parent first, so that the parent never holds less than it is due
    /// while other threads take and give back.
    fn pay(&self, amount: usize) -> Result<(), OverBudget> {
        let limit = self.limit.as_ref();
        let limit = limit.map_or(usize::MAX, |limit| limit.load(Ordering::Relaxed));
        let mut used = self.used.load(Ordering::Relaxed);
        let mut paid = 0;
        loop {
            let sum = used.checked_add(amount).filter(|sum| *sum <= limit);
            let Some(sum) = sum else {
                self.parent.give_back(paid);
                return Err(self.tally.refused(self.address));
            };
            let due = self.due(sum) - self.due(used);
            if let Some(more) = due.checked_sub(paid).filter(|more| *more > 0) {
                let more = self.parent.pay(more);
                more.inspect_err(|_| self.parent.give_back(paid))?;
                paid = due;
            }
            let changed =
                self.used
                    .compare_exchange_weak(used, sum, Ordering::Relaxed, Ordering::Relaxed);
            match changed {
                Ok(_) => {
                    self.parent.give_back(paid.saturating_sub(due));
                    return Ok(());
                }
                Err(now) => used = now,
            }
        }
    }

    fn give_back(&self, amount: usize) {
        let now = self.used.fetch_sub(amount, Ordering::Relaxed);
        let freed = self.due(now) - self.due(now.saturating_sub(amount));
        self.parent.give_back(freed);
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
mod tests;
