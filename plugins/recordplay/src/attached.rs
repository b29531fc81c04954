//! A client's handle: its requests, and what happens to its PeerConnection.

use std::sync::Arc;

use portunus_core::{
    Fields, Handle, HandleEvent, JsepKind, Message, PluginHandle, Reply, Right, Rights,
};
use serde_json::{Value, json};

use crate::Shared;
use crate::refusal::Refusal;
use crate::requests::{REQUESTS, Request};
use crate::session::Session;

/// A client that records or plays.
pub(crate) struct Attached {
    session: Session,
    shared: Arc<Shared>,
}

/// A request, and who answers it.
enum Answer {
    Now(Reply),
    Event(Result<(), Refusal>),
}

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Self {
            session: Session::new(handle, Arc::clone(&shared)),
            shared,
        }
    }

    /// An error here is told at once, as what is wrong with a request that there is not.
    fn request(&self, message: &Message) -> Result<Answer, Refusal> {
        let fields = Fields(&message.body);
        let given = fields.required_string("request")?;
        let name = given.to_ascii_lowercase();
        match name.as_str() {
            "update" => {
                self.shared.may_update(&message.body)?;
                return Ok(Answer::Now(self.shared.update()));
            }
            "list" => {
                let with_private = self.shared.shows_key(&message.body)?;
                return Ok(Answer::Now(self.shared.list(with_private)));
            }
            "configure" => return self.configure(fields).map(Answer::Now),
            _ => {}
        }
        let request = Request::read(&name, message);
        let request = request.ok_or_else(|| Refusal::Unknown(given.to_owned()))?;
        let allowed = self.check(&name, message);
        let done = allowed.and_then(|()| self.perform(request?, message));
        Ok(Answer::Event(done))
    }

    /// Whether whoever makes a request may do so.
    fn check(&self, name: &str, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let public = Rights::if_so(self.shared.config.public && name == "record", Right::Record);
        let rights = message.rights.and(public);
        let rights = rights.with_admin_key(fields, self.shared.config.admin_key());
        REQUESTS.check(name, fields, rights)?;
        Ok(message
            .scope
            .check(message.body.get("id"), name == "record")?)
    }

    fn configure(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let settings = self.session.settings().configured(fields)?;
        self.session.set_settings(settings);
        Ok(Reply::Success(json!({
            "recordplay": "configure",
            "status": "ok",
            "settings": {
                "video-keyframe-interval": crate::recorded::millis(settings.keyframes),
                "video-bitrate-max": settings.bitrate,
            },
        })))
    }

    fn perform(&self, request: Request<'_>, message: &Message) -> Result<(), Refusal> {
        let transaction = message.transaction.as_str();
        match request {
            Request::Record(record) => {
                let told_why = message.rights.may(Right::Record);
                self.session.record(transaction, &record, told_why)
            }
            Request::Play(play) => self.session.play(transaction, play),
            Request::Restart => self.session.restart(transaction),
            Request::Start => self.session.start(transaction),
            Request::Seek(position) => self.session.seek(transaction, position),
            Request::Pause => {
                self.session.pause(transaction, true);
                Ok(())
            }
            Request::Resume => {
                self.session.pause(transaction, false);
                Ok(())
            }
            Request::Stop => {
                self.session.stop(transaction);
                Ok(())
            }
        }
    }

    /// An offer that is not answered leaves nothing behind.
    fn refused(&self, message: &Message) {
        self.shared.counts.refused.add();
        let jsep = message.jsep.as_ref();
        if jsep.is_some_and(|jsep| jsep.kind == JsepKind::Offer) {
            self.session.handle.discard_offer();
        }
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        match self.request(&message) {
            Ok(Answer::Now(reply)) => reply,
            Ok(Answer::Event(Ok(()))) => Reply::Ack(None),
            Ok(Answer::Event(Err(refusal))) => {
                self.refused(&message);
                let transaction = Some(message.transaction.as_str());
                let handle = &self.session.handle;
                handle.push(transaction, refusal.to_json(), None);
                Reply::Ack(None)
            }
            Err(refusal) => {
                self.refused(&message);
                Reply::Success(refusal.to_json())
            }
        }
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Up => self.session.up(),
            HandleEvent::Hangup(_) => self.session.hung_up(),
            HandleEvent::SlowLink {
                audio, from_client, ..
            } => self.session.slow_link(audio, from_client),
            HandleEvent::Media { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::DataChannel { .. }
            | HandleEvent::Data(_) => {}
        }
    }

    fn query(&self) -> Value {
        self.session.query()
    }

    fn detach(&mut self) {
        self.session.close();
    }
}
