//! One account on several pages: their list of calls, calls that wait for a page, and calls that
//! move from one page to another.

use std::time::{SystemTime, UNIX_EPOCH};

use portunus_core::{Fields, JsepKind, Message, Object};
use portunus_sip::agent::{AccountId, CallId};
use serde_json::Value;
use tokio::time::Instant;

use super::Phone;
use crate::account::{Account, Parked};
use crate::call::{Call, End};
use crate::descriptions::description;
use crate::ending::Ending;
use crate::events::named_event;
use crate::media::Fault;
use crate::page::{PageCall, Role};
use crate::refusal::Refusal;
use crate::status::{CallStatus, PageId, RegistrationStatus};

impl Phone {
    /// `lines`: the calls of all pages.
    pub(super) fn lines(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.check_may_call(me)?;
        let Some(account) = self.account_of(me).map(|account| account.id) else {
            return Ok(());
        };
        let lines = named_event("lines").with("lines", self.lines_for(me, account));
        self.answer_with(me, message, lines);
        Ok(())
    }

    /// Sends the list of calls to the pages of an account that want it.
    pub(super) fn send_lines(&self, account: AccountId) {
        for id in self.pages_of(account) {
            let Some(page) = self.page(id).filter(|page| page.lines) else {
                continue;
            };
            if !page.registration.may_call() {
                continue;
            }
            let lines = named_event("lines").with("lines", self.lines_for(id, account));
            page.send(lines, None);
        }
    }

    /// Sends the list for a page's account.
    pub(super) fn send_lines_of(&self, me: PageId) {
        if let Some(account) = self.account_of(me) {
            self.send_lines(account.id);
        }
    }

    fn lines_for(&self, me: PageId, account: AccountId) -> Value {
        let pages = self.pages_of(account).into_iter();
        let mut lines: Vec<Value> = pages
            .filter_map(|id| {
                let page = self.page(id)?;
                let side = page.call.as_ref();
                let call = side.and_then(|side| self.calls.get(side.id));
                let held = side.and_then(|side| side.media.as_ref()?.is_held().then_some(true));
                let line = Object::new()
                    .with("id", page.handle.id().0)
                    .with_some("name", page.name.as_deref())
                    .with("self", id == me)
                    .with("helper", page.role != Role::Master)
                    .with("call_status", page.status().name())
                    .with_all(call.map(facts).unwrap_or_default())
                    .with_some("held", held);
                Some(line.into())
            })
            .collect();
        lines.extend(self.parked(account).map(|call| {
            let line = Object::new()
                .with("id", 0)
                .with("self", false)
                .with("helper", false)
                .with("call_status", "parked")
                .with_all(facts(call))
                .with("resumable", true);
            Value::from(line)
        }));
        Value::Array(lines)
    }

    fn parked(&self, account: AccountId) -> impl Iterator<Item = &Call> {
        let account = self.accounts.get(account);
        let parked = account.into_iter().flat_map(|account| &account.parked);
        parked.filter_map(|parked| self.calls.get(parked.call))
    }

    /// Returns the parked calls for a page that wants them, or `None` if there are none.
    pub(super) fn resumable(&self, me: PageId) -> Option<Value> {
        let page = self.page(me).filter(|page| page.lines)?;
        let calls = self.parked(page.account?).map(|call| {
            let facts = Object::new()
                .with("call_id", call.call_id.as_str())
                .with("username", call.peer.as_str())
                .with_some("displayname", call.displayname.as_deref())
                .with_some("since", call.since.and_then(seconds));
            Value::from(facts)
        });
        let calls: Vec<Value> = calls.collect();
        (!calls.is_empty()).then_some(Value::Array(calls))
    }

    /// Parks a call whose page or connection is gone, if the page wanted that. Returns whether it
    /// did.
    pub(super) fn park(&mut self, me: PageId, id: CallId) -> bool {
        let grace = self.common.config.reconnect_grace;
        let is_registered = |account: &&Account| account.status == RegistrationStatus::Registered;
        let account = self.account_of(me).filter(is_registered).map(|it| it.id);
        // A call that was not accepted ends with its page.
        let has_begun = self.calls.get(id).is_some_and(|call| call.since.is_some());
        let Some(account) = account.filter(|_| has_begun && !grace.is_zero()) else {
            return false;
        };
        let page = self.page_mut(me).filter(|page| page.lines);
        let side = page.and_then(|page| page.call.as_mut());
        let Some(mut media) = side.and_then(|side| side.media.take()) else {
            return false;
        };
        media.leave();
        // A client that is still there gets the end of its call, and may move it back.
        let parked = End::of(Ending::new(200, "Waiting to be resumed"));
        self.finish(me, id, &parked);
        if let Some(call) = self.calls.get_mut(id) {
            call.pages.retain(|page| *page != me);
            call.parked = Some(media);
        }
        if let Some(account) = self.accounts.get_mut(account) {
            let until = Instant::now() + grace;
            account.parked.push(Parked { call: id, until });
        }
        self.send_lines(account);
        true
    }

    /// Ends a parked call that has waited too long.
    pub(super) fn give_up_parked(&mut self, account: AccountId, id: CallId) {
        if let Some(account) = self.accounts.get_mut(account) {
            account.parked.retain(|parked| parked.call != id);
        }
        self.end_parked(id);
        self.end_idle_account(account);
        self.send_lines(account);
    }

    pub(super) fn end_parked(&mut self, id: CallId) {
        self.end_by(id, Ending::bye(), Vec::new());
    }

    /// Unregisters an account without pages and parked calls.
    pub(super) fn end_idle_account(&mut self, id: AccountId) {
        let account = self.accounts.get(id);
        let is_idle = account.is_some_and(|account| {
            account.pages.is_empty()
                && account.parked.is_empty()
                && account.status != RegistrationStatus::Unregistering
        });
        if is_idle {
            self.remove_account(id);
        }
    }

    /// `move`: a page takes a call of another page of its account, or a parked one.
    pub(super) fn take_call(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.check_may_call(me)?;
        let status = self.page(me).map_or(CallStatus::Idle, |page| page.status());
        if status != CallStatus::Idle {
            return Err(Refusal::Busy(status));
        }
        let call_id: &str = Fields(&message.body).required("call_id")?;
        let unknown = || Refusal::NoSuchCall(call_id.to_owned());
        let account = self.account_of(me).map(|account| account.id);
        let call = account.and_then(|account| self.calls.named(account, call_id));
        let call = call.ok_or_else(unknown)?;
        let (id, peer, displayname) = (call.id, call.peer.clone(), call.displayname.clone());
        let owner = call.pages.first().copied();
        let handle = self.page(me).map(|page| page.handle.clone());
        let handle = handle.ok_or_else(unknown)?;
        let media = match owner {
            None => self.calls.get_mut(id).and_then(|call| call.parked.as_mut()),
            Some(owner) => {
                let side = self.side(owner, id).ok_or_else(unknown)?;
                if side.status != CallStatus::InCall || side.moving {
                    return Err(Refusal::State("the call cannot be moved now"));
                }
                side.media.as_mut()
            }
        };
        let media = media.ok_or(Refusal::State("the call cannot be moved now"))?;
        // Everything stays as it is until the page answers with its own description.
        let offer = media.offer_to(&handle).map_err(Fault::in_offer)?;
        let is_held = media.is_held();
        if let Some(page) = self.page_mut(me) {
            let mut side = PageCall::new(id, call_id.to_owned(), CallStatus::Invited);
            side.moving = true;
            side.answered = true;
            page.call = Some(side);
            let moving = named_event("moving");
            page.reply(&message.transaction, moving);
            let moved = named_event("moved")
                .with("call_id", call_id)
                .with("username", peer)
                .with_some("displayname", displayname)
                .with_some("held", is_held.then_some(true));
            page.send(moved, Some(offer));
        }
        self.calls.get_mut(id).into_iter().for_each(|call| {
            // The owner is the first.
            call.pages.push(me);
        });
        self.hold_parked(id);
        Ok(())
    }

    /// Extends the wait of a parked call until a page has answered.
    fn hold_parked(&mut self, id: CallId) {
        let until = Instant::now() + self.common.config.reconnect_grace;
        self.accounts.extend_parked(id, until);
    }

    /// `accept` of a moved call: the page has it from now on.
    pub(super) fn accept_move(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let jsep = description(message, Some(JsepKind::Answer))?;
        let not_ringing = Refusal::State("not ringing?");
        let id = self.side_of(me).map(|side| side.id);
        let call = id.and_then(|id| self.calls.get(id)).ok_or(not_ringing)?;
        let (id, account) = (call.id, call.account);
        let handle = self.page(me).map(|page| page.handle.clone());
        let handle = handle.ok_or(Refusal::State("not ringing?"))?;
        // The first page owns it, if it is not parked.
        let owner = call
            .pages
            .iter()
            .copied()
            .find(|page| self.side_of(*page).is_some_and(|side| !side.moving));
        let (mut media, autoaccept) = match owner {
            None => {
                let parked = self.calls.get_mut(id).and_then(|call| call.parked.take());
                (parked, true)
            }
            Some(owner) => {
                let side = self.side(owner, id);
                let autoaccept = side.as_ref().is_none_or(|side| side.autoaccept);
                (side.and_then(|side| side.media.take()), autoaccept)
            }
        };
        match media.as_mut() {
            Some(media) => media.move_to(&handle, jsep),
            None => return Err(Refusal::State("the call cannot be moved now")),
        }
        if let Some(account) = self.accounts.get_mut(account) {
            account.parked.retain(|parked| parked.call != id);
        }
        if let Some(side) = self.side_of_mut(me) {
            side.media = media;
            side.status = CallStatus::InCall;
            side.moving = false;
            side.autoaccept = autoaccept;
        }
        self.answer(me, message, "accepted");
        let moved = End::of(Ending::new(200, "Moved elsewhere"));
        let others = self.calls.get_mut(id).map(|call| {
            call.pages
                .extract_if(.., |page| *page != me)
                .collect::<Vec<_>>()
        });
        for page in others.into_iter().flatten() {
            self.finish(page, id, &moved);
        }
        self.send_lines(account);
        Ok(())
    }
}

/// Returns the members of a call in `lines`.
fn facts(call: &Call) -> Object {
    Object::new()
        .with("call_id", call.call_id.as_str())
        .with("peer", call.peer.as_str())
        .with_some("displayname", call.displayname.as_deref())
        .with("outgoing", call.outgoing)
        .with_some("since", call.since.and_then(seconds))
}

fn seconds(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}
