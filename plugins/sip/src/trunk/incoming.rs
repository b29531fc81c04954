//! Calls of a trunk to audio rooms.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use portunus_call::ServerCall;
use portunus_sip::agent::{AgentEvent, CallId};
use portunus_sip::message::Uri;
use portunus_telephony::{Entrance, IncomingCall, Telephony};
use tokio::sync::mpsc;

use super::talk::{Deed, Talk};
use super::visit::{Farewell, Pin};
use super::{Line, Office};
use crate::sip_message::SipMessage;

/// A call by a trunk.
pub(super) struct Incoming {
    pub(super) call: CallId,
    /// Its source address.
    pub(super) from: IpAddr,
    pub(super) invite: SipMessage,
    /// Where it goes.
    pub(super) destination: Destination,
    /// Held until the call ends.
    pub(super) line: Line,
}

/// Where a call goes.
#[derive(Debug)]
pub(super) enum Destination {
    /// The room of this number.
    Room(String),
    /// A room that the reception chooses.
    Reception(IncomingCall),
}

impl Destination {
    fn entrance(&self, telephony: &Telephony) -> Option<Arc<dyn Entrance>> {
        match self {
            Destination::Room(room) => telephony.entrance(room),
            Destination::Reception(call) => telephony.reception()?.receive(call),
        }
    }
}

/// Accepts a call, and attends it to its end.
pub(super) async fn attend(
    office: Arc<Office>,
    incoming: Incoming,
    events: mpsc::Receiver<AgentEvent>,
) {
    let Incoming {
        call,
        from,
        invite,
        destination,
        line: _line,
    } = incoming;
    let reject = |code| office.reject(call, code);
    let Some(entrance) = destination.entrance(&office.telephony) else {
        tracing::info!(%call, ?destination, "a call to a room that is not there");
        return reject(404);
    };
    let room = entrance.room();
    let waits = || office.pins.waits(&entrance.room(), Instant::now());
    if let Some(wait) = entrance.wants_pin().then(waits).flatten() {
        tracing::info!(%call, room, "a call is refused: too many wrong pins");
        let seconds = wait.as_secs().saturating_add(1).to_string();
        let later = vec![("Retry-After".to_owned(), seconds)];
        return office.reject_with(call, 480, later);
    }
    let media = match ServerCall::new(office.call.clone()) {
        Ok(opened) => opened,
        Err(error) => {
            tracing::warn!(%call, "a call is refused: {error}");
            return reject(503);
        }
    };
    let mut talk = Talk::new(Arc::clone(&office), call, media, events);
    let offer = invite.sdp();
    let is_ours = offer.is_none();
    let sdp = match &offer {
        Some(offer) => talk.media.answer(offer),
        None => {
            talk.media.expect_at(from);
            talk.media.offer()
        }
    };
    let sdp = match sdp {
        Ok(sdp) if is_ours || talk.media.codec().is_some() => sdp,
        Ok(_) => return talk.reject(488),
        Err(error) => {
            tracing::debug!(%call, "the offer of a call is refused: {error}");
            return talk.reject(488);
        }
    };
    talk.accept(sdp);
    match visit(&mut talk, &*entrance, &invite).await {
        Farewell::Ended { code, reason } => {
            tracing::debug!(%call, code, reason, "a call has ended")
        }
        Farewell::HangUp => {
            talk.hang_up();
            while !matches!(talk.next(None).await, Deed::End { .. }) {}
        }
    }
}

async fn visit(talk: &mut Talk, entrance: &dyn Entrance, invite: &SipMessage) -> Farewell {
    loop {
        match talk.next(None).await {
            Deed::Acknowledge(ack) => {
                if let Some(answer) = SipMessage::from(&ack).sdp()
                    && talk.media.codec().is_none()
                    && let Err(error) = talk.media.accept_answer(&answer)
                {
                    tracing::debug!(call = %talk.call, "the answer in an ACK is of no use: {error}");
                }
                break;
            }
            Deed::End { code, reason } => return Farewell::Ended { code, reason },
            Deed::Gone => return Farewell::HangUp,
            _ => {}
        }
    }
    let Some(codec) = talk.media.codec() else {
        return Farewell::HangUp;
    };
    let pin = match talk.ask_pin(entrance, codec).await {
        Ok(pin) => pin,
        Err(farewell) => return farewell,
    };
    // It may have changed meanwhile.
    let codec = talk.media.codec().unwrap_or(codec);
    match talk.enter(entrance, shown(invite), codec, Pin::Shown(pin)) {
        Ok(visit) => talk.stay(visit).await,
        Err(error) => {
            tracing::info!(call = %talk.call, "a caller is not let in: {error}");
            Farewell::HangUp
        }
    }
}

/// Returns the shown name of a caller: its name, else its number.
fn shown(invite: &SipMessage) -> Option<String> {
    let from = invite.sender();
    let name = from.display.trim_matches('"').replace("\\", "");
    if !name.is_empty() {
        return Some(name);
    }
    let uri: Uri = from.uri.parse().ok()?;
    Some(uri.subscriber()?.into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

    use portunus_sip::message::Message;

    use super::*;

    #[test]
    fn a_caller_is_shown_by_its_name_or_by_its_number_alone() {
        for (from, expected) in [
            ("\"Ann\" <sip:+4930@h.test;user=phone>", Some("Ann")),
            (
                "<sip:+4930;tgrp=g1;trunk-context=h.test@h.test>",
                Some("+4930"),
            ),
            ("<sip:+49-30-55@h.test>", Some("+493055")),
            ("<tel:+49-30;phone-context=h.test>", Some("+4930")),
            ("<sip:ann@h.test>", Some("ann")),
            ("<sip:h.test>", None),
        ] {
            let text = format!(
                "INVITE sip:1@h.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK1\r\nFrom: {from};tag=r\r\n\
                 To: <sip:1@h.test>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\nContact: <sip:192.0.2.7>\r\nMax-Forwards: 70\r\n\r\n"
            );
            let Message::Request(request) = Message::parse(text.as_bytes()).unwrap() else {
                panic!("a request");
            };
            let invite = SipMessage::from(&Arc::new(request));
            assert_eq!(shown(&invite).as_deref(), expected, "{from}");
        }
    }
}
