//! Incoming calls, and `accept`, `progress`, `send_ringing` and `decline`.

use std::time::SystemTime;

use portunus_core::sdp::plain::FarSession;
use portunus_core::{Fields, JsepKind, Message, Object};
use portunus_sip::agent::{AccountId, CallId, Command};
use portunus_sip::dialog::DialogId;
use portunus_sip::message::StatusCode;
use serde::Deserialize;
use tokio::time::Instant;

use super::Phone;
use super::call_ends::RING_AGAIN;
use crate::call::{Call, End};
use crate::descriptions::{description, sdp_body, without_data};
use crate::ending::Ending;
use crate::events::named_event;
use crate::headers;
use crate::media::{CallSide, Fault, PageOffer, SrtpWish, srtp_offered};
use crate::page::{Change, PageCall};
use crate::refusal::{NOT_IN_A_CALL, Refusal};
use crate::register_request::yes;
use crate::sip_message::{Caller, SipMessage};
use crate::status::{CallStatus, PageId};

/// The members of `accept` and `progress`.
#[derive(Deserialize)]
struct Accept<'a> {
    #[serde(default = "yes")]
    autoaccept_reinvites: bool,
    srtp: Option<&'a str>,
    srtp_profile: Option<&'a str>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
}

/// The members of `decline`.
#[derive(Deserialize)]
struct Decline {
    code: Option<i64>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
}

impl Phone {
    /// Handles an incoming call.
    pub(super) fn incoming(
        &mut self,
        id: CallId,
        account: AccountId,
        dialog: &DialogId,
        invite: SipMessage,
    ) {
        let rung = match self.accounts.contains(account) {
            false => Err(404),
            true if !self.common.directory.add_call(id, &dialog.call_id, self.id) => Err(503),
            true => self.ring(id, account, dialog, invite),
        };
        if let Err(code) = rung {
            self.remove_call(id);
            self.common.reject(id, code, Vec::new());
        }
    }

    /// Rings at the free pages of an account. Returns the status that refuses the call, if it does
    /// not ring.
    fn ring(
        &mut self,
        id: CallId,
        account: AccountId,
        dialog: &DialogId,
        invite: SipMessage,
    ) -> Result<(), u16> {
        let pages = self.free_pages(account);
        let sdp = invite.sdp();
        if sdp.is_none() && invite.body().is_some() {
            return Err(415);
        }
        let settings = self.common.context.settings();
        let checked = sdp
            .as_deref()
            .map(|sdp| CallSide::check_offer(sdp, settings));
        let offer = match checked.transpose() {
            Ok(offer) => offer,
            Err(fault) => {
                tracing::debug!(call = %id, "an incoming call is refused: {fault}");
                let code = fault.status();
                if fault.is_shown() {
                    let end = End::of(Ending::new(code, phrase(code)));
                    for page in &pages {
                        self.notify_refused(*page, &dialog.call_id, &end);
                    }
                }
                return Err(code);
            }
        };
        let caller = Caller {
            srtp: offer.as_ref().and_then(srtp_offered),
            invite,
        };
        if pages.is_empty() {
            self.missed(account, &dialog.call_id, &caller);
            return Err(486);
        }
        let mut call = Call::new(
            id,
            account,
            dialog.call_id.clone(),
            caller.invite.sender().uri.to_owned(),
        );
        call.offerless = offer.is_none();
        let displayname = caller.invite.sender().display;
        call.displayname = Some(displayname.to_owned()).filter(|name| !name.is_empty());
        call.caller = Some(Box::new(caller));
        call.note_dialog(dialog);
        self.calls.insert(call);
        let mut rings = false;
        for page in pages {
            rings |= self.ring_at(page, id, offer.as_ref());
        }
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.pages.is_empty()) else {
            return Err(488);
        };
        if rings {
            call.ring_at = Some(Instant::now() + RING_AGAIN);
            self.command(Command::Progress {
                call: id,
                code: 180,
                headers: Vec::new(),
                body: None,
            });
        }
        self.send_lines(account);
        Ok(())
    }

    /// Rings at a page. Returns whether the caller gets 180 for it.
    fn ring_at(&mut self, me: PageId, id: CallId, offer: Option<&FarSession>) -> bool {
        let (Some(page), Some(call)) = (self.pages.get_mut(me), self.calls.get_mut(id)) else {
            return false;
        };
        let Some(caller) = &call.caller else {
            return false;
        };
        let (mut media, mut jsep) = (None, None);
        if let Some(offer) = offer {
            match CallSide::called(&self.common.context, id, &page.handle, offer) {
                Ok((side, offer)) => (media, jsep) = (Some(side), Some(offer)),
                Err(fault) => {
                    tracing::debug!(call = %id, "a page is not told of a call: {fault}");
                    return false;
                }
            }
        }
        let event = caller
            .members("incomingcall", &call.call_id)
            .with_some("headers", caller.invite.shown_headers(&page.prefixes));
        page.call = Some(PageCall {
            media,
            ..PageCall::new(id, call.call_id.clone(), CallStatus::Invited)
        });
        page.send(event.clone(), jsep);
        call.pages.push(me);
        let rings = page.automatic_ringing;
        self.notify_of(me, || event);
        rings
    }

    /// Notifies a page of a call that was refused for its offer.
    fn notify_refused(&self, me: PageId, call_id: &str, end: &End) {
        if let Some(page) = self.page(me) {
            let data = Object::new()
                .with("sip", "event")
                .with("result", end.event())
                .with("call_id", call_id);
            page.push(None, data, None);
            self.notify(page, || end.event());
        }
    }

    /// Notifies the pages of an account of a missed call.
    fn missed(&mut self, account: AccountId, call_id: &str, caller: &Caller) {
        let (from, to) = (caller.invite.sender(), caller.invite.recipient());
        let displayname = Some(from.display).filter(|name| !name.is_empty());
        let event = named_event("missed_call")
            .with("caller", from.uri)
            .with_some("displayname", displayname)
            .with("callee", to.uri);
        for page in self
            .accounts
            .masters(account)
            .into_iter()
            .filter_map(|id| self.page(id))
        {
            let data = Object::new()
                .with("sip", "event")
                .with("result", event.clone())
                .with("call_id", call_id);
            page.send_data(data, None);
            self.notify(page, || event.clone());
        }
    }

    /// `accept`.
    pub(super) fn accept(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let side = self.side_of(me).ok_or(Refusal::State("not ringing?"))?;
        if side.moving {
            return self.accept_move(me, message);
        }
        if !side.status.rings() {
            return Err(Refusal::State("not ringing?"));
        }
        let id = side.id;
        let members: Accept<'_> = Fields(&message.body).read()?;
        // The description of `progress` is still valid.
        let is_said = side.status == CallStatus::Progress && message.jsep.is_none();
        let offerless = self.calls.get(id).is_some_and(|call| call.offerless);
        let answered = self.answer_description(me, message, &members, is_said, offerless);
        let (sdp, srtp) = self.or_refused(id, answered)?;
        self.ring_no_more(id, me, &End::of(Ending::new(200, "Accepted elsewhere")));
        self.command(Command::Accept {
            call: id,
            headers: members.headers,
            body: Some(sdp_body(sdp)),
        });
        let (mut peer, mut account) = (String::new(), None);
        if let Some(call) = self.calls.get_mut(id) {
            call.since = Some(SystemTime::now());
            call.ring_at = None;
            (peer, account) = (call.peer.clone(), Some(call.account));
        }
        self.report(id, 200, "OK", true);
        let Some(page) = self.page_mut(me) else {
            return Ok(());
        };
        if let Some(side) = page.call.as_mut() {
            side.status = CallStatus::InCall;
            side.autoaccept = members.autoaccept_reinvites;
            side.srtp_required = srtp.is_mandatory();
            if offerless {
                side.change = Some(Change::Acknowledged);
                side.transaction = Some(message.transaction.clone());
            }
        }
        let name = if offerless { "accepting" } else { "accepted" };
        page.reply(&message.transaction, named_event(name));
        self.notify_of(me, || named_event(name).with("username", peer.as_str()));
        if let Some(account) = account {
            self.send_lines(account);
        }
        Ok(())
    }

    /// `progress`.
    pub(super) fn progress(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let side = self.side_of(me);
        let side = side.filter(|side| side.status == CallStatus::Invited && !side.moving);
        let id = side.ok_or(Refusal::State("not ringing?"))?.id;
        let members: Accept<'_> = Fields(&message.body).read()?;
        let offerless = self.calls.get(id).is_some_and(|call| call.offerless);
        let answered = self.answer_description(me, message, &members, false, offerless);
        let (sdp, _) = self.or_refused(id, answered)?;
        // Early media comes from one page, which keeps the call.
        self.ring_no_more(id, me, &End::of(Ending::new(200, "Accepted elsewhere")));
        self.command(Command::Progress {
            call: id,
            code: 183,
            headers: members.headers,
            body: Some(sdp_body(sdp)),
        });
        self.report(id, 183, "Session Progress", false);
        let Some(page) = self.page_mut(me) else {
            return Ok(());
        };
        if let Some(side) = page.call.as_mut() {
            side.status = CallStatus::Progress;
            side.autoaccept = members.autoaccept_reinvites;
            if offerless {
                side.transaction = Some(message.transaction.clone());
            }
        }
        let progressed = named_event("progressed");
        page.reply(&message.transaction, progressed.clone());
        self.notify_of(me, || progressed);
        Ok(())
    }

    /// Refuses a call whose sides have no codec in common.
    fn or_refused<T>(&mut self, id: CallId, answered: Result<T, Refusal>) -> Result<T, Refusal> {
        if matches!(answered, Err(Refusal::NothingInCommon)) {
            let ending = Ending::new(488, phrase(488)).because(Fault::NothingInCommon);
            self.end_by(id, ending, Vec::new());
        }
        answered
    }

    /// Returns the description for the caller of `accept` and `progress`, and the SRTP policy.
    fn answer_description(
        &mut self,
        me: PageId,
        message: &Message,
        members: &Accept<'_>,
        is_said: bool,
        offerless: bool,
    ) -> Result<(String, SrtpWish), Refusal> {
        let srtp = || SrtpWish::new(members.srtp, members.srtp_profile);
        if is_said {
            let srtp = srtp()?;
            let media = self
                .page_mut(me)
                .and_then(|page| page.call.as_mut()?.media.as_mut());
            let sdp = media
                .and_then(|media| media.said())
                .ok_or(Refusal::MissingSdp)?
                .to_owned();
            return Ok((sdp, srtp));
        }
        let kind = if offerless {
            JsepKind::Offer
        } else {
            JsepKind::Answer
        };
        let jsep = description(message, Some(kind))?;
        let srtp = srtp()?;
        without_data(jsep)?;
        if offerless {
            let page = self.pages.get_mut(me).ok_or(NOT_IN_A_CALL)?;
            let side = page.call.as_ref().ok_or(NOT_IN_A_CALL)?;
            let call = self.calls.get(side.id);
            let peer = call.and_then(|call| call.caller.as_ref()?.invite.contact_address());
            let offer = PageOffer {
                jsep,
                pending: message.offer.clone(),
                srtp,
            };
            let (media, sdp) =
                CallSide::calling(&self.common.context, side.id, &page.handle, offer, peer)
                    .map_err(Fault::in_offer)?;
            let side = page.call.as_mut().ok_or(NOT_IN_A_CALL)?;
            side.media = Some(media);
            return Ok((sdp, srtp));
        }
        let media = self
            .page_mut(me)
            .and_then(|page| page.call.as_mut()?.media.as_mut());
        let media = media.ok_or(Refusal::MissingSdp)?;
        let sdp = media.answer(jsep, srtp).map_err(Fault::in_answer)?;
        Ok((sdp, srtp))
    }

    /// Ends the ringing at all other pages.
    fn ring_no_more(&mut self, id: CallId, but: PageId, end: &End) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let others: Vec<PageId> = call.pages.extract_if(.., |page| *page != but).collect();
        for page in others {
            self.finish(page, id, end);
        }
    }

    /// `send_ringing`.
    pub(super) fn send_ringing(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let page = self.page(me).ok_or(NOT_IN_A_CALL)?;
        let side = page
            .call
            .as_ref()
            .filter(|side| side.status.rings() && !side.moving);
        let side = side.ok_or(NOT_IN_A_CALL)?;
        let headers = headers::read(Fields(&message.body))?;
        self.command(Command::Progress {
            call: side.id,
            code: 180,
            headers,
            body: None,
        });
        page.push(Some(&message.transaction), page.data(), None);
        Ok(())
    }

    /// `decline` of a call. Without one there is no event.
    pub(super) fn decline(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        if fields.has("refer_id") {
            return self.decline_transfer(me, message);
        }
        let Some(side) = self.side_of(me) else {
            return Ok(());
        };
        if !side.status.rings() {
            return Ok(());
        }
        let (id, is_moving) = (side.id, side.moving);
        let Decline { code, headers } = fields.read()?;
        let code = declining_code(code);
        if let Some(page) = self.page(me) {
            let declining = named_event("declining")
                .with("code", code)
                .with_some("call_id", page.call_id());
            page.reply(&message.transaction, declining);
            self.notify(page, || named_event("declined").with("code", code));
        }
        let ending = Ending::new(code, phrase(code));
        if is_moving || self.rings_elsewhere(me, id) {
            if is_moving || code < 600 {
                self.let_go(me, &End::of(ending));
                return Ok(());
            }
            // As with forking proxies, 6xx ends all branches.
            let elsewhere = End::of(Ending::new(code, "Declined elsewhere"));
            self.ring_no_more(id, me, &elsewhere);
        }
        self.end_by(id, ending, headers);
        Ok(())
    }

    /// Takes the caller's ACK to our 2xx, with an answer if the offer was ours.
    pub(super) fn acknowledged(&mut self, id: CallId, message: &SipMessage) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let peer = call.peer.clone();
        let Some((me, page)) = self.owner_of(id) else {
            return;
        };
        let Some(side) = page.call.as_mut() else {
            return;
        };
        if !matches!(side.change, Some(Change::Acknowledged | Change::Quiet)) {
            return;
        }
        let is_quiet = side.change.take() == Some(Change::Quiet);
        let (Some(sdp), Some(media)) = (message.sdp(), side.media.as_mut()) else {
            let ending = Ending::bye().because(Fault::NoDescription);
            self.end_by(id, ending, Vec::new());
            return;
        };
        match media.peer_answered(&sdp) {
            Ok(_) if is_quiet => {}
            Ok(jsep) => {
                side.status = CallStatus::InCall;
                side.answered = true;
                let accepted = named_event("accepted").with("username", peer);
                page.send(accepted, jsep);
            }
            Err(fault) => {
                tracing::debug!(call = %id, "the answer in an ACK is of no use: {fault}");
                return self.end_by(id, Ending::bye().because(fault), Vec::new());
            }
        }
        self.change_is_over(me);
    }
}

/// Returns the status code of the member `code` of `decline`.
pub(crate) fn declining_code(code: Option<i64>) -> u16 {
    let is_final = |code: &u16| (400..=699).contains(code);
    match code.map(u16::try_from) {
        None => 603,
        Some(code) => code.ok().filter(is_final).unwrap_or(486),
    }
}

/// Returns the usual phrase of a status code.
pub(crate) fn phrase(code: u16) -> &'static str {
    StatusCode::new(code).map_or("", StatusCode::reason)
}
