//! A client's handle: its requests, and the events of its PeerConnection.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::{
    Answered, Asked, Fields, Handle, HandleEvent, Message, PluginHandle, Reply, Right, Rights,
};
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::requests::{Play, Record, Request, Seek, check_answer};
use crate::session::Session;
use crate::shared::Shared;

/// A client that records or plays.
pub(crate) struct Attached {
    session: Session,
    shared: Arc<Shared>,
}

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Self {
            session: Session::new(handle, Arc::clone(&shared)),
            shared,
        }
    }

    fn perform(&self, asked: Asked<Request>, message: &Message) -> Result<Reply, Refusal> {
        let fields = Fields(&message.body);
        let (session, transaction) = (&self.session, message.transaction.as_str());
        let records = asked == Asked::unnamed(Request::Record);
        let public = Rights::if_so(self.shared.config.public && records, Right::Record);
        let rights = message.rights.and(public);
        let rights = portunus_core::with_admin_key(rights, fields, self.shared.config.admin_key());
        let request = asked.permit(fields, rights)?;
        if asked.answered() == Answered::Event {
            message.scope.check(message.body.get("id"), records)?;
        }
        match request {
            Request::Update => {
                self.shared.may_update(&message.body)?;
                return Ok(self.shared.update());
            }
            Request::List => {
                let with_private = self.shared.shows_key(&message.body)?;
                return Ok(self.shared.list(with_private));
            }
            Request::Configure => return self.configure(fields),
            Request::Record => {
                let may_know_reason = message.rights.may(Right::Record);
                session.record(transaction, &Record::read(message)?, may_know_reason)?;
            }
            Request::Play => match Play::read(message)? {
                Some(play) => session.play(transaction, play)?,
                None => session.restart(transaction)?,
            },
            Request::Start => {
                check_answer(message)?;
                session.start(transaction)?;
            }
            Request::Seek => {
                let Seek { position } = fields.read()?;
                session.seek(transaction, Duration::from_millis(position))?;
            }
            Request::Pause => session.pause(transaction, true),
            Request::Resume => session.pause(transaction, false),
            Request::Stop => session.stop(transaction),
        }
        Ok(Reply::Ack(None))
    }

    fn configure(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let settings = self.session.settings().configured(fields)?;
        self.session.set_settings(settings);
        Ok(Reply::Success(json!({
            "recordplay": "configure",
            "status": "ok",
            "settings": {
                "video-keyframe-interval": crate::complete_recording::millis(settings.keyframes),
                "video-bitrate-max": settings.bitrate,
            },
        })))
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let asked = Request::asked(Fields(&message.body));
        let answered = asked.as_ref().map_or(Answered::Reply, |it| it.answered());
        let performed = asked.and_then(|asked| self.perform(asked, &message));
        performed.unwrap_or_else(|refusal| {
            self.shared.counts.refused.add();
            let error = refusal.to_json();
            match answered {
                Answered::Reply => Reply::Success(error),
                Answered::Event => {
                    let transaction = Some(message.transaction.as_str());
                    self.session.handle.push(transaction, error, None);
                    Reply::Ack(None)
                }
            }
        })
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
            | HandleEvent::Paused { .. }
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
