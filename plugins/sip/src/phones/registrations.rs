//! `register` and `unregister`, and the responses of registrars.

use std::time::Duration;

use portunus_core::{Fields, Message, Right};
use portunus_sip::agent::{AccountId, Command};
use tokio::time::Instant;

use super::Phones;
use crate::account::{Account, AccountSpec};
use crate::events::named_event;
use crate::failure::Failure;
use crate::page::Role;
use crate::profile::profile;
use crate::refusal::Refusal;
use crate::register_request::{RegisterRequest, Wanted};
use crate::sip_message::SipMessage;
use crate::status::{PageId, RegistrationStatus};

impl Phones {
    pub(super) fn register(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let request = RegisterRequest::read(Fields(&message.body))?;
        let Some(page) = self.page(me) else {
            return Ok(());
        };
        let user = self
            .account_of(me)
            .map(|account| account.spec.user.as_str());
        let wanted = request.wanted(page.registration, user, &self.config)?;
        if page.role != Role::Master {
            return Err(Refusal::Helper(match wanted {
                Wanted::Helper(_) => "Already a helper session",
                Wanted::Account(_) => "Can't register on a helper session",
            }));
        }
        match wanted {
            Wanted::Helper(master) => self.help(me, master, &request, message),
            Wanted::Account(spec) => self.have_account(me, *spec, &request, message),
        }
    }

    /// Makes a page a helper.
    fn help(
        &mut self,
        me: PageId,
        number: u64,
        request: &RegisterRequest<'_>,
        message: &Message,
    ) -> Result<(), Refusal> {
        let none = || Refusal::NoMaster(number);
        let master = u32::try_from(number)
            .ok()
            .and_then(|number| self.pages.master(number));
        let master = master.filter(|master| *master != me).ok_or_else(none)?;
        let (Some(page), Some(account)) = (self.page(master), self.account_of(master)) else {
            return Err(none());
        };
        // Numbers can be guessed, so a page of another session has to know the secret.
        let shown = request.secret()?;
        let is_own = self
            .page(me)
            .is_some_and(|own| own.handle.session_id() == page.handle.session_id());
        if page.role != Role::Master || !(is_own || account.spec.is_shown(shown.as_ref())) {
            return Err(none());
        }
        let (prefixes, user) = (page.prefixes.clone(), account.spec.user.clone());
        self.leave_account(me);
        self.pages.set_role(me, Role::Helper(master));
        let Some(page) = self.page_mut(me) else {
            return Ok(());
        };
        page.registration = RegistrationStatus::Disabled;
        page.prefixes = prefixes;
        page.prefixes.add(&request.prefixes);
        page.take_options(request);
        let registered = named_event("registered")
            .with("username", user)
            .with("register_sent", false)
            .with("helper", true)
            .with("master_id", number)
            .with("unique_id", page.unique_id.as_str());
        page.reply(&message.transaction, registered);
        self.tell_lines_of(me);
        Ok(())
    }

    fn have_account(
        &mut self,
        me: PageId,
        spec: AccountSpec,
        request: &RegisterRequest<'_>,
        message: &Message,
    ) -> Result<(), Refusal> {
        let current = self.page(me).and_then(|page| page.account);
        let shared = self.accounts.shared_by(&spec);
        self.check_limits(me, shared.or(current).is_none(), message)?;
        let trusted = message.rights.may(Right::Administer);
        if let Some(page) = self.page_mut(me) {
            page.client = (!trusted).then_some(message.client);
            page.prefixes.add(&request.prefixes);
            page.take_options(request);
        }
        let (registers, user) = (spec.registers, spec.user.clone());
        let id = match (current, shared) {
            // The page registers its account again.
            (Some(current), shared) if shared.is_none_or(|it| it == current) => {
                // Other pages keep the old account.
                let is_alone = self
                    .accounts
                    .get(current)
                    .is_some_and(|it| it.pages.len() == 1);
                match shared.is_some() || is_alone {
                    true => self.change_account(current, spec),
                    false => {
                        self.leave_account(me);
                        self.new_account(spec)
                    }
                }
            }
            (_, Some(shared)) => {
                self.leave_account(me);
                shared
            }
            (_, None) => self.new_account(spec),
        };
        let status = self.join_account(me, id);
        let Some(page) = self.page(me) else {
            return Ok(());
        };
        if !registers {
            let registered = named_event("registered")
                .with("username", user)
                .with("register_sent", false)
                .with("master_id", page.master_id)
                .with("unique_id", page.unique_id.as_str());
            page.reply(&message.transaction, registered);
            self.tell_lines(id);
            return Ok(());
        }
        let registering = named_event("registering").with("unique_id", page.unique_id.as_str());
        page.reply(&message.transaction, registering);
        if status == RegistrationStatus::Registered {
            self.tell_registered(me, None);
            self.tell_lines(id);
        }
        Ok(())
    }

    /// Checks the limits: those of clients, and that of all accounts.
    fn check_limits(&mut self, me: PageId, is_new: bool, message: &Message) -> Result<(), Refusal> {
        let config = self.config.clone();
        let reached = |most: usize, count: usize| most > 0 && count >= most;
        if is_new && reached(config.max_accounts, self.accounts.len()) {
            return Err(Refusal::TooMany("the server has too many accounts"));
        }
        if message.rights.may(Right::Administer) {
            return Ok(());
        }
        let of_client = self.pages.iter().filter(|(id, page)| {
            *id != me && page.account.is_some() && page.client == Some(message.client)
        });
        if reached(config.max_accounts_per_client, of_client.count()) {
            return Err(Refusal::TooMany("too many accounts of your address"));
        }
        self.spend(message)
    }

    /// Counts a request that begins something at a SIP server.
    pub(super) fn spend(&mut self, message: &Message) -> Result<(), Refusal> {
        match message.rights.may(Right::Administer) {
            true => Ok(()),
            false => self.limits.spend(message.client, Instant::now()),
        }
    }

    fn new_account(&mut self, spec: AccountSpec) -> AccountId {
        let id = AccountId::new(self.number());
        let status = match spec.registers {
            true => RegistrationStatus::Registering,
            false => RegistrationStatus::Disabled,
        };
        let account = Account {
            id,
            spec,
            status,
            pages: Vec::new(),
            parked: Vec::new(),
        };
        let profile = Box::new(profile(&account.spec, &self.config));
        self.accounts.insert(account);
        self.command(Command::SetAccount {
            account: id,
            profile,
        });
        id
    }

    /// Registers an account again, with another specification.
    fn change_account(&mut self, id: AccountId, spec: AccountSpec) -> AccountId {
        let status = match spec.registers {
            true => RegistrationStatus::Registering,
            false => RegistrationStatus::Disabled,
        };
        let profile = Box::new(profile(&spec, &self.config));
        if let Some(account) = self.accounts.get_mut(id) {
            account.spec = spec;
            account.status = status;
        }
        for page in self.accounts.masters(id) {
            if let Some(page) = self.page_mut(page) {
                page.registration = status;
            }
        }
        self.command(Command::SetAccount {
            account: id,
            profile,
        });
        id
    }

    fn join_account(&mut self, me: PageId, id: AccountId) -> RegistrationStatus {
        let Some(account) = self.accounts.get_mut(id) else {
            return RegistrationStatus::Unregistered;
        };
        if !account.pages.contains(&me) {
            account.pages.push(me);
        }
        let status = account.status;
        if let Some(page) = self.page_mut(me) {
            page.account = Some(id);
            page.registration = status;
        }
        status
    }

    /// Takes the account from a page, and unregisters it if that was the last page. Returns whether
    /// an event of its end will follow.
    pub(super) fn leave_account(&mut self, me: PageId) -> bool {
        let Some(id) = self.page_mut(me).and_then(|page| page.account.take()) else {
            return false;
        };
        let Some(account) = self.accounts.get_mut(id) else {
            return false;
        };
        account.pages.retain(|page| *page != me);
        if !account.pages.is_empty() || !account.parked.is_empty() {
            self.tell_lines(id);
            return false;
        }
        self.remove_account(id)
    }

    /// Unregisters an account. Returns whether an event of its end will follow.
    pub(super) fn remove_account(&mut self, id: AccountId) -> bool {
        self.command(Command::RemoveAccount { account: id });
        match self.accounts.get_mut(id) {
            Some(account) if account.status == RegistrationStatus::Registered => {
                account.status = RegistrationStatus::Unregistering;
                true
            }
            _ => {
                self.accounts.remove(id);
                false
            }
        }
    }

    pub(super) fn unregister(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let Some(page) = self.page_mut(me) else {
            return Ok(());
        };
        let unregistering = || named_event("unregistering");
        if page.role != Role::Master {
            page.registration = RegistrationStatus::Unregistered;
            page.reply(&message.transaction, unregistering());
            self.pages.set_role(me, Role::Master);
            return Ok(());
        }
        match page.registration {
            RegistrationStatus::Registered | RegistrationStatus::Registering => {}
            RegistrationStatus::Unregistered => return Err(Refusal::State("register first")),
            _ => return Err(Refusal::State("not registered")),
        }
        page.registration = RegistrationStatus::Unregistering;
        page.reply(&message.transaction, unregistering());
        let id = page.account;
        for helper in self.pages.helpers(me) {
            if let Some(helper) = self.page(helper) {
                helper.handle.end();
            }
        }
        let user = self.account_of(me).map(|account| account.spec.user.clone());
        match id.filter(|_| self.leave_account(me)) {
            // The registrar's response comes first.
            Some(id) => self.accounts.wait_for_end(id, me),
            None => self.tell_unregistered(me, user, None),
        }
        Ok(())
    }

    /// A registrar has accepted an account.
    pub(super) fn registered(&mut self, id: AccountId, expires: Duration, message: &SipMessage) {
        tracing::debug!(account = %id, ?expires, "registered");
        let Some(account) = self.accounts.get_mut(id) else {
            return;
        };
        if account.status == RegistrationStatus::Unregistering {
            return;
        }
        account.status = RegistrationStatus::Registered;
        for page in self.accounts.masters(id) {
            if let Some(page) = self.page_mut(page) {
                page.registration = RegistrationStatus::Registered;
            }
            self.tell_registered(page, Some(message));
        }
        self.tell_lines(id);
    }

    fn tell_registered(&self, id: PageId, message: Option<&SipMessage>) {
        let (Some(page), Some(account)) = (self.page(id), self.account_of(id)) else {
            return;
        };
        let headers = match message {
            Some(message) => message.told(&page.prefixes),
            None => page.prefixes.pick(std::iter::empty()),
        };
        let resumable = self.resumable(id);
        let registered = named_event("registered")
            .with("username", account.spec.user.as_str())
            .with("register_sent", true)
            .with("master_id", page.master_id)
            .with_some("headers", headers)
            .with_some("resumable", resumable);
        let data = page
            .data()
            .with("unique_id", page.unique_id.as_str())
            .with("result", registered);
        page.tell_data(data, None);
        self.notify(page, || {
            named_event("registered")
                .with("identity", account.spec.identity.to_string())
                .with_some(
                    "proxy",
                    account.spec.proxy.as_ref().map(ToString::to_string),
                )
        });
    }

    /// Handles a failed registration, at first or later.
    pub(super) fn registration_failed(
        &mut self,
        id: AccountId,
        code: u16,
        reason: &Failure<'_>,
        message: Option<&SipMessage>,
    ) {
        let pages = self.accounts.masters(id);
        let Some(account) = self.accounts.remove(id) else {
            return;
        };
        self.command(Command::RemoveAccount { account: id });
        if account.status == RegistrationStatus::Unregistering {
            self.account_is_gone(id, Some(account.spec.user), message);
            return;
        }
        for parked in account.parked {
            self.end_parked(parked.call);
        }
        for id in pages {
            let Some(page) = self.page_mut(id) else {
                continue;
            };
            page.account = None;
            page.registration = RegistrationStatus::Unregistered;
            let page = &*page;
            let failed = named_event("registration_failed")
                .with("code", code)
                .with("reason", reason.to(Some(page)))
                .with_some("headers", told_or_empty(page, message));
            page.tell(failed, None);
        }
        for page in account.pages.iter().filter_map(|id| self.page(*id)) {
            self.notify(page, || {
                named_event("registration_failed")
                    .with("code", code)
                    .with("reason", reason.to_owner())
            });
        }
    }

    /// An account is unregistered at our request.
    pub(super) fn unregistered(&mut self, id: AccountId, message: Option<&SipMessage>) {
        let account = self.accounts.remove(id);
        self.account_is_gone(id, account.map(|account| account.spec.user), message);
    }

    fn account_is_gone(
        &mut self,
        id: AccountId,
        user: Option<String>,
        message: Option<&SipMessage>,
    ) {
        for page in self.accounts.take_waiting(id) {
            self.tell_unregistered(page, user.clone(), message);
        }
    }

    fn tell_unregistered(
        &mut self,
        id: PageId,
        user: Option<String>,
        message: Option<&SipMessage>,
    ) {
        let Some(page) = self.page_mut(id) else {
            return;
        };
        if page.registration != RegistrationStatus::Unregistering {
            return;
        }
        page.registration = RegistrationStatus::Unregistered;
        let Some(page) = self.page(id) else {
            return;
        };
        let unregistered = named_event("unregistered")
            .with_some("username", user.as_deref())
            .with_some("headers", told_or_empty(page, message));
        let data = page
            .data()
            .with("unique_id", page.unique_id.as_str())
            .with("result", unregistered);
        page.tell_data(data, None);
        self.notify(page, || {
            named_event("unregistered").with_some("username", user.as_deref())
        });
    }
}

/// Returns the header fields for a page, or an empty object without a message.
pub(crate) fn told_or_empty(
    page: &crate::page::Page,
    message: Option<&SipMessage>,
) -> Option<serde_json::Value> {
    match message {
        Some(message) => message.told(&page.prefixes),
        None => page.prefixes.pick(std::iter::empty()),
    }
}
