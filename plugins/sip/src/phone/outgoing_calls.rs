//! `call`, and the call until the peer has accepted.

use std::sync::Arc;

use portunus_core::{Fields, Jsep, JsepKind, Message};
use portunus_sip::agent::{CallId, Command, Invite};
use portunus_sip::dialog::DialogId;
use portunus_sip::message::Uri;
use serde::Deserialize;

use super::{Phone, new_call_id};
use crate::account::Secret;
use crate::call::Call;
use crate::descriptions::{description, sdp_body, without_data};
use crate::ending::Ending;
use crate::events::named_event;
use crate::headers;
use crate::media::{CallSide, Fault, PageOffer, SrtpWish};
use crate::page::PageCall;
use crate::profile::credentials_of;
use crate::refusal::Refusal;
use crate::register_request::{called, secret, yes};
use crate::sip_message::{SipMessage, host_address};
use crate::status::{CallStatus, PageId};

/// The maximum length of a Call-ID from a client.
const MAX_CALL_ID: usize = 256;

/// The members of `call`.
#[derive(Deserialize)]
struct CallMembers<'a> {
    uri: &'a str,
    call_id: Option<&'a str>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
    srtp: Option<&'a str>,
    srtp_profile: Option<&'a str>,
    authuser: Option<&'a str>,
    #[serde(default = "yes")]
    autoaccept_reinvites: bool,
    refer_id: Option<u64>,
    secret: Option<&'a str>,
    ha1_secret: Option<&'a str>,
}

/// A call that a page may make.
struct CallWish<'a> {
    uri: Uri,
    /// The callee as the page named it.
    text: &'a str,
    call_id: String,
    jsep: &'a Jsep,
    srtp: SrtpWish,
    secret: Option<Secret>,
    authuser: Option<&'a str>,
    headers: Vec<(String, String)>,
    autoaccept: bool,
    /// The transfer that the call follows.
    refer: Option<u32>,
}

impl Phone {
    /// Checks that a page may call and send messages.
    pub(super) fn check_may_call(&self, me: PageId) -> Result<(), Refusal> {
        let may = self
            .page(me)
            .is_some_and(|page| page.registration.may_call());
        match may && self.account_of(me).is_some() {
            true => Ok(()),
            false => Err(Refusal::State("register first")),
        }
    }

    pub(super) fn call(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.check_may_call(me)?;
        let status = self.page(me).map_or(CallStatus::Idle, |page| page.status());
        if status != CallStatus::Idle {
            return Err(Refusal::Busy(status));
        }
        let mut wanted: CallMembers<'_> = Fields(&message.body).read()?;
        let (text, call_id) = (wanted.uri, wanted.call_id);
        let secret = secret(wanted.secret, wanted.ha1_secret)?;
        let srtp = SrtpWish::new(wanted.srtp, wanted.srtp_profile)?;
        let uri = Uri::Sip(called(text)?);
        let jsep = description(message, Some(JsepKind::Offer))?;
        without_data(jsep)?;
        if let Some(call_id) = call_id {
            self.check_call_id(call_id)?;
        }
        let refer = match wanted.refer_id {
            None => None,
            Some(number) => Some(self.follow(me, number, &mut wanted.headers)?),
        };
        let call_id = call_id.map_or_else(new_call_id, str::to_owned);
        let id = CallId::new(self.common.number());
        if !self.common.directory.add_call(id, &call_id, self.id) {
            return Err(Refusal::TooMany("the server has too many calls"));
        }
        let wish = CallWish {
            uri,
            text,
            call_id,
            jsep,
            srtp,
            secret,
            authuser: wanted.authuser,
            headers: wanted.headers,
            autoaccept: wanted.autoaccept_reinvites,
            refer,
        };
        let begun = self.begin_call(me, id, wish, message);
        if begun.is_err() {
            self.remove_call(id);
        }
        begun
    }

    /// Calls, once the call has a place among those of the server.
    fn begin_call(
        &mut self,
        me: PageId,
        id: CallId,
        wish: CallWish<'_>,
        message: &Message,
    ) -> Result<(), Refusal> {
        self.spend(message)?;
        let not_registered = || Refusal::State("register first");
        let page = self.page(me).ok_or_else(not_registered)?;
        let account = self.account_of(me).ok_or_else(not_registered)?;
        let spec = Arc::clone(&account.spec);
        let account = account.id;
        let secret = wish.secret.as_ref();
        let credentials = secret.and_then(|it| credentials_of(&spec, it, wish.authuser));
        let peer = host_address(spec.outbound_proxy.as_ref().unwrap_or(&wish.uri));
        let offer = PageOffer {
            jsep: wish.jsep,
            pending: message.offer.clone(),
            srtp: wish.srtp,
        };
        let (media, offer) = CallSide::calling(&self.common.context, id, &page.handle, offer, peer)
            .map_err(Fault::in_offer)?;
        let call_id = wish.call_id;
        self.calls.insert(Call {
            outgoing: true,
            reports_to: wish.refer,
            pages: vec![me],
            ..Call::new(id, account, call_id.clone(), wish.text.to_owned())
        });
        if let Some(number) = wish.refer {
            self.transfers.set_call(number, id);
        }
        if let Some(page) = self.page_mut(me) {
            page.call = Some(PageCall {
                transaction: Some(message.transaction.clone()),
                media: Some(media),
                autoaccept: wish.autoaccept,
                srtp_required: wish.srtp.is_mandatory(),
                ..PageCall::new(id, call_id.clone(), CallStatus::Inviting)
            });
            let calling = named_event("calling").with("call_id", call_id.as_str());
            page.reply(&message.transaction, calling);
        }
        self.command(Command::Invite {
            account,
            call: id,
            invite: Box::new(Invite {
                uri: wish.uri,
                call_id: Some(call_id.clone()),
                offer: Some(sdp_body(offer)),
                headers: wish.headers,
                credentials,
                cancel_early: spec.rfc2543_cancel,
            }),
        });
        self.notify_of(me, || {
            named_event("calling")
                .with("callee", wish.text)
                .with("call-id", call_id.as_str())
        });
        self.send_lines(account);
        Ok(())
    }

    /// Checks that a Call-ID from a client is valid, and is not that of another call.
    pub(super) fn check_call_id(&self, call_id: &str) -> Result<(), Refusal> {
        let is_word = |byte: u8| byte.is_ascii_graphic();
        let is_one = !call_id.is_empty() && call_id.len() <= MAX_CALL_ID;
        if !is_one || !call_id.bytes().all(is_word) {
            return Err(Refusal::Value("call_id"));
        }
        match self.common.directory.has_call_id(call_id) {
            true => Err(Refusal::Value("call_id is that of another call")),
            false => Ok(()),
        }
    }

    /// Takes a provisional response of the peer.
    pub(super) fn call_progresses(&mut self, id: CallId, dialog: &DialogId, message: &SipMessage) {
        let code = message.code();
        self.report(id, code, message.phrase(), false);
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        call.note_dialog(dialog);
        let peer = call.peer.clone();
        let Some((me, page)) = self.owner_of(id) else {
            return;
        };
        let headers = message.shown_headers(&page.prefixes);
        let Some(side) = page.call.as_mut() else {
            return;
        };
        if side.status != CallStatus::Inviting && side.status != CallStatus::InCall {
            return;
        }
        let is_ringing = matches!(code, 180 | 183);
        let mut has_media = false;
        let sdp = message.sdp().filter(|_| is_ringing);
        match (sdp, side.media.as_mut()) {
            (Some(sdp), Some(media)) => match media.peer_answered(&sdp) {
                Ok(jsep) => {
                    side.forks.note(dialog, &sdp);
                    if let Some(jsep) = jsep {
                        side.answered = true;
                        side.early = true;
                        side.status = CallStatus::InCall;
                        let progress = named_event("progress")
                            .with("username", peer.as_str())
                            .with_some("headers", headers)
                            .with_some("isfocus", message.is_focus().then_some(true));
                        page.send(progress, Some(jsep));
                        has_media = true;
                    }
                }
                Err(fault) => {
                    self.give_up(id, &fault);
                    return;
                }
            },
            _ if is_ringing => {
                let ringing = named_event("ringing").with_some("headers", headers);
                page.send(ringing, None);
            }
            _ => {}
        }
        let proceeding = named_event("proceeding").with("code", code);
        page.send(proceeding, None);
        let event = if has_media { "progress" } else { "proceeding" };
        self.notify_of(me, || named_event(event).with("code", code));
    }

    /// Takes the 2xx of the peer.
    pub(super) fn call_is_accepted(&mut self, id: CallId, dialog: &DialogId, message: &SipMessage) {
        self.report(id, message.code(), message.phrase(), true);
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        call.note_dialog(dialog);
        call.since = Some(std::time::SystemTime::now());
        let (peer, account) = (call.peer.clone(), call.account);
        let Some((me, page)) = self.owner_of(id) else {
            return;
        };
        let headers = message.shown_headers(&page.prefixes);
        let Some(side) = page.call.as_mut() else {
            return;
        };
        if side.status == CallStatus::Closing {
            return;
        }
        let forks = std::mem::take(&mut side.forks);
        let early = || forks.unheard(dialog).map(str::to_owned);
        let jsep = match (message.sdp().or_else(early), side.media.as_mut()) {
            (Some(sdp), Some(media)) => match media.peer_answered(&sdp) {
                Ok(jsep) => jsep,
                Err(fault) => {
                    self.give_up(id, &fault);
                    return;
                }
            },
            // The page has its answer.
            _ if side.answered => None,
            _ => {
                self.give_up(id, &Fault::NoDescription);
                return;
            }
        };
        side.status = CallStatus::InCall;
        side.answered = true;
        side.early = false;
        let accepted = named_event("accepted")
            .with("username", peer.as_str())
            .with_some("headers", headers)
            .with_some("isfocus", message.is_focus().then_some(true));
        page.send(accepted, jsep);
        self.notify_of(me, || {
            named_event("accepted").with("username", peer.as_str())
        });
        self.send_lines(account);
        self.change_is_over(me);
    }

    /// Ends a call whose description by the peer cannot be used.
    fn give_up(&mut self, id: CallId, fault: &Fault) {
        tracing::debug!(call = %id, "a call is given up: {fault}");
        self.end_by(id, Ending::bye().because(fault), Vec::new());
    }
}
