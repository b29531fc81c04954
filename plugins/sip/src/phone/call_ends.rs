//! The ends of calls, by either side.

use std::time::Duration;

use portunus_core::{Fields, Message};
use portunus_sip::agent::{CallId, Cause, Command, ExtraHeaders};
use portunus_sip::message::StatusCode;
use tokio::time::Instant;

use super::Phone;
use super::registrations::shown_or_empty;
use crate::call::End;
use crate::directory::Key;
use crate::ending::Ending;
use crate::events::named_event;
use crate::failure::Failure;
use crate::headers;
use crate::refusal::Refusal;
use crate::sip_message::SipMessage;
use crate::status::{CallStatus, PageId};

/// The interval of repeated 180 responses.
pub(crate) const RING_AGAIN: Duration = Duration::from_secs(60);

impl Phone {
    /// `hangup`. Without a call there is no event.
    pub(super) fn hangup(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let headers = headers::read(Fields(&message.body))?;
        let Some(page) = self.page_mut(me) else {
            return Ok(());
        };
        let Some(side) = page.call.as_mut() else {
            return Ok(());
        };
        let (id, status) = (side.id, side.status);
        let ending = match status {
            CallStatus::Inviting => Ending::cancelled(),
            CallStatus::Progress => Ending::new(486, StatusCode::BUSY_HERE.reason()),
            CallStatus::InCall | CallStatus::Reinviting | CallStatus::Reinvited => Ending::bye(),
            CallStatus::Idle | CallStatus::Invited | CallStatus::Closing => return Ok(()),
        };
        let hangingup = named_event("hangingup");
        page.reply(&message.transaction, hangingup);
        self.end_by(id, ending, headers);
        Ok(())
    }

    /// Ends a call by our side. Clients get the event when it is over.
    pub(super) fn end_by(&mut self, id: CallId, ending: Ending, headers: ExtraHeaders) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let is_refusal = ending.code >= 300 && call.caller.is_some() && call.since.is_none();
        let code = ending.code;
        call.ending = Some(ending);
        call.ring_at = None;
        call.parked = None;
        for page in call.pages.clone() {
            if let Some(side) = self.side(page, id) {
                side.status = CallStatus::Closing;
                // Media ends at once.
                side.media = None;
            }
        }
        self.command(match is_refusal {
            true => Command::Reject {
                call: id,
                code,
                reason: None,
                headers,
            },
            false => Command::Hangup { call: id, headers },
        });
    }

    /// A page's PeerConnection is gone.
    pub(crate) fn connection_lost(&mut self, me: PageId) {
        let Some(page) = self.page_mut(me) else {
            return;
        };
        let Some(side) = page.call.as_mut() else {
            return;
        };
        let (id, status, is_moving) = (side.id, side.status, side.moving);
        if status == CallStatus::Closing {
            return;
        }
        if status.is_in_call() && !is_moving && self.park(me, id) {
            return;
        }
        let Some(page) = self.page(me) else {
            return;
        };
        // This event has no transaction, unlike all others.
        let hangingup = page.data().with("result", named_event("hangingup"));
        page.push(None, hangingup, None);
        if is_moving {
            self.let_go(me, &End::of(Ending::new(480, "Temporarily Unavailable")));
            return;
        }
        let unavailable = Ending::new(480, StatusCode::TEMPORARILY_UNAVAILABLE.reason());
        match status {
            CallStatus::Inviting => self.end_by(id, Ending::cancelled(), Vec::new()),
            CallStatus::Invited if self.rings_elsewhere(me, id) => {
                self.let_go(me, &End::of(unavailable));
            }
            CallStatus::Invited | CallStatus::Progress => self.end_by(id, unavailable, Vec::new()),
            _ => self.end_by(id, Ending::bye(), Vec::new()),
        }
    }

    /// Whether a ringing call rings at other pages, too.
    pub(super) fn rings_elsewhere(&self, me: PageId, id: CallId) -> bool {
        let call = self.calls.get(id);
        call.is_some_and(|call| call.pages.iter().any(|page| *page != me))
    }

    /// A call has ended: removes it, and notifies its pages.
    pub(super) fn call_ended(
        &mut self,
        id: CallId,
        cause: Cause,
        code: u16,
        why: &Failure<'_>,
        message: Option<SipMessage>,
    ) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let ending = match (cause, &call.ending) {
            (Cause::Bye, _) => Ending::new(200, "Session Terminated"),
            (Cause::Hangup | Cause::NoAck | Cause::Lost, Some(ending)) => ending.clone(),
            (Cause::Hangup | Cause::NoAck | Cause::Lost, None) if code < 300 => Ending::bye(),
            (Cause::Declined, Some(ending)) => ending.clone(),
            (Cause::Cancelled, _) => {
                let cancel = message.as_ref().filter(|_| call.caller.is_some());
                let elsewhere = cancel.and_then(SipMessage::ended_elsewhere);
                elsewhere.unwrap_or_else(Ending::cancelled)
            }
            // The peer accepted before our CANCEL came.
            (_, Some(ending)) if code < 300 => ending.clone(),
            _ => Ending::new(code, why.plain()),
        };
        self.report(id, ending.code, &ending.reason, true);
        let because = message.as_ref().map(SipMessage::reason).unwrap_or_default();
        // A call that begins has one page.
        let page = self.calls.get(id).and_then(|call| call.pages.first());
        let reason = match ending.reason == why.plain() {
            true => why.to(page.and_then(|page| self.page(*page))).into_owned(),
            false => ending.reason,
        };
        let text = match (cause, ending.text) {
            (_, Some(text)) => Some(text),
            (Cause::NoAck, None) => Some("the peer has not acknowledged the call".to_owned()),
            (Cause::Lost, None) => Some("the peer has not kept up the call".to_owned()),
            _ => None,
        };
        let end = End {
            code: ending.code,
            reason,
            text,
            because,
            message,
        };
        let Some(call) = self.remove_call(id) else {
            return;
        };
        self.transfers.forget_call(id);
        if let Some(account) = self.accounts.get_mut(call.account) {
            account.parked.retain(|parked| parked.call != id);
        }
        for page in &call.pages {
            self.finish(*page, id, &end);
        }
        drop(call.parked);
        self.end_idle_account(call.account);
        self.send_lines(call.account);
    }

    /// Notifies a page that it has lost its call.
    pub(super) fn finish(&mut self, me: PageId, id: CallId, end: &End) {
        let Some(page) = self.page_mut(me) else {
            return;
        };
        if page.call.as_ref().is_none_or(|side| side.id != id) {
            return;
        }
        let headers = shown_or_empty(page, end.message.as_ref());
        page.send(end.event().with_some("headers", headers), None);
        page.call = None;
        page.handle.close_pc();
        self.notify_of(me, || end.event());
    }

    /// Takes a call from a page. Other pages keep it.
    pub(super) fn let_go(&mut self, me: PageId, end: &End) {
        let Some(id) = self.side_of(me).map(|side| side.id) else {
            return;
        };
        let account = match self.calls.get_mut(id) {
            Some(call) => {
                call.pages.retain(|page| *page != me);
                Some(call.account)
            }
            None => None,
        };
        self.finish(me, id, end);
        if let Some(account) = account {
            self.send_lines(account);
        }
    }

    /// Removes a page. Its call ends, or waits for another page.
    pub(crate) fn detached(&mut self, me: PageId) {
        let Some(page) = self.page_mut(me) else {
            return;
        };
        let number = page.master_id;
        let subscriptions = std::mem::take(&mut page.subscriptions);
        let publications = std::mem::take(&mut page.publications);
        for subscription in subscriptions.into_values() {
            self.forget_subscription(subscription);
            self.command(Command::Unsubscribe { subscription });
        }
        for publication in publications.into_values() {
            self.forget_subscription(publication);
            self.command(Command::Unpublish { publication });
        }
        let messages = self.messages.extract_if(|_, sent| sent.page == me);
        for (request, _) in messages {
            self.common.directory.leave(Key::Request(request));
        }
        self.accounts.forget_page(me);
        self.leave_call(me);
        for helper in self.pages.helpers(me) {
            // The account leaves with this page, so the call waits from now on.
            let side = self.side_of(helper);
            let talks = side.filter(|side| side.status.is_in_call() && !side.moving);
            if let Some(id) = talks.map(|side| side.id) {
                self.park(helper, id);
            }
            if let Some(helper) = self.page(helper) {
                helper.handle.end();
            }
        }
        let account = self.account_of(me).map(|account| account.id);
        self.leave_account(me);
        self.pages.remove(me);
        self.common.directory.remove_page(me, number);
        if let Some(account) = account {
            self.send_lines(account);
        }
    }

    fn leave_call(&mut self, me: PageId) {
        let Some(side) = self.side_of(me) else {
            return;
        };
        let (id, status, is_moving) = (side.id, side.status, side.moving);
        if is_moving || (status == CallStatus::Invited && self.rings_elsewhere(me, id)) {
            self.let_go(me, &End::default());
            return;
        }
        let is_parked = status.is_in_call() && self.park(me, id);
        if !is_parked && status != CallStatus::Closing {
            let unavailable = Ending::new(480, StatusCode::TEMPORARILY_UNAVAILABLE.reason());
            let ending = match status {
                CallStatus::Inviting => Ending::cancelled(),
                status if status.rings() => unavailable,
                _ => Ending::bye(),
            };
            self.end_by(id, ending, Vec::new());
            if let Some(call) = self.calls.get_mut(id) {
                call.pages.retain(|page| *page != me);
            }
        }
    }

    /// Repeats 180, because proxies end calls that are silent for long (RFC 3261 section 13.3.1.1).
    pub(super) fn ring_again(&mut self, now: Instant) {
        let due: Vec<CallId> = self
            .calls
            .values_mut()
            .filter(|call| call.ring_at.is_some_and(|at| at <= now))
            .map(|call| {
                call.ring_at = Some(now + RING_AGAIN);
                call.id
            })
            .collect();
        for call in due {
            self.command(Command::Progress {
                call,
                code: 180,
                headers: Vec::new(),
                body: None,
            });
        }
    }
}
