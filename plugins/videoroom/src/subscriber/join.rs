//! Joining to receive.

use portunus_core::sdp::Kind;
use portunus_core::{Fields, Handle, HandleId, LocalJsep, Object};
use serde_json::Value;

use super::payloads::Payloads;
use super::want::{Layers, Want};
use super::{Due, Exchange, Subscriber};
use crate::id::{Id, Ids};
use crate::refusal::Refusal;
use crate::room::RoomState;

/// What a subscriber's `join` says.
#[derive(Debug)]
pub(crate) struct SubscriberJoin {
    private_id: Option<u64>,
    use_msid: bool,
    autoupdate: bool,
    streams: Vec<Want>,
    /// In the old form: the publisher, and which kinds of media.
    legacy: Option<Legacy>,
}

#[derive(Debug)]
struct Legacy {
    feed: Id,
    audio: bool,
    video: bool,
    data: bool,
}

impl SubscriberJoin {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        let flag = |name| fields.boolean(name);
        let private_id = fields.positive("private_id")?;
        let use_msid = flag("use_msid")?.unwrap_or(false);
        let autoupdate = flag("autoupdate")?.unwrap_or(true);
        let (streams, legacy) = if fields.has("streams") {
            (
                Want::list(fields, "streams", ids)?.unwrap_or_default(),
                None,
            )
        } else {
            let feed = ids.required(fields, "feed")?;
            let legacy = Legacy {
                feed: feed.clone(),
                audio: flag("offer_audio")?.unwrap_or(true),
                video: flag("offer_video")?.unwrap_or(true),
                data: flag("offer_data")?.unwrap_or(true),
            };
            let want = Want {
                feed,
                mid: None,
                crossrefid: None,
                send: true,
                layers: Layers::read(fields)?,
            };
            (vec![want], Some(legacy))
        };
        Ok(SubscriberJoin {
            private_id,
            use_msid,
            autoupdate,
            streams,
            legacy,
        })
    }
}

impl RoomState {
    /// Adds a subscription; gives what its client is told.
    pub(crate) fn join_subscriber(
        &mut self,
        handle: &Handle,
        join: SubscriberJoin,
    ) -> Result<(Value, LocalJsep), Refusal> {
        let owner = join.private_id.and_then(|id| self.owner_of(id)).cloned();
        if self.options.require_pvtid && owner.is_none() {
            return Err(Refusal::Unauthorized("this room needs a private_id"));
        }
        let mut planned = self.plan(join.streams)?;
        if let Some(legacy) = &join.legacy {
            planned.retain(|planned| legacy.takes(planned.kind()));
        }
        if planned.is_empty() {
            return Err(Refusal::Sdp("There is nothing to offer".to_owned()));
        }
        let e2ee = self.e2ee_of(&planned)?.unwrap_or(false);
        let key = handle.id();
        let subscriber = Subscriber {
            handle: handle.clone(),
            owner: owner.clone(),
            private_id: join.private_id,
            use_msid: join.use_msid,
            autoupdate: join.autoupdate,
            e2ee,
            lines: Vec::new(),
            payloads: Payloads::default(),
            exchange: Exchange::None,
            due: Due::default(),
            paused: false,
            cut_off: false,
        };
        self.subscribers.insert(key, subscriber);
        if let Some(owner) = owner.and_then(|owner| self.people.get_mut(&owner)) {
            owner.subscriptions.insert(key);
        }
        let subscribed = planned
            .into_iter()
            .try_for_each(|planned| self.subscribe(key, planned).map(drop));
        let offer = subscribed
            .and_then(|()| self.offer(key))
            .inspect_err(|_| self.leave_subscriber(key))?;
        let publisher = join.legacy.and_then(|legacy| self.people.get(&legacy.feed));
        let attached = Object::new()
            .with("videoroom", "attached")
            .with("room", self.id.to_json())
            .with("streams", self.summaries(key));
        let attached = match publisher {
            Some(publisher) => attached
                .with_all(publisher.named())
                .with("warning", "deprecated_api"),
            None => attached,
        };
        Ok((attached.into(), offer))
    }

    /// Forgets a subscription.
    pub(crate) fn leave_subscriber(&mut self, key: HandleId) {
        self.clear_lines(key);
        let Some(subscriber) = self.subscribers.remove(&key) else {
            return;
        };
        let owner = subscriber.owner.and_then(|id| self.people.get_mut(&id));
        if let Some(owner) = owner {
            owner.subscriptions.remove(&key);
        }
    }
}

impl Legacy {
    fn takes(&self, kind: Kind) -> bool {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }
}
