//! The directory: which phone has which page, account, call or request, and what is counted over
//! all phones.
//!
//! Its lock is held for lookups and entries only. It may be taken under the lock of a phone, and no
//! other lock is taken under it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::ClientAddress;
use portunus_sip::agent::{AccountId, CallId, RequestId, SubscriptionId};
use rand::Rng;
use tokio::time::Instant;

use crate::account::AccountSpec;
use crate::config::SipConfig;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::status::PageId;

/// The number of a phone. Two phones are locked in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PhoneId(pub(crate) u64);

/// A thing that one phone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Page(PageId),
    Account(AccountId),
    Call(CallId),
    /// A request of ours that waits for its response.
    Request(RequestId),
    Subscription(SubscriptionId),
}

/// The wish of a page to have an account.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) page: PageId,
    pub(crate) spec: &'a Arc<AccountSpec>,
    /// The account that it has.
    pub(crate) current: Option<AccountId>,
    /// No other page has that account, so it may get another specification.
    pub(crate) is_alone: bool,
    /// The id of a new account, and the phone that gets it.
    pub(crate) new: AccountId,
    pub(crate) home: PhoneId,
    /// The client, if its limits hold and were not checked yet.
    pub(crate) limited: Option<ClientAddress>,
    /// The limits were checked before.
    pub(crate) is_checked: bool,
}

/// The account that a page gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The page keeps its account, which gets the specification.
    Own(AccountId),
    /// The account is new.
    New(AccountId),
    /// The page shares this account of this phone.
    Shared(AccountId, PhoneId),
}

/// The directory of all phones.
pub(crate) struct Directory {
    max_accounts: usize,
    max_accounts_per_client: usize,
    max_calls: usize,
    entries: Mutex<Entries>,
}

struct Entries {
    owners: HashMap<Key, PhoneId>,
    /// Pages by the numbers that helpers name them by.
    masters: HashMap<u32, PageId>,
    accounts: HashMap<AccountId, Arc<AccountSpec>>,
    /// The accounts that pages may share, by their users.
    users: HashMap<String, Vec<AccountId>>,
    /// The Call-IDs of all calls. A call between two accounts is two calls with one Call-ID.
    calls: HashMap<CallId, String>,
    call_ids: HashMap<String, usize>,
    /// The clients of pages with an account, if limits hold for them.
    clients: HashMap<PageId, ClientAddress>,
    pages_of_clients: HashMap<ClientAddress, usize>,
    limits: Limits,
}

impl Directory {
    pub(crate) fn new(config: &SipConfig) -> Self {
        Directory {
            max_accounts: config.max_accounts,
            max_accounts_per_client: config.max_accounts_per_client,
            max_calls: config.max_calls,
            entries: Mutex::new(Entries {
                owners: HashMap::new(),
                masters: HashMap::new(),
                accounts: HashMap::new(),
                users: HashMap::new(),
                calls: HashMap::new(),
                call_ids: HashMap::new(),
                clients: HashMap::new(),
                pages_of_clients: HashMap::new(),
                limits: Limits::new(config),
            }),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the phone that has `key`.
    pub(crate) fn find(&self, key: Key) -> Option<PhoneId> {
        self.entries().owners.get(&key).copied()
    }

    pub(crate) fn enter(&self, key: Key, phone: PhoneId) {
        self.entries().owners.insert(key, phone);
    }

    /// Enters many keys at once.
    pub(crate) fn enter_all(&self, keys: &[Key], phone: PhoneId) {
        let mut entries = self.entries();
        for key in keys {
            entries.owners.insert(*key, phone);
        }
    }

    pub(crate) fn leave(&self, key: Key) {
        self.entries().owners.remove(&key);
    }

    /// Enters a page. Returns the number that helpers name it by.
    pub(crate) fn add_page(&self, page: PageId, phone: PhoneId) -> u32 {
        let mut entries = self.entries();
        entries.owners.insert(Key::Page(page), phone);
        loop {
            let number = rand::rng().random_range(1..=u32::MAX);
            if let Entry::Vacant(vacant) = entries.masters.entry(number) {
                vacant.insert(page);
                return number;
            }
        }
    }

    pub(crate) fn remove_page(&self, page: PageId, number: u32) {
        let mut entries = self.entries();
        entries.owners.remove(&Key::Page(page));
        entries.masters.remove(&number);
        entries.set_client(page, None);
    }

    /// Returns the page that helpers name by `number`.
    pub(crate) fn master(&self, number: u32) -> Option<PageId> {
        self.entries().masters.get(&number).copied()
    }

    /// Enters a call, unless the server has too many.
    pub(crate) fn add_call(&self, call: CallId, call_id: &str, phone: PhoneId) -> bool {
        let mut entries = self.entries();
        if is_reached(self.max_calls, entries.calls.len()) {
            return false;
        }
        entries.owners.insert(Key::Call(call), phone);
        if entries.calls.insert(call, call_id.to_owned()).is_none() {
            *entries.call_ids.entry(call_id.to_owned()).or_default() += 1;
        }
        true
    }

    pub(crate) fn remove_call(&self, call: CallId) {
        let mut entries = self.entries();
        entries.owners.remove(&Key::Call(call));
        if let Some(call_id) = entries.calls.remove(&call) {
            decrement(&mut entries.call_ids, call_id);
        }
    }

    /// Whether a call has this Call-ID.
    pub(crate) fn has_call_id(&self, call_id: &str) -> bool {
        self.entries().call_ids.contains_key(call_id)
    }

    /// Finds the account for a page, after the limits are checked: those of clients, and that of
    /// all accounts. A new account, and the new specification of an old one, are entered at once,
    /// so that of two pages with the same wish one shares the account of the other.
    pub(crate) fn claim(&self, claim: &Claim<'_>) -> Result<Claimed, Refusal> {
        let mut entries = self.entries();
        let shared = entries.shared_by(claim.spec);
        if !claim.is_checked {
            let is_new = shared.or(claim.current).is_none();
            if is_new && is_reached(self.max_accounts, entries.accounts.len()) {
                return Err(Refusal::TooMany("the server has too many accounts"));
            }
            if let Some(client) = claim.limited {
                let others = entries.pages_of(client, claim.page);
                if is_reached(self.max_accounts_per_client, others) {
                    return Err(Refusal::TooMany("too many accounts of your address"));
                }
                entries.limits.spend(client, Instant::now())?;
            }
            entries.set_client(claim.page, claim.limited);
        }
        let spec = Arc::clone(claim.spec);
        match (claim.current, shared) {
            (Some(current), Some(shared)) if shared == current => {
                entries.set_account(current, spec);
                Ok(Claimed::Own(current))
            }
            (_, Some(shared)) => {
                let phone = entries.owners.get(&Key::Account(shared)).copied();
                Ok(Claimed::Shared(shared, phone.unwrap_or(claim.home)))
            }
            (Some(current), None) if claim.is_alone => {
                entries.set_account(current, spec);
                Ok(Claimed::Own(current))
            }
            (_, None) => {
                let key = Key::Account(claim.new);
                entries.owners.insert(key, claim.home);
                entries.set_account(claim.new, spec);
                Ok(Claimed::New(claim.new))
            }
        }
    }

    /// No page may share an account any more.
    pub(crate) fn end_account(&self, account: AccountId) {
        self.entries().forbid_sharing(account);
    }

    pub(crate) fn remove_account(&self, account: AccountId) {
        let mut entries = self.entries();
        entries.owners.remove(&Key::Account(account));
        entries.forbid_sharing(account);
        entries.accounts.remove(&account);
    }

    /// Notes the client of a page with an account, or `None` if no limits hold for it.
    pub(crate) fn set_client(&self, page: PageId, client: Option<ClientAddress>) {
        self.entries().set_client(page, client);
    }

    /// Counts a request that begins something at a SIP server.
    pub(crate) fn spend(&self, client: ClientAddress, now: Instant) -> Result<(), Refusal> {
        self.entries().limits.spend(client, now)
    }

    /// Forgets clients without requests for a minute.
    pub(crate) fn forget(&self, now: Instant) {
        self.entries().limits.forget(now);
    }

    /// Returns the number of entries of all kinds.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let entries = self.entries();
        entries.owners.len()
            + entries.masters.len()
            + entries.accounts.len()
            + entries.users.len()
            + entries.calls.len()
            + entries.call_ids.len()
            + entries.clients.len()
            + entries.pages_of_clients.len()
    }
}

impl Entries {
    /// Returns the account that a page with this specification shares, if there is one.
    fn shared_by(&self, spec: &AccountSpec) -> Option<AccountId> {
        let accounts = self.users.get(&spec.user)?;
        let is_shared = |id: &&AccountId| {
            let known = self.accounts.get(*id);
            known.is_some_and(|known| known.is_shared_by(spec))
        };
        accounts.iter().find(is_shared).copied()
    }

    fn set_account(&mut self, account: AccountId, spec: Arc<AccountSpec>) {
        self.forbid_sharing(account);
        let of_user = self.users.entry(spec.user.clone()).or_default();
        of_user.push(account);
        self.accounts.insert(account, spec);
    }

    fn forbid_sharing(&mut self, account: AccountId) {
        let Some(spec) = self.accounts.get(&account) else {
            return;
        };
        if let Some(of_user) = self.users.get_mut(&spec.user) {
            of_user.retain(|known| *known != account);
            if of_user.is_empty() {
                self.users.remove(&spec.user);
            }
        }
    }

    /// Returns the number of a client's pages with an account, without `page`.
    fn pages_of(&self, client: ClientAddress, page: PageId) -> usize {
        let all = self.pages_of_clients.get(&client).copied();
        let is_one = self.clients.get(&page) == Some(&client);
        all.unwrap_or_default().saturating_sub(usize::from(is_one))
    }

    fn set_client(&mut self, page: PageId, client: Option<ClientAddress>) {
        if let Some(before) = self.clients.remove(&page) {
            decrement(&mut self.pages_of_clients, before);
        }
        if let Some(client) = client {
            self.clients.insert(page, client);
            *self.pages_of_clients.entry(client).or_default() += 1;
        }
    }
}

/// Whether a limit is reached; 0 means no limit.
const fn is_reached(most: usize, count: usize) -> bool {
    most > 0 && count >= most
}

/// Counts one `key` less.
fn decrement<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() = count.get().saturating_sub(1);
        if *count.get() == 0 {
            count.remove();
        }
    }
}
