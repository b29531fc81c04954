//! `register` and `unregister`, and the responses of registrars.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::{ClientAddress, Message, Right, SessionId};
use portunus_sip::agent::{AccountId, Command};
use tokio::time::Instant;

use super::Phone;
use crate::account::{Account, AccountSpec};
use crate::events::named_event;
use crate::failure::Failure;
use crate::page::Role;
use crate::profile::profile;
use crate::refusal::Refusal;
use crate::register_request::{RegisterRequest, Wanted};
use crate::sip_message::SipMessage;
use crate::status::{PageId, RegistrationStatus};

/// An account that a page has got by `register`.
pub(crate) struct Joined {
    pub(crate) account: AccountId,
    pub(crate) user: String,
    /// The account is registered at a server.
    pub(crate) registers: bool,
}

impl Phone {
    /// Returns the wish of a page that registers, if it may have it.
    pub(crate) fn wish(
        &self,
        me: PageId,
        request: &RegisterRequest<'_>,
    ) -> Result<Wanted, Refusal> {
        let Some(page) = self.page(me) else {
            return Err(Refusal::State("register first"));
        };
        let user = self.account_of(me);
        let user = user.map(|account| account.spec.user.as_str());
        let wanted = request.wanted(page.registration, user, &self.common.config)?;
        if page.role != Role::Master {
            return Err(Refusal::Helper(match wanted {
                Wanted::Helper(_) => "Already a helper session",
                Wanted::Account(_) => "Can't register on a helper session",
            }));
        }
        Ok(wanted)
    }

    /// Returns the session of a page.
    pub(crate) fn session_of(&self, me: PageId) -> Option<SessionId> {
        self.page(me).map(|page| page.handle.session_id())
    }

    /// Whether a page of a session may help `master`. Numbers of pages can be guessed, so a page of
    /// another session has to know the secret.
    pub(crate) fn may_be_helped(
        &self,
        master: PageId,
        session: Option<SessionId>,
        request: &RegisterRequest<'_>,
    ) -> Result<bool, Refusal> {
        let (Some(page), Some(account)) = (self.page(master), self.account_of(master)) else {
            return Ok(false);
        };
        let shown = request.secret()?;
        let is_own = session == Some(page.handle.session_id());
        Ok(page.role == Role::Master && (is_own || account.spec.is_shown(shown.as_ref())))
    }

    /// Makes a page a helper of another one of this phone.
    pub(crate) fn help(
        &mut self,
        me: PageId,
        master: PageId,
        request: &RegisterRequest<'_>,
        message: &Message,
    ) {
        let (Some(host), Some(account)) = (self.page(master), self.account_of(master)) else {
            return;
        };
        let (prefixes, number) = (host.prefixes.clone(), host.master_id);
        let user = account.spec.user.clone();
        self.pages.set_role(me, Role::Helper(master));
        let Some(page) = self.page_mut(me) else {
            return;
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
        self.send_lines_of(me);
    }

    /// Returns the account of a page, and whether no other page has it.
    pub(crate) fn current(&self, me: PageId) -> (Option<AccountId>, bool) {
        let current = self.page(me).and_then(|page| page.account);
        let account = current.and_then(|id| self.accounts.get(id));
        (current, account.is_some_and(|it| it.pages.len() == 1))
    }

    /// Notes the members of `register` that concern the page alone.
    pub(crate) fn note_options(
        &mut self,
        me: PageId,
        request: &RegisterRequest<'_>,
        message: &Message,
    ) {
        if let Some(page) = self.page_mut(me) {
            page.client = limited_client(message);
            page.prefixes.add(&request.prefixes);
            page.take_options(request);
        }
    }

    /// A page has an account of this phone from now on. Answers its request.
    pub(crate) fn join(&mut self, me: PageId, joined: Joined, message: &Message) {
        let id = joined.account;
        let status = self.join_account(me, id);
        let Some(page) = self.page(me) else {
            return;
        };
        if !joined.registers {
            let registered = named_event("registered")
                .with("username", joined.user)
                .with("register_sent", false)
                .with("master_id", page.master_id)
                .with("unique_id", page.unique_id.as_str());
            page.reply(&message.transaction, registered);
            self.send_lines(id);
            return;
        }
        let registering = named_event("registering").with("unique_id", page.unique_id.as_str());
        page.reply(&message.transaction, registering);
        if status == RegistrationStatus::Registered {
            self.send_registered(me, None);
            self.send_lines(id);
        }
    }

    /// Counts a request that begins something at a SIP server.
    pub(super) fn spend(&self, message: &Message) -> Result<(), Refusal> {
        match limited_client(message) {
            Some(client) => self.common.directory.spend(client, Instant::now()),
            None => Ok(()),
        }
    }

    /// Enters whether a page counts among those of its client.
    pub(crate) fn note_client(&self, me: PageId) {
        let page = self.page(me).filter(|page| page.account.is_some());
        let client = page.and_then(|page| page.client);
        self.common.directory.set_client(me, client);
    }

    /// Adds a new account, which the directory has.
    pub(crate) fn add_account(&mut self, id: AccountId, spec: Arc<AccountSpec>) {
        let status = match spec.registers {
            true => RegistrationStatus::Registering,
            false => RegistrationStatus::Disabled,
        };
        let profile = Box::new(profile(&spec, &self.common.config));
        self.accounts.insert(Account {
            id,
            spec,
            status,
            pages: Vec::new(),
            parked: Vec::new(),
        });
        self.command(Command::SetAccount {
            account: id,
            profile,
        });
    }

    /// Registers an account again, with another specification.
    pub(crate) fn change_account(&mut self, id: AccountId, spec: Arc<AccountSpec>) {
        let status = match spec.registers {
            true => RegistrationStatus::Registering,
            false => RegistrationStatus::Disabled,
        };
        let profile = Box::new(profile(&spec, &self.common.config));
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
        self.note_client(me);
        status
    }

    /// Takes the account from a page, and unregisters it if that was the last page. Returns whether
    /// an event of its end will follow.
    pub(crate) fn leave_account(&mut self, me: PageId) -> bool {
        let Some(id) = self.page_mut(me).and_then(|page| page.account.take()) else {
            return false;
        };
        self.note_client(me);
        let Some(account) = self.accounts.get_mut(id) else {
            return false;
        };
        account.pages.retain(|page| *page != me);
        if !account.pages.is_empty() || !account.parked.is_empty() {
            self.send_lines(id);
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
                self.common.directory.end_account(id);
                true
            }
            _ => {
                self.take_account(id);
                false
            }
        }
    }

    fn take_account(&mut self, id: AccountId) -> Option<Account> {
        self.common.directory.remove_account(id);
        self.accounts.remove(id)
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
            None => self.send_unregistered(me, user, None),
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
            self.send_registered(page, Some(message));
        }
        self.send_lines(id);
    }

    fn send_registered(&self, id: PageId, message: Option<&SipMessage>) {
        let (Some(page), Some(account)) = (self.page(id), self.account_of(id)) else {
            return;
        };
        let headers = match message {
            Some(message) => message.shown_headers(&page.prefixes),
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
        page.send_data(data, None);
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
        let Some(account) = self.take_account(id) else {
            return;
        };
        self.command(Command::RemoveAccount { account: id });
        if account.status == RegistrationStatus::Unregistering {
            self.account_is_gone(id, Some(account.spec.user.clone()), message);
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
            self.note_client(id);
            let Some(page) = self.page(id) else {
                continue;
            };
            let failed = named_event("registration_failed")
                .with("code", code)
                .with("reason", reason.to(Some(page)))
                .with_some("headers", shown_or_empty(page, message));
            page.send(failed, None);
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
        let account = self.take_account(id);
        let user = account.map(|account| account.spec.user.clone());
        self.account_is_gone(id, user, message);
    }

    fn account_is_gone(
        &mut self,
        id: AccountId,
        user: Option<String>,
        message: Option<&SipMessage>,
    ) {
        for page in self.accounts.take_waiting(id) {
            self.send_unregistered(page, user.clone(), message);
        }
    }

    fn send_unregistered(
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
            .with_some("headers", shown_or_empty(page, message));
        let data = page
            .data()
            .with("unique_id", page.unique_id.as_str())
            .with("result", unregistered);
        page.send_data(data, None);
        self.notify(page, || {
            named_event("unregistered").with_some("username", user.as_deref())
        });
    }
}

/// Returns the client of a request, or `None` if no limits hold for it.
pub(crate) fn limited_client(message: &Message) -> Option<ClientAddress> {
    let is_limited = !message.rights.may(Right::Administer);
    is_limited.then_some(message.client)
}

/// Returns the header fields for a page, or an empty object without a message.
pub(crate) fn shown_or_empty(
    page: &crate::page::Page,
    message: Option<&SipMessage>,
) -> Option<serde_json::Value> {
    match message {
        Some(message) => message.shown_headers(&page.prefixes),
        None => page.prefixes.pick(std::iter::empty()),
    }
}
