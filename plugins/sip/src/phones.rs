//! All pages, accounts and calls of the plugin. One lock guards them: most of what happens concerns several.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use portunus_core::{Handle, LogGate, Object};
use portunus_sip::agent::{About, AccountId, CallId, Command, ReferId, RequestId, SubscriptionId};
use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::Value;
use tokio::time::Instant;

use crate::account::{Account, Parked};
use crate::call::Call;
use crate::config::SipConfig;
use crate::limits::Limits;
use crate::media::{MediaContext, MediaKey};
use crate::page::{CallStatus, Page, PageCall, PageId, Role};
use crate::plugin::Shared;
use crate::transfer::Transfer;

/// Takes commands to the SIP stack.
pub(crate) type Commands = Arc<dyn Fn(Command) + Send + Sync>;

/// All that the plugin knows.
pub(crate) struct Phones {
    pub(crate) config: Arc<SipConfig>,
    pub(crate) context: MediaContext,
    pub(crate) limits: Limits,
    commands: Commands,
    /// What these are in, for what takes a while.
    pub(crate) own: Weak<Shared>,
    pub(crate) pages: HashMap<PageId, Page>,
    pub(crate) accounts: HashMap<AccountId, Account>,
    pub(crate) calls: HashMap<CallId, Call>,
    /// The calls of media.
    pub(crate) media_keys: HashMap<MediaKey, CallId>,
    /// The pages that helpers name by these numbers.
    masters: HashMap<u32, PageId>,
    /// The helpers of pages that have some.
    helpers: HashMap<PageId, Vec<PageId>>,
    /// MESSAGEs that were sent: by whom, and their Call-IDs.
    pub(crate) messages: HashMap<RequestId, (PageId, Option<String>)>,
    pub(crate) subscriptions: HashMap<SubscriptionId, Subscription>,
    /// Pages that wait for the end of their account.
    pub(crate) leaving: Vec<(AccountId, PageId)>,
    /// Transfers that peers have asked for.
    pub(crate) transfers: HashMap<u32, Transfer>,
    /// The address that what the SIP stack tells next may not be sent to.
    pub(crate) forbidden: Option<(About, IpAddr)>,
    pub(crate) forbidden_log: LogGate,
    /// The server takes no new calls.
    pub(crate) draining: bool,
    next: u64,
}

/// A subscription or a publication of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) page: PageId,
    pub(crate) event: String,
    /// Its Call-ID, once it is known.
    pub(crate) call_id: Option<String>,
    /// The page publishes its own state.
    pub(crate) publishes: bool,
}

impl Phones {
    pub(crate) fn new(
        config: Arc<SipConfig>,
        context: MediaContext,
        commands: Commands,
        own: Weak<Shared>,
    ) -> Self {
        Phones {
            limits: Limits::new(&config),
            config,
            context,
            commands,
            own,
            pages: HashMap::new(),
            accounts: HashMap::new(),
            calls: HashMap::new(),
            media_keys: HashMap::new(),
            masters: HashMap::new(),
            helpers: HashMap::new(),
            messages: HashMap::new(),
            subscriptions: HashMap::new(),
            leaving: Vec::new(),
            transfers: HashMap::new(),
            forbidden: None,
            forbidden_log: LogGate::default(),
            draining: false,
            next: 1,
        }
    }

    /// Has the SIP stack do something.
    pub(crate) fn command(&self, command: Command) {
        (self.commands)(command);
    }

    /// A number that no other thing of the plugin has.
    pub(crate) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    pub(crate) fn attach(&mut self, handle: Handle) -> PageId {
        let id = PageId(self.number());
        let master_id = loop {
            let number = rand::rng().random_range(1..=u32::MAX);
            if !self.masters.contains_key(&number) {
                break number;
            }
        };
        self.masters.insert(master_id, id);
        let unique_id = uuid::Uuid::new_v4().to_string();
        self.pages
            .insert(id, Page::new(handle, unique_id, master_id));
        id
    }

    pub(crate) fn forget_page(&mut self, id: PageId) -> Option<Page> {
        let page = self.pages.remove(&id)?;
        self.masters.remove(&page.master_id);
        self.end_help(id, page.role);
        Some(page)
    }

    /// From now on a page is this.
    pub(crate) fn set_role(&mut self, id: PageId, role: Role) {
        let Some(page) = self.page_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut page.role, role);
        self.end_help(id, before);
        if let Role::Helper(master) = role {
            self.helpers.entry(master).or_default().push(id);
        }
    }

    /// A page is no longer what it was.
    fn end_help(&mut self, id: PageId, role: Role) {
        let Role::Helper(master) = role else {
            return;
        };
        if let Some(helpers) = self.helpers.get_mut(&master) {
            helpers.retain(|helper| *helper != id);
            if helpers.is_empty() {
                self.helpers.remove(&master);
            }
        }
    }

    /// The page that has this number as a master.
    pub(crate) fn master(&self, number: u32) -> Option<PageId> {
        self.masters.get(&number).copied()
    }

    pub(crate) fn page(&self, id: PageId) -> Option<&Page> {
        self.pages.get(&id)
    }

    pub(crate) fn page_mut(&mut self, id: PageId) -> Option<&mut Page> {
        self.pages.get_mut(&id)
    }

    /// The account of a page; of a helper that of its master.
    pub(crate) fn account_of(&self, id: PageId) -> Option<&Account> {
        let page = self.page(id)?;
        let owner = match page.role {
            Role::Master => page,
            Role::Helper(master) => self.page(master)?,
        };
        self.accounts.get(&owner.account?)
    }

    /// The side of its call that a page has.
    pub(crate) fn side_of(&self, id: PageId) -> Option<&PageCall> {
        self.page(id)?.call.as_ref()
    }

    pub(crate) fn side_of_mut(&mut self, id: PageId) -> Option<&mut PageCall> {
        self.page_mut(id)?.call.as_mut()
    }

    /// The side of call `call` that page `id` has.
    pub(crate) fn side(&mut self, id: PageId, call: CallId) -> Option<&mut PageCall> {
        self.side_of_mut(id).filter(|side| side.id == call)
    }

    /// The page that has a call, or that was told of it first. Returns `None` if the call waits for a page.
    pub(crate) fn owner_of(&mut self, call: CallId) -> Option<(PageId, &mut Page)> {
        let owner = self.calls.get(&call)?.pages.first().copied()?;
        let page = self.pages.get_mut(&owner)?;
        let has_it = page.call.as_ref().is_some_and(|side| side.id == call);
        has_it.then_some((owner, page))
    }

    /// The helpers of a page, oldest first.
    pub(crate) fn helpers(&self, master: PageId) -> Vec<PageId> {
        let mut helpers = self.helpers.get(&master).cloned().unwrap_or_default();
        helpers.sort_unstable();
        helpers
    }

    /// All pages of an account with their helpers, oldest first.
    pub(crate) fn pages_of(&self, account: AccountId) -> Vec<PageId> {
        let mut pages = self.masters_of(account);
        let helpers: Vec<PageId> = pages.iter().flat_map(|id| self.helpers(*id)).collect();
        pages.extend(helpers);
        pages.sort_unstable();
        pages
    }

    /// For each page that has registered an account: itself if it is free, else its first free helper.
    pub(crate) fn free_pages(&self, account: AccountId) -> Vec<PageId> {
        let Some(account) = self.accounts.get(&account) else {
            return Vec::new();
        };
        let is_free = |id: &PageId| {
            let page = self.page(*id);
            page.is_some_and(|page| page.status() == CallStatus::Idle)
        };
        let free = |master: &PageId| {
            let helpers = || self.helpers(*master).into_iter().find(is_free);
            Some(*master).filter(is_free).or_else(helpers)
        };
        account.pages.iter().filter_map(free).collect()
    }

    /// The call with this Call-ID that a page of the account has.
    pub(crate) fn call_named(&self, account: AccountId, call_id: &str) -> Option<&Call> {
        let mut calls = self.calls.values();
        calls.find(|call| call.account == account && call.call_id == call_id)
    }

    /// Ends what waits no longer; called every second.
    pub(crate) fn tick(&mut self, now: Instant) {
        let is_over = |parked: &Parked| parked.until <= now;
        let accounts = self.accounts.values_mut();
        let over: Vec<(AccountId, Vec<CallId>)> = accounts
            .map(|account| {
                let over = account.parked.iter().filter(|parked| is_over(parked));
                (account.id, over.map(|parked| parked.call).collect())
            })
            .filter(|(_, calls): &(_, Vec<CallId>)| !calls.is_empty())
            .collect();
        for (account, calls) in over {
            for call in calls {
                self.give_up_parked(account, call);
            }
        }
        self.ring_again(now);
        self.forget_transfers(now);
        self.limits.forget(now);
    }

    /// Tells whoever watches the server of something that a page has to do with.
    pub(crate) fn notify(&self, page: &Page, data: impl FnOnce() -> Object) {
        if self.config.events {
            page.handle.notify(|| Value::from(data()));
        }
    }

    /// The same of a page that may be gone.
    pub(crate) fn notify_of(&self, id: PageId, data: impl FnOnce() -> Object) {
        if let Some(page) = self.page(id) {
            self.notify(page, data);
        }
    }
}

/// A Call-ID: 23 random letters and digits.
pub(crate) fn new_call_id() -> String {
    let random = rand::rng().sample_iter(Alphanumeric).take(23);
    random.map(char::from).collect()
}

/// An id of the SIP stack that a peer's REFER has, for clients.
pub(crate) fn refer_number(refer: ReferId) -> u32 {
    // The highest bit says who has chosen it; clients know 32 bits.
    (refer.get() & u64::from(u32::MAX)) as u32
}
