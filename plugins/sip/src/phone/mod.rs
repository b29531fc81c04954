//! A phone: an account with all that belongs to it, under one lock.

mod accounts;
mod admin;
mod agent_events;
mod call_ends;
mod calls;
mod common;
mod forwarders;
mod incoming_calls;
mod lines;
mod messages;
mod moves;
mod outgoing_calls;
mod pages;
mod recordings;
mod registrations;
mod renegotiation;
mod requests;
mod subscriptions;
mod transfers;

use std::collections::HashMap;
use std::sync::Arc;

use portunus_core::{Handle, Object};
use portunus_sip::agent::{AccountId, CallId, Command, ReferId, RequestId, SubscriptionId};
use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::Value;
use tokio::time::Instant;

use crate::account::Account;
use crate::call::Call;
use crate::directory::PhoneId;
use crate::page::{Page, PageCall, Role};
use crate::status::{CallStatus, PageId};
use accounts::Accounts;
use agent_events::Forbidden;
use calls::Calls;
pub(crate) use common::Common;
use messages::SentMessage;
use pages::Pages;
pub(crate) use registrations::{Joined, limited_client};
use transfers::Transfers;

/// An account, the pages that share it with their helpers, and their calls, subscriptions and
/// transfers. A page that has just attached has a phone of its own, without an account.
///
/// Nothing is awaited under the lock of a phone, and the trunks' lock is never taken under it.
pub(crate) struct Phone {
    pub(crate) id: PhoneId,
    common: Arc<Common>,
    pages: Pages,
    accounts: Accounts,
    calls: Calls,
    /// Sent MESSAGEs that were not answered.
    messages: HashMap<RequestId, SentMessage>,
    subscriptions: HashMap<SubscriptionId, Subscription>,
    transfers: Transfers,
    /// The address that the next failure is about.
    forbidden: Option<Forbidden>,
}

/// A subscription or a publication of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) page: PageId,
    pub(crate) event: String,
    /// Its Call-ID, once known.
    pub(crate) call_id: Option<String>,
    /// It is a publication.
    pub(crate) publishes: bool,
}

impl Phone {
    /// Makes a phone without pages.
    pub(crate) fn new(id: PhoneId, common: Arc<Common>) -> Self {
        Phone {
            id,
            common,
            pages: Pages::default(),
            accounts: Accounts::default(),
            calls: Calls::default(),
            messages: HashMap::new(),
            subscriptions: HashMap::new(),
            transfers: Transfers::default(),
            forbidden: None,
        }
    }

    /// Whether nothing needs the phone any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
            && self.accounts.is_empty()
            && self.calls.is_empty()
            && self.transfers.is_empty()
    }

    /// Passes a command to the SIP stack.
    pub(crate) fn command(&self, command: Command) {
        self.common.command(command);
    }

    /// Adds a page whose handle was attached.
    pub(crate) fn attach(&mut self, id: PageId, handle: Handle) {
        let master_id = self.common.directory.add_page(id, self.id);
        let unique_id = uuid::Uuid::new_v4().to_string();
        self.pages
            .insert(id, Page::new(handle, unique_id, master_id));
    }

    pub(crate) fn page(&self, id: PageId) -> Option<&Page> {
        self.pages.get(id)
    }

    fn page_mut(&mut self, id: PageId) -> Option<&mut Page> {
        self.pages.get_mut(id)
    }

    /// Returns the account of a page, or of its master.
    pub(crate) fn account_of(&self, id: PageId) -> Option<&Account> {
        let page = self.page(id)?;
        let owner = match page.role {
            Role::Master => page,
            Role::Helper(master) => self.page(master)?,
        };
        self.accounts.get(owner.account?)
    }

    /// Returns a page's side of its call.
    pub(crate) fn side_of(&self, id: PageId) -> Option<&PageCall> {
        self.page(id)?.call.as_ref()
    }

    pub(crate) fn side_of_mut(&mut self, id: PageId) -> Option<&mut PageCall> {
        self.page_mut(id)?.call.as_mut()
    }

    /// Removes a call, and all that leads to it.
    fn remove_call(&mut self, id: CallId) -> Option<Call> {
        self.common.directory.remove_call(id);
        self.calls.remove(id)
    }

    /// Returns the side of call `call` that page `id` has.
    pub(crate) fn side(&mut self, id: PageId, call: CallId) -> Option<&mut PageCall> {
        self.side_of_mut(id).filter(|side| side.id == call)
    }

    /// Returns the page that owns a call: the first one. Returns `None` if the call is parked.
    pub(crate) fn owner_of(&mut self, call: CallId) -> Option<(PageId, &mut Page)> {
        let owner = self.calls.get(call)?.pages.first().copied()?;
        let page = self.pages.get_mut(owner)?;
        let has_it = page.call.as_ref().is_some_and(|side| side.id == call);
        has_it.then_some((owner, page))
    }

    /// Returns all pages of an account with their helpers, oldest first.
    pub(crate) fn pages_of(&self, account: AccountId) -> Vec<PageId> {
        let mut pages = self.accounts.masters(account);
        let helpers = pages.iter().flat_map(|id| self.pages.helpers(*id));
        let helpers: Vec<PageId> = helpers.collect();
        pages.extend(helpers);
        pages.sort_unstable();
        pages
    }

    /// Returns for each page that has registered an account itself if it is free, else its first
    /// free helper.
    pub(crate) fn free_pages(&self, account: AccountId) -> Vec<PageId> {
        let Some(account) = self.accounts.get(account) else {
            return Vec::new();
        };
        let is_free = |id: &PageId| {
            let page = self.page(*id);
            page.is_some_and(|page| page.status() == CallStatus::Idle)
        };
        let free = |master: &PageId| {
            let helpers = || self.pages.helpers(*master).into_iter().find(is_free);
            Some(*master).filter(is_free).or_else(helpers)
        };
        account.pages.iter().filter_map(free).collect()
    }

    /// Ends everything that has expired; called every second.
    pub(crate) fn tick(&mut self, now: Instant) {
        for (account, call) in self.accounts.expired(now) {
            self.give_up_parked(account, call);
        }
        self.ring_again(now);
        self.forget_transfers(now);
    }

    /// Publishes an event about a page.
    pub(crate) fn notify(&self, page: &Page, data: impl FnOnce() -> Object) {
        if self.common.config.events {
            page.handle.notify(|| Value::from(data()));
        }
    }

    /// Publishes an event about a page that may be gone.
    pub(crate) fn notify_of(&self, id: PageId, data: impl FnOnce() -> Object) {
        if let Some(page) = self.page(id) {
            self.notify(page, data);
        }
    }
}

/// Returns a random Call-ID of 23 letters and digits.
pub(crate) fn new_call_id() -> String {
    let random = rand::rng().sample_iter(Alphanumeric).take(23);
    random.map(char::from).collect()
}

/// Returns the number of a peer's REFER for clients.
pub(crate) fn refer_number(refer: ReferId) -> u32 {
    // The highest bit marks ids of the stack; clients know 32 bits.
    (refer.get() & u64::from(u32::MAX)) as u32
}
