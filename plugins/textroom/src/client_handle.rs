//! A client's handle: its PeerConnection, and its requests by the API.

use std::sync::Arc;

use portunus_core::sdp::{Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_core::{
    Asked, FieldError, Fields, Handle, HandleEvent, JsepKind, LocalJsep, Message, PluginHandle,
    Reply,
};
use portunus_resources::{Answer, Asker};
use serde_json::{Value, json};

use crate::guest::Guest;
use crate::management::{reply, requested_name};
use crate::refusal::Refusal;
use crate::requests::{Management, Membership, Negotiation};
use crate::shared::Shared;

/// A handle as long as its client is there.
pub(crate) struct ClientHandle {
    handle: Handle,
    shared: Arc<Shared>,
    guest: Guest,
    phase: Phase,
}

/// The state of the handle's only PeerConnection.
enum Phase {
    Fresh,
    /// It was offered, and may be up. The asker is the client at that time.
    SetUp(Asker),
    /// It has ended. The handle cannot have another one.
    Over,
}

impl ClientHandle {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        ClientHandle {
            guest: Guest::new(&handle, shared.clone()),
            handle,
            shared,
            phase: Phase::Fresh,
        }
    }

    /// Answers a request about the PeerConnection. Returns an offer, if there is one.
    fn negotiate(
        &mut self,
        asked: Asked<Negotiation>,
        message: &Message,
        asker: Asker,
    ) -> Result<Option<LocalJsep>, Refusal> {
        let fields = Fields(&message.body);
        asker.check_scope(fields, "room", false)?;
        let answers = |kind| message.jsep.as_ref().is_some_and(|jsep| jsep.kind == kind);
        match (asked.permit(fields, asker.rights)?, &self.phase) {
            (Negotiation::Setup, Phase::Fresh) => {
                let offer = self.handle.offer(description(), false)?;
                self.phase = Phase::SetUp(asker);
                Ok(Some(offer))
            }
            (Negotiation::Setup, Phase::SetUp(_) | Phase::Over) => Err(Refusal::AlreadySetUp),
            (Negotiation::Restart, Phase::SetUp(_)) => {
                Ok(Some(self.handle.offer(description(), true)?))
            }
            (Negotiation::Restart, Phase::Fresh | Phase::Over) => Err(Refusal::NotSetUp),
            // The core has taken the answer.
            (Negotiation::Ack, _) if answers(JsepKind::Offer) => {
                Err(FieldError::wrong_type("jsep", "an answer").into())
            }
            (Negotiation::Ack, _) => Ok(None),
        }
    }

    /// Answers the request in `textroom` or `request`. It needs no data channel.
    fn answer(
        &mut self,
        request: &str,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Answer, Refusal> {
        let wanted = requested_name(fields, request)?;
        match Asked::<Membership>::named(wanted) {
            Some(asked) => self.guest.by_api(asked, fields, asker).map(Answer::from),
            None => self.shared.manage(wanted, fields, asker),
        }
    }

    /// Takes the client out of its rooms, because it or its PeerConnection is gone.
    fn go(&mut self) {
        self.phase = Phase::Over;
        self.guest.go();
    }
}

impl PluginHandle for ClientHandle {
    fn message(&mut self, mut message: Message) -> Reply {
        // This side offers.
        message.offer = None;
        let fields = Fields(&message.body);
        let refuse = |refusal: Refusal| Reply::Success(refusal.to_event().into());
        let name = match fields.required("request") {
            Ok(name) => name,
            Err(error) => return refuse(error.into()),
        };
        let asker = Asker::client(&self.handle, &message);
        if let Some(asked) = Asked::<Negotiation>::named(name) {
            let (answer, offer) = match self.negotiate(asked, &message, asker) {
                Ok(offer) => (json!({ "textroom": "event", "result": "ok" }), offer),
                Err(refusal) => (refusal.to_object().into(), None),
            };
            self.handle.push(Some(&message.transaction), answer, offer);
            return Reply::Ack(None);
        }
        if Asked::<Management>::named(name).is_none() {
            return refuse(Refusal::UnknownRequest(name.to_owned()));
        }
        let wanted = requested_name(fields, name).unwrap_or(name);
        match self.shared.home(wanted, fields) {
            Some(home) => match self.guest.ask(&home, fields, &asker) {
                Ok(later) => Reply::Later(later),
                Err(refusal) => Reply::Success(refusal.to_object().into()),
            },
            None => reply(self.answer(name, fields, &asker)),
        }
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Data(message) => {
                if let Phase::SetUp(asker) = &self.phase {
                    self.guest.take(&message.payload, asker);
                }
            }
            HandleEvent::Hangup(_) => self.go(),
            // There is no media, and a client that joins sends the first message.
            HandleEvent::Up
            | HandleEvent::DataChannel { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Paused { .. }
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

/// Returns an offer of data channels alone.
fn description() -> Description {
    Description::offer(OfferOptions {
        name: "Text room".to_owned(),
        session_id: String::new(),
        media: vec![MediaOffer::new(Kind::Data, Direction::SendRecv)],
    })
}

/// A panic of the plugin drops the handle. It must not stay in its rooms.
impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.go();
    }
}
