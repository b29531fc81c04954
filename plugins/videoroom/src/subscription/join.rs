//! Joining to receive.

use portunus_core::sdp::Kind;
use portunus_core::{Fields, Handle, HandleId, LocalJsep, Object};
use serde_json::Value;

use super::Subscriber;
use super::layers::{LayerRequest, Subscribe};
use super::watch::last_n;
use crate::id::{Id, Ids};
use crate::refusal::Refusal;
use crate::room::RoomState;

/// What a subscriber's `join` says.
#[derive(Debug)]
pub(crate) struct SubscriberJoin {
    private_id: Option<u64>,
    use_msid: bool,
    autoupdate: bool,
    streams: Vec<Subscribe>,
    last_n: Option<LastN>,
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

/// The most recent speakers are wanted.
#[derive(Debug)]
struct LastN {
    speakers: usize,
    kinds: Vec<Kind>,
}

impl LastN {
    fn read(fields: Fields<'_>) -> Result<Option<Self>, Refusal> {
        let Some(speakers) = last_n(fields)? else {
            return Ok(None);
        };
        let wanted = |name| Ok::<_, Refusal>(fields.boolean(name)?.unwrap_or(true));
        let kinds = [
            (Kind::Audio, wanted("offer_audio")?),
            (Kind::Video, wanted("offer_video")?),
        ];
        let kinds = kinds.into_iter().filter(|(_, wanted)| *wanted);
        Ok(Some(LastN {
            speakers,
            kinds: kinds.map(|(kind, _)| kind).collect(),
        }))
    }
}

impl SubscriberJoin {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        let flag = |name| fields.boolean(name);
        let private_id = fields.positive("private_id")?;
        let use_msid = flag("use_msid")?.unwrap_or(false);
        let autoupdate = flag("autoupdate")?.unwrap_or(true);
        let last_n = LastN::read(fields)?;
        let (streams, legacy) = if fields.has("streams") || last_n.is_some() {
            (
                Subscribe::list(fields, "streams", ids)?.unwrap_or_default(),
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
            let request = Subscribe {
                feed,
                mid: None,
                crossrefid: None,
                send: true,
                layers: LayerRequest::read(fields)?,
            };
            (vec![request], Some(legacy))
        };
        Ok(SubscriberJoin {
            private_id,
            use_msid,
            autoupdate,
            streams,
            last_n,
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
        by_secret: bool,
    ) -> Result<(Value, LocalJsep), Refusal> {
        let owner = self.owner(join.private_id, by_secret)?;
        let mut planned = self.plan(join.streams)?;
        if let Some(legacy) = &join.legacy {
            planned.retain(|planned| legacy.takes(planned.kind()));
        }
        let speakers = join.last_n.filter(|last_n| !last_n.kinds.is_empty());
        if planned.is_empty() && speakers.is_none() {
            return Err(Refusal::Sdp("There is nothing to offer".to_owned()));
        }
        let e2ee = self.e2ee_of(&planned)?.unwrap_or(self.options.require_e2ee);
        let key = handle.id();
        self.insert_subscriber(Subscriber {
            use_msid: join.use_msid,
            autoupdate: join.autoupdate,
            e2ee,
            ..Subscriber::new(handle, owner, join.private_id)
        });
        let mut prepared = planned
            .into_iter()
            .try_for_each(|planned| self.subscribe(key, planned).map(drop));
        if prepared.is_ok()
            && let Some(LastN { speakers, kinds }) = speakers
            && let Some(subscriber) = self.subscribers.get_mut(&key)
        {
            prepared = subscriber.add_seats(&self.options, speakers, &kinds);
            self.followers.insert(key);
            self.seat_first(key);
        }
        let offer = prepared
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

    /// The participant whose private id it is, where the room needs one or it is given. Who shows the room's secret
    /// needs none.
    pub(super) fn owner(
        &self,
        private_id: Option<u64>,
        by_secret: bool,
    ) -> Result<Option<Id>, Refusal> {
        let owner = private_id.and_then(|id| self.owner_of(id)).cloned();
        if self.options.require_pvtid && owner.is_none() && !by_secret {
            return Err(Refusal::Unauthorized("this room needs a private_id"));
        }
        Ok(owner)
    }

    pub(super) fn insert_subscriber(&mut self, subscriber: Subscriber) {
        let key = subscriber.handle.id();
        let owner = subscriber.owner.as_ref();
        if let Some(owner) = owner.and_then(|owner| self.people.get_mut(owner)) {
            owner.subscriptions.insert(key);
        }
        self.subscribers.insert(key, subscriber);
    }

    /// Forgets a subscription.
    pub(crate) fn leave_subscriber(&mut self, key: HandleId) {
        self.clear_lines(key);
        let Some(subscriber) = self.subscribers.remove(&key) else {
            return;
        };
        if self.followers.remove(&key) {
            self.measure_speech();
        }
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
