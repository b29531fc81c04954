//! A client's handle: its PeerConnection, and what it asks by the API.

use std::sync::Arc;

use portunus_core::sdp::{Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_core::{
    FieldError, Fields, Handle, HandleEvent, JsepKind, LocalJsep, Message, PluginHandle, Reply,
};
use serde_json::{Value, json};

use crate::guest::Guest;
use crate::manage::{Managed, is_management, reply, requested_name};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::requests::Asker;

/// A handle as long as its client is there.
pub(crate) struct Attached {
    handle: Handle,
    shared: Arc<Shared>,
    guest: Guest,
    phase: Phase,
}

/// Where the handle's only PeerConnection stands.
enum Phase {
    Fresh,
    /// It was offered, and may be up: who asked for it.
    SetUp(Asker),
    /// It is gone; there is no other on this handle.
    Over,
}

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Attached {
            guest: Guest::new(&handle, shared.clone()),
            handle,
            shared,
            phase: Phase::Fresh,
        }
    }

    /// Answers by an event, with an offer where there is one.
    fn negotiate(&mut self, name: &str, message: &Message) -> Result<Option<LocalJsep>, Refusal> {
        let answers = |kind| message.jsep.as_ref().is_some_and(|jsep| jsep.kind == kind);
        match (name, &self.phase) {
            ("setup", Phase::Fresh) => {
                self.discard_offer(message);
                let offer = self.handle.offer(description(), false)?;
                self.phase = Phase::SetUp(Asker::client(&self.handle, message));
                Ok(Some(offer))
            }
            ("setup", Phase::SetUp(_) | Phase::Over) => Err(Refusal::AlreadySetUp),
            ("restart", Phase::SetUp(_)) => {
                self.discard_offer(message);
                Ok(Some(self.handle.offer(description(), true)?))
            }
            ("restart", Phase::Fresh | Phase::Over) => Err(Refusal::NotSetUp),
            // An `ack`: the core has taken the answer.
            _ if answers(JsepKind::Offer) => {
                Err(FieldError::wrong_type("jsep", "an answer").into())
            }
            _ => Ok(None),
        }
    }

    /// An offer of the client is not answered: this side offers.
    fn discard_offer(&self, message: &Message) {
        let offers = |jsep: &portunus_core::Jsep| jsep.kind == JsepKind::Offer;
        if message.jsep.as_ref().is_some_and(offers) {
            self.handle.discard_offer();
        }
    }

    /// Answers at once what `textroom` or `request` says, whether there is a data channel or not.
    fn answer(
        &mut self,
        request: &str,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Managed, Refusal> {
        let wanted = requested_name(fields, request)?;
        match self
            .guest
            .by_api(&wanted.to_ascii_lowercase(), fields, asker)
        {
            Some(answer) => answer.map(Managed::from),
            None => self.shared.manage(wanted, fields, asker),
        }
    }

    fn refuse(&self, message: &Message, refusal: &Refusal) -> Reply {
        self.discard_offer(message);
        Reply::Success(refusal.to_event().into())
    }

    /// The PeerConnection is gone, or the client: it is out of its rooms.
    fn go(&mut self) {
        self.phase = Phase::Over;
        self.guest.go();
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let fields = Fields(&message.body);
        let name = match fields.required_string("request") {
            Ok(name) => name,
            Err(error) => return self.refuse(&message, &error.into()),
        };
        let lower = name.to_ascii_lowercase();
        let asker = Asker::client(&self.handle, &message);
        if ["setup", "ack", "restart"].contains(&lower.as_str()) {
            let answered = self
                .shared
                .check(&lower, fields, &asker)
                .and_then(|()| self.negotiate(&lower, &message));
            let (answer, offer) = match answered {
                Ok(offer) => (json!({ "textroom": "event", "result": "ok" }), offer),
                Err(refusal) => {
                    self.discard_offer(&message);
                    (refusal.to_object().into(), None)
                }
            };
            self.handle.push(Some(&message.transaction), answer, offer);
            return Reply::Ack(None);
        }
        if !is_management(&lower) {
            return self.refuse(&message, &Refusal::UnknownRequest(name.to_owned()));
        }
        self.discard_offer(&message);
        reply(self.answer(name, fields, &asker))
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Data(message) => {
                if let Phase::SetUp(asker) = &self.phase {
                    self.guest.take(&message.payload, asker);
                }
            }
            HandleEvent::Hangup(_) => self.go(),
            // There is no media on it, and whoever joins writes first.
            HandleEvent::Up
            | HandleEvent::DataChannel { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Remb(_) => {}
        }
    }

    fn query(&self) -> Value {
        json!({ "destroyed": 0, "rooms": self.guest.memberships() })
    }

    fn detach(&mut self) {
        self.go();
    }
}

/// What is offered: data channels alone.
fn description() -> Description {
    Description::offer(OfferOptions {
        name: "Text room".to_owned(),
        session_id: String::new(),
        media: vec![MediaOffer::new(Kind::Data, Direction::SendRecv)],
    })
}

/// A plugin's fault ends the handle without a word: it does not stay in its rooms.
impl Drop for Attached {
    fn drop(&mut self) {
        self.go();
    }
}
