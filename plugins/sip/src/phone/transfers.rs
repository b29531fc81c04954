//! Transfers that pages ask of their peers, and that peers ask of pages.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use portunus_core::{Fields, Message, Object};
use portunus_sip::agent::{AccountId, CallId, Command, ReferId, RequestId};
use portunus_sip::message::{Method, Uri};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::incoming_calls::declining_code;
use super::{Common, Phone, refer_number};
use crate::events::named_event;
use crate::refusal::Refusal;
use crate::register_request::called;
use crate::sip_message::{NameAddr, SipMessage};
use crate::status::PageId;

/// The maximum number of those from outside of calls for one account, so that one account does not
/// take the room of all.
const MAX_OF_ACCOUNT: usize = 64;

/// The time after which an unfollowed transfer is declined.
const PATIENCE: Duration = Duration::from_secs(180);

/// The members of `transfer`.
#[derive(Deserialize)]
struct TransferMembers<'a> {
    uri: &'a str,
    replace: Option<&'a str>,
}

/// The members of a `decline` of a transfer.
#[derive(Deserialize)]
struct DeclineTransfer {
    refer_id: u64,
    code: Option<i64>,
}

/// A transfer that a peer asks for.
#[derive(Debug)]
pub(super) struct Transfer {
    refer: ReferId,
    account: Option<AccountId>,
    /// The REFER came in a call.
    within: bool,
    /// The callee, with the header fields for the INVITE.
    target: String,
    referred_by: String,
    /// The call that follows it.
    call: Option<CallId>,
    /// The time of the REFER.
    at: Instant,
    _places: Places,
}

/// The place of a transfer among those of all phones.
#[derive(Debug)]
struct Places {
    _of_all: Option<OwnedSemaphorePermit>,
    _outside: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// Takes a place, if there is one.
    fn take(common: &Common, within: bool) -> Option<Self> {
        let take = |room: &Arc<Semaphore>| Arc::clone(room).try_acquire_owned().ok();
        let outside = (!within).then(|| take(&common.outside_transfers));
        let of_all = take(&common.transfers);
        let is_there = match &outside {
            Some(outside) => outside.is_some(),
            None => of_all.is_some(),
        };
        is_there.then(|| Places {
            _of_all: of_all,
            _outside: outside.flatten(),
        })
    }
}

/// The transfers that peers ask of a phone.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    transfers: HashMap<u32, Transfer>,
}

impl Transfers {
    pub(super) fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// Whether one more transfer may wait, of a call or for an account outside of calls.
    fn has_room(&self, within: bool, account: Option<AccountId>) -> bool {
        let outside = self.transfers.values().filter(|it| !it.within);
        within || outside.filter(|it| it.account == account).count() < MAX_OF_ACCOUNT
    }

    /// Takes the transfers that these calls follow.
    pub(super) fn take_followed(&mut self, calls: &[CallId]) -> Vec<(u32, Transfer)> {
        let is_followed = |it: &Transfer| it.call.is_some_and(|call| calls.contains(&call));
        let followed = self.transfers.extract_if(|_, it| is_followed(it));
        followed.collect()
    }

    pub(super) fn put(&mut self, transfers: Vec<(u32, Transfer)>) {
        self.transfers.extend(transfers);
    }

    /// Returns a transfer for an account, if no call follows it yet.
    fn waiting_for(&self, number: u32, account: Option<AccountId>) -> Option<&Transfer> {
        let transfer = self.transfers.get(&number)?;
        (transfer.call.is_none() && transfer.account == account).then_some(transfer)
    }

    /// Takes a transfer for an account.
    fn take_of(&mut self, number: u32, account: Option<AccountId>) -> Option<Transfer> {
        let transfer = self.transfers.get(&number)?;
        let is_own = transfer.account == account;
        is_own.then(|| self.transfers.remove(&number)).flatten()
    }

    /// A call follows a transfer.
    pub(super) fn set_call(&mut self, number: u32, call: CallId) {
        if let Some(transfer) = self.transfers.get_mut(&number) {
            transfer.call = Some(call);
        }
    }

    /// Forgets the transfer that a call followed.
    pub(super) fn forget_call(&mut self, call: CallId) {
        self.transfers
            .retain(|_, transfer| transfer.call != Some(call));
    }

    /// Takes the transfers that nobody has followed for long.
    fn take_expired(&mut self, now: Instant) -> Vec<Transfer> {
        let is_expired = |transfer: &Transfer| {
            transfer.call.is_none() && now.saturating_duration_since(transfer.at) > PATIENCE
        };
        let expired = self
            .transfers
            .extract_if(|_, transfer| is_expired(transfer));
        expired.map(|(_, transfer)| transfer).collect()
    }
}

impl Phone {
    /// `transfer`: asks the peer to call somebody.
    pub(super) fn transfer(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let call = self.check_in_call(me)?;
        let TransferMembers { uri: text, replace } = Fields(&message.body).read()?;
        called(text)?;
        let account = self.calls.get(call).map(|call| call.account);
        let refer_to = match replace {
            None => format!("<{text}>"),
            Some(call_id) => {
                let unknown = || Refusal::NoSuchCall(call_id.to_owned());
                let other = account.and_then(|account| self.calls.named(account, call_id));
                let other = other.filter(|other| other.id != call).ok_or_else(unknown)?;
                let dialog = other.dialog.as_ref().ok_or_else(unknown)?;
                // For that call's peer, our tag is the one of its far end.
                let replaces = format!(
                    "{};to-tag={};from-tag={}",
                    dialog.call_id, dialog.remote_tag, dialog.local_tag
                );
                let separator = if text.contains('?') { '&' } else { '?' };
                format!("<{text}{separator}Replaces={}>", escaped(&replaces))
            }
        };
        let identity = account.and_then(|account| self.accounts.get(account));
        let referred_by = identity.map(|account| format!("<{}>", account.spec.identity));
        let mut headers = vec![("Refer-To".to_owned(), refer_to)];
        headers.extend(referred_by.map(|by| ("Referred-By".to_owned(), by)));
        let request = RequestId::new(self.common.number());
        self.command(Command::InDialog {
            call,
            request,
            method: Method::Refer,
            headers,
            body: None,
        });
        self.answer(me, message, "transferring");
        Ok(())
    }

    /// Takes a notification of a transfer that we asked for.
    pub(super) fn transfer_goes_on(&mut self, id: CallId, message: &SipMessage) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let Some(content) = message.body() else {
            return;
        };
        for page in call.pages.iter().filter_map(|id| self.page(*id)) {
            let notify = named_event("notify")
                .with("notify", "refer")
                .with_some("substate", message.substate())
                .with("content-type", message.content_type().unwrap_or_default())
                .with("content", content.trim_end())
                .with_some("headers", message.shown_headers(&page.prefixes));
            page.send(notify, None);
        }
    }

    /// Handles a REFER of a peer.
    pub(super) fn referred(
        &mut self,
        refer: ReferId,
        account: Option<AccountId>,
        call: Option<CallId>,
        message: &SipMessage,
    ) {
        let within = call.and_then(|call| self.calls.get(call));
        let pages = match within {
            Some(call) => call.pages.clone(),
            None => account
                .map(|it| self.accounts.masters(it))
                .unwrap_or_default(),
        };
        let is_within = within.is_some();
        let account = within.map(|call| call.account).or(account);
        let has_room = self.transfers.has_room(is_within, account);
        let target = NameAddr::read(message.header("Refer-To").unwrap_or_default());
        let uri = target.uri.parse::<Uri>();
        let may_wait = has_room && !pages.is_empty() && uri.is_ok();
        let places = may_wait.then(|| Places::take(&self.common, is_within));
        let (Ok(uri), Some(places)) = (uri, places.flatten()) else {
            self.common.decline_refer(refer);
            return;
        };
        let referred_by = message.header("Referred-By").map(str::to_owned);
        let referred_by = referred_by.unwrap_or_else(|| format!("<{}>", message.sender().uri));
        let number = refer_number(refer);
        let replaces = uri.as_sip().and_then(|uri| {
            let mut fields = uri.header_fields();
            let found = fields.find(|(name, _)| name.eq_ignore_ascii_case("Replaces"));
            let (_, value) = found?;
            Some(value.split(';').next().unwrap_or_default().to_owned())
        });
        let (plain, _) = target.uri.split_once('?').unwrap_or((target.uri, ""));
        for page in pages.iter().filter_map(|id| self.page(*id)) {
            let event = named_event("transfer")
                .with("refer_id", number)
                .with("refer_to", plain)
                .with("referred_by", referred_by.as_str())
                .with_some("replaces", replaces.as_deref())
                .with_some("headers", message.shown_headers(&page.prefixes));
            let data = Object::new().with("sip", "event").with("result", event);
            page.send_data(data, None);
        }
        self.transfers.transfers.insert(
            number,
            Transfer {
                refer,
                account,
                within: is_within,
                target: target.uri.to_owned(),
                referred_by,
                call: None,
                at: Instant::now(),
                _places: places,
            },
        );
    }

    /// Adds the header fields of a transfer to the call of a page that follows it. Returns the
    /// transfer's number.
    pub(super) fn follow(
        &mut self,
        me: PageId,
        number: u64,
        headers: &mut Vec<(String, String)>,
    ) -> Result<u32, Refusal> {
        let none = Refusal::State("no transfer?");
        let Some(number) = u32::try_from(number).ok() else {
            return Err(none);
        };
        // Numbers can be guessed, and the content of a transfer lets others take over its calls.
        let own = self.account_of(me).map(|account| account.id);
        let transfer = self.transfers.waiting_for(number, own).ok_or(none)?;
        headers.push(("Referred-By".to_owned(), transfer.referred_by.clone()));
        if let Ok(Uri::Sip(uri)) = transfer.target.parse() {
            for (name, value) in uri.header_fields() {
                headers.push((name.into_owned(), value.into_owned()));
            }
        }
        Ok(number)
    }

    /// Reports the progress of a call to its transferor.
    pub(super) fn report(&mut self, id: CallId, code: u16, reason: &str, last: bool) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let Some(number) = call.reports_to else {
            return;
        };
        if last {
            call.reports_to = None;
        }
        let transfers = &mut self.transfers.transfers;
        let refer = transfers.get(&number).map(|transfer| transfer.refer);
        if last {
            transfers.remove(&number);
        }
        if let Some(refer) = refer {
            self.command(Command::NotifyRefer {
                refer,
                code,
                reason: (!reason.is_empty()).then(|| reason.to_owned()),
                last,
            });
        }
    }

    /// `decline` with `refer_id`.
    pub(super) fn decline_transfer(
        &mut self,
        me: PageId,
        message: &Message,
    ) -> Result<(), Refusal> {
        let DeclineTransfer {
            refer_id: number,
            code,
        } = Fields(&message.body).read()?;
        let code = declining_code(code);
        let own = self.account_of(me).map(|account| account.id);
        let key = u32::try_from(number).unwrap_or_default();
        let none = Refusal::State("no transfer?");
        let transfer = self.transfers.take_of(key, own).ok_or(none)?;
        self.command(Command::NotifyRefer {
            refer: transfer.refer,
            code,
            reason: None,
            last: true,
        });
        let declining = named_event("declining")
            .with("refer_id", number)
            .with("code", code);
        self.answer_with(me, message, declining);
        Ok(())
    }

    /// Declines transfers that nobody has followed for long.
    pub(super) fn forget_transfers(&mut self, now: Instant) {
        for transfer in self.transfers.take_expired(now) {
            self.common.decline_refer(transfer.refer);
        }
    }
}

/// Escapes a value of a URI's header field (RFC 3261 section 25.1).
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
