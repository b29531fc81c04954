//! The accounts of a phone: one that pages share, and those that are being unregistered.

use std::collections::HashMap;

use portunus_sip::agent::{AccountId, CallId};
use tokio::time::Instant;

use crate::account::Account;
use crate::status::PageId;

/// All accounts, and the pages that wait for the end of theirs.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    accounts: HashMap<AccountId, Account>,
    leaving: Vec<(AccountId, PageId)>,
}

impl Accounts {
    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(super) fn contains(&self, id: AccountId) -> bool {
        self.accounts.contains_key(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    pub(super) fn get(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: AccountId) -> Option<&mut Account> {
        self.accounts.get_mut(&id)
    }

    pub(super) fn insert(&mut self, account: Account) {
        self.accounts.insert(account.id, account);
    }

    pub(super) fn remove(&mut self, id: AccountId) -> Option<Account> {
        self.accounts.remove(&id)
    }

    /// Returns the pages that have registered an account, oldest first.
    pub(super) fn masters(&self, id: AccountId) -> Vec<PageId> {
        let account = self.accounts.get(&id);
        account
            .map(|account| account.pages.clone())
            .unwrap_or_default()
    }

    /// A page waits for the end of an account.
    pub(super) fn wait_for_end(&mut self, id: AccountId, page: PageId) {
        self.leaving.push((id, page));
    }

    /// Takes the pages that wait for the end of an account.
    pub(super) fn take_waiting(&mut self, id: AccountId) -> Vec<PageId> {
        let waiting = self.leaving.extract_if(.., |(account, _)| *account == id);
        waiting.map(|(_, page)| page).collect()
    }

    /// A page waits for the end of no account any more.
    pub(super) fn forget_page(&mut self, page: PageId) {
        self.leaving.retain(|(_, waiting)| *waiting != page);
    }

    /// Returns the parked calls that have waited too long, with their accounts.
    pub(super) fn expired(&self, now: Instant) -> Vec<(AccountId, CallId)> {
        let accounts = self.accounts.values();
        let expired = accounts.flat_map(|account| {
            let parked = account.parked.iter();
            let expired = parked.filter(|parked| parked.until <= now);
            expired.map(|parked| (account.id, parked.call))
        });
        expired.collect()
    }

    /// Lets a parked call wait until `until`.
    pub(super) fn extend_parked(&mut self, call: CallId, until: Instant) {
        let accounts = self.accounts.values_mut();
        let parked = accounts.flat_map(|account| account.parked.iter_mut());
        for parked in parked.filter(|parked| parked.call == call) {
            parked.until = until;
        }
    }
}
