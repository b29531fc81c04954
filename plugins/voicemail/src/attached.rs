//! A client's handle: its requests, and the events of its PeerConnection.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::{Fields, Handle, HandleEvent, Message, PluginHandle, Reply, Right, Rights};
use serde_json::{Value, json};

use crate::answer::answer;
use crate::mailbox::{Caller, Mailbox};
use crate::request::{Refusal, Request, offer};
use crate::shared::Shared;

/// A client that leaves a message.
pub(crate) struct Attached {
    handle: Handle,
    shared: Arc<Shared>,
    mailbox: Mailbox,
}

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Self {
            mailbox: Mailbox::new(handle.clone(), Arc::clone(&shared)),
            handle,
            shared,
        }
    }

    /// Returns the time limit of a message, for which a client wants so many seconds.
    fn limit(&self, seconds: Option<u64>) -> Duration {
        let limit = self.shared.config.max_duration;
        let wanted = seconds.map(|seconds| Duration::from_secs(seconds.max(1)));
        wanted.map_or(limit, |wanted| wanted.min(limit))
    }

    fn request(&self, message: &Message) -> Result<(), Refusal> {
        let may_know_reason = message.rights.may(Right::Record);
        let rights = Rights::if_so(self.shared.config.public, Right::Record);
        match Request::read(message, message.rights.and(rights))? {
            Request::Record => {
                let seconds = Fields(&message.body).member("max_duration")?;
                let (answer, mid) = answer(offer(message)?, self.mailbox.next()?)?;
                let caller = Caller {
                    mid,
                    version: answer.origin.version,
                    may_know_reason,
                    limit: self.limit(seconds),
                    asked_limit: seconds.is_some(),
                };
                let offer = message.offer.clone();
                self.mailbox
                    .record(message.transaction.clone(), offer, answer, caller);
            }
            Request::Update => {
                let jsep = offer(message)?;
                let next = self.mailbox.updated()?;
                let (mut answer, mid) = answer(jsep, next.id)?;
                if mid != next.mid {
                    return Err(Refusal::OtherLine);
                }
                answer.origin.version = next.version;
                let local = self.handle.answer(answer)?;
                let data = json!({ "voicemail": "event", "status": "updating" });
                self.mailbox
                    .push(Some(&message.transaction), data, Some(local));
            }
            Request::Stop => self.mailbox.stop(message.transaction.clone()),
        }
        Ok(())
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        if let Err(refusal) = self.request(&message) {
            self.shared.counts.refused.add();
            let transaction = Some(message.transaction.as_str());
            self.mailbox.push(transaction, refusal.to_json(), None);
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Up => self.mailbox.up(),
            HandleEvent::Hangup(_) => self.mailbox.hung_up(),
            HandleEvent::Media { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::DataChannel { .. }
            | HandleEvent::Data(_) => {}
        }
    }

    fn query(&self) -> Value {
        self.mailbox.query()
    }

    fn detach(&mut self) {
        self.mailbox.close();
    }
}
