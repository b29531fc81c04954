//! Changes of a call: `update`, `hold` and `unhold`, and those by the peer.

use portunus_core::sdp::Direction;
use portunus_core::sdp::plain::FarSession;
use portunus_core::{Fields, JsepKind, Message};
use portunus_sip::agent::{CallId, Command};
use serde::Deserialize;

use super::Phone;
use crate::descriptions::{sdp_body, without_data};
use crate::ending::Ending;
use crate::events::named_event;
use crate::headers;
use crate::media::{Fault, srtp_offered};
use crate::page::{Change, Hold, PageCall};
use crate::refusal::{NOT_IN_A_CALL, Refusal};
use crate::sip_message::{Caller, SipMessage};
use crate::status::{CallStatus, PageId};

/// The members of `hold` and `unhold`.
#[derive(Deserialize)]
struct HoldMembers<'a> {
    direction: Option<&'a str>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
}

/// Returns a page's side of an accepted call.
fn talking(side: Option<&mut PageCall>) -> Result<&mut PageCall, Refusal> {
    side.filter(|side| side.status.is_in_call() && !side.moving)
        .ok_or(NOT_IN_A_CALL)
}

impl Phone {
    /// `update`: another offer in a call, or the answer to the peer's.
    pub(super) fn update(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let page = self.pages.get_mut(me).ok_or(NOT_IN_A_CALL)?;
        let side = talking(page.call.as_mut())?;
        let headers = headers::read(Fields(&message.body))?;
        let jsep = message.jsep.as_ref().filter(|jsep| jsep.update);
        let jsep = jsep.ok_or(Refusal::MissingUpdate)?;
        if jsep.e2ee {
            return Err(Refusal::Encrypted);
        }
        without_data(jsep)?;
        let id = side.id;
        let media = side.media.as_mut().ok_or(Refusal::MissingUpdate)?;
        let (command, name) = match (side.status, jsep.kind) {
            (CallStatus::Reinvited, JsepKind::Answer) => {
                let sdp = media.answer_update(jsep).map_err(Fault::in_answer)?;
                side.status = CallStatus::InCall;
                side.change = None;
                (accept(id, headers, sdp), "updated")
            }
            (CallStatus::Reinvited, JsepKind::Offer) if side.change == Some(Change::Asked) => {
                let sdp = media
                    .update(jsep, message.offer.clone())
                    .map_err(Fault::in_offer)?;
                side.change = Some(Change::Acknowledged);
                (accept(id, headers, sdp), "updating")
            }
            (CallStatus::InCall, JsepKind::Offer) if side.early => {
                return Err(Refusal::State("the peer has not accepted the call yet"));
            }
            (CallStatus::InCall, JsepKind::Offer) => {
                let sdp = media
                    .update(jsep, message.offer.clone())
                    .map_err(Fault::in_offer)?;
                side.status = CallStatus::Reinviting;
                side.change = Some(Change::Update);
                let body = Some(sdp_body(sdp));
                let reinvite = Command::Reinvite {
                    call: id,
                    headers,
                    body,
                };
                (reinvite, "updating")
            }
            (CallStatus::Reinviting | CallStatus::Reinvited, JsepKind::Offer) => {
                return Err(Refusal::State("a change of the call is under way"));
            }
            _ => return Err(Refusal::MissingUpdate),
        };
        page.reply(&message.transaction, named_event(name));
        self.command(command);
        self.change_is_over(me);
        Ok(())
    }

    /// `hold` and `unhold`. Without a call there is no event. A request before the peer has
    /// accepted, or during another change, waits and gets its event later. The last of several such
    /// requests counts.
    pub(super) fn hold(
        &mut self,
        me: PageId,
        message: &Message,
        is_on: bool,
    ) -> Result<(), Refusal> {
        let Some(page) = self.pages.get_mut(me) else {
            return Ok(());
        };
        let side = page.call.as_mut();
        let Some(side) = side.filter(|side| side.status.is_in_call() && !side.moving) else {
            return Ok(());
        };
        let HoldMembers { direction, headers } = Fields(&message.body).read()?;
        let direction = match direction.filter(|_| is_on) {
            None if is_on => Some(Direction::SendOnly),
            None => None,
            Some("sendonly") => Some(Direction::SendOnly),
            Some("recvonly") => Some(Direction::RecvOnly),
            Some("inactive") => Some(Direction::Inactive),
            Some(_) => return Err(Refusal::Value("direction")),
        };
        let hold = Hold {
            transaction: message.transaction.clone(),
            direction,
            headers,
        };
        if side.is_changing() {
            let media = side.media.as_ref();
            let is_so = media.is_some_and(|media| media.is_held_as(direction));
            side.waiting = (!is_so).then_some(hold);
            return Ok(());
        }
        self.hold_now(me, hold)
    }

    fn hold_now(&mut self, me: PageId, hold: Hold) -> Result<(), Refusal> {
        let page = self.pages.get_mut(me).ok_or(NOT_IN_A_CALL)?;
        let side = page.call.as_mut().ok_or(NOT_IN_A_CALL)?;
        let id = side.id;
        let media = side.media.as_mut().ok_or(NOT_IN_A_CALL)?;
        let sdp = media.hold(hold.direction).map_err(Fault::in_offer)?;
        if sdp.is_some() {
            side.status = CallStatus::Reinviting;
            side.change = Some(Change::Hold);
        }
        let name = match hold.direction {
            Some(_) => "holding",
            None => "resuming",
        };
        page.reply(&hold.transaction, named_event(name));
        if let Some(sdp) = sdp {
            self.command(Command::Reinvite {
                call: id,
                headers: hold.headers,
                body: Some(sdp_body(sdp)),
            });
        }
        let account = self.calls.get(id).map(|call| call.account);
        if let Some(account) = account {
            self.send_lines(account);
        }
        Ok(())
    }

    /// Does the `hold` or `unhold` that waited for the end of a change.
    pub(super) fn change_is_over(&mut self, me: PageId) {
        let side = self.side_of_mut(me);
        let Some(side) = side.filter(|side| !side.is_changing() && !side.moving) else {
            return;
        };
        let Some(hold) = side.waiting.take() else {
            return;
        };
        if let Err(refusal) = self.hold_now(me, hold) {
            tracing::debug!("a call is neither held nor taken up again: {refusal}");
        }
    }

    /// Handles a change by the peer, or its request for an offer.
    pub(super) fn peer_changes(&mut self, id: CallId, message: SipMessage) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let reject = |code| Command::RejectReinvite {
            call: id,
            code,
            headers: Vec::new(),
        };
        let sdp = message.sdp();
        let Some(me) = call.pages.first().copied() else {
            // A parked call has no page to ask.
            let parked = call.parked.as_mut();
            let answer = parked.and_then(|media| match &sdp {
                Some(sdp) => media.peer_changes(sdp).ok(),
                None => None,
            });
            let command = match answer {
                Some(answer) => accept(id, Vec::new(), answer),
                None => reject(488),
            };
            return self.command(command);
        };
        let (peer, call_id) = (call.peer.clone(), call.call_id.clone());
        let Some(page) = self.pages.get_mut(me) else {
            return;
        };
        let Some(side) = page.call.as_mut().filter(|side| side.id == id) else {
            return;
        };
        let Some(media) = side
            .media
            .as_mut()
            .filter(|_| side.status == CallStatus::InCall)
        else {
            // RFC 3261 section 14.2: one change at a time.
            return self.command(reject(491));
        };
        if side.autoaccept || side.moving {
            let answer = match &sdp {
                Some(sdp) => media.peer_changes(sdp),
                None => media.offer_again(),
            };
            let command = match answer {
                Ok(answer) => {
                    if sdp.is_none() {
                        side.change = Some(Change::Quiet);
                    }
                    accept(id, Vec::new(), answer)
                }
                Err(fault) => {
                    tracing::debug!(call = %id, "a change of a call is refused: {fault}");
                    reject(fault.status())
                }
            };
            return self.command(command);
        }
        let offer = sdp.as_deref().map(FarSession::parse);
        let taken = offer.transpose().map_err(Fault::from);
        let taken = taken.and_then(|offer| {
            let jsep = offer.as_ref().map(|offer| media.peer_updates(offer));
            Ok((jsep.transpose()?, offer))
        });
        let (jsep, offer) = match taken {
            Ok(taken) => taken,
            Err(fault) => {
                tracing::debug!(call = %id, "a change of a call is refused: {fault}");
                return self.command(reject(fault.status()));
            }
        };
        side.status = CallStatus::Reinvited;
        side.change = Some(match sdp {
            Some(_) => Change::Offered,
            None => Change::Asked,
        });
        let srtp = offer.as_ref().and_then(srtp_offered);
        let caller = Caller {
            invite: message,
            srtp,
        };
        let event = caller
            .members("updatingcall", &call_id)
            .with("username", peer)
            .with_some("headers", caller.invite.shown_headers(&page.prefixes));
        page.send(event.clone(), jsep);
        self.notify_of(me, || event);
    }

    /// The peer has cancelled its change.
    pub(super) fn peer_takes_back(&mut self, id: CallId) {
        let Some((me, page)) = self.owner_of(id) else {
            return;
        };
        let Some(side) = page.call.as_mut() else {
            return;
        };
        if side.status == CallStatus::Reinvited {
            side.status = CallStatus::InCall;
            side.change = None;
            if let Some(media) = side.media.as_mut() {
                media.take_back();
            }
        }
        self.change_is_over(me);
    }

    /// The peer has accepted a change of ours.
    pub(super) fn change_is_accepted(&mut self, id: CallId, message: &SipMessage) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let peer = call.peer.clone();
        let Some((me, page)) = self.owner_of(id) else {
            return;
        };
        let headers = message.shown_headers(&page.prefixes);
        let Some(side) = page.call.as_mut() else {
            return;
        };
        if side.status != CallStatus::Reinviting {
            return;
        }
        side.status = CallStatus::InCall;
        let change = side.change.take();
        let answered = match (message.sdp(), side.media.as_mut()) {
            (Some(sdp), Some(media)) => media.peer_answered(&sdp),
            _ => Err(Fault::NoDescription),
        };
        match (answered, change) {
            (Ok(jsep), Some(Change::Update)) => {
                let accepted = named_event("accepted")
                    .with("username", peer)
                    .with_some("headers", headers)
                    .with_some("isfocus", message.is_focus().then_some(true));
                page.send(accepted, jsep);
            }
            (Ok(_), _) => {}
            (Err(fault), _) => {
                tracing::debug!(call = %id, "the answer to a change is of no use: {fault}");
                return self.end_by(id, Ending::bye().because(fault), Vec::new());
            }
        }
        self.change_is_over(me);
    }

    /// The peer has refused a change of ours. The call stays as it was.
    pub(super) fn change_is_rejected(&mut self, id: CallId) {
        let Some((me, page)) = self.owner_of(id) else {
            return;
        };
        let Some(side) = page.call.as_mut() else {
            return;
        };
        if side.status != CallStatus::Reinviting {
            return;
        }
        side.status = CallStatus::InCall;
        if let Some(media) = side.media.as_mut() {
            media.take_back();
        }
        side.change = None;
        self.change_is_over(me);
    }
}

fn accept(call: CallId, headers: Vec<(String, String)>, sdp: String) -> Command {
    Command::AcceptReinvite {
        call,
        headers,
        body: Some(sdp_body(sdp)),
    }
}
