//! What whoever watches the server is told of a room. Those who are in it are told by [`super::telling`].

use portunus_core::sdp::CodecName;
use portunus_core::{Handle, HandleId, Mid, Object};
use portunus_resources::Id;
use serde_json::Value;

use super::RoomState;
use crate::publication::{Publication, medium};
use crate::roster::Participant;

impl RoomState {
    /// Tells what has happened: as something that `client` did, if one did it.
    pub(crate) fn notify(&self, client: Option<&Handle>, data: impl FnOnce() -> Value) {
        match client {
            Some(client) => client.notify(data),
            None => self.events.notify(data),
        }
    }

    /// An event of the room, without what else it says.
    pub(crate) fn notice(&self, event: &str) -> Object {
        Object::new()
            .with("event", event)
            .with("room", self.id.to_json())
    }

    /// Somebody has joined, and has shown this token.
    pub(crate) fn notify_joined(&self, id: &Id, token: Option<&str>) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        self.notify(person.handle(), || {
            let joined = self
                .notice("joined")
                .with("id", id.to_json())
                .with("private_id", person.private_id())
                .with_some("token", token);
            let talk = person.settings.talk;
            person
                .labelled(joined)
                .with_some("audio_active_packets", talk.packets)
                .with_some("audio_level_average", talk.level)
                .into()
        });
    }

    /// Somebody has set how its media is treated.
    pub(crate) fn notify_configured(&self, id: &Id) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        self.notify(person.handle(), || {
            self.notice("configured")
                .with("id", id.to_json())
                .with("bitrate", person.settings.bitrate)
                .into()
        });
    }

    /// Somebody's media is up (`published`), or is another by now (`updated`).
    pub(super) fn notify_published(&self, id: &Id, event: &str) {
        let (Some(person), Some(media)) = (self.roster.get(id), self.publications.up(id)) else {
            return;
        };
        self.notify(person.handle(), || {
            let streams = media.streams().iter().map(|stream| stream.public(false));
            let streams: Vec<_> = streams.collect();
            self.about(person, event).with("streams", streams).into()
        });
    }

    /// An event about somebody.
    pub(super) fn about(&self, person: &Participant, event: &str) -> Object {
        person.labelled(self.notice(event).with("id", person.id().to_json()))
    }

    /// Somebody subscribes (`subscribing`), or receives something else by now (`updated`).
    pub(super) fn notify_subscription(&self, key: HandleId, event: &str) {
        let Ok(subscriber) = self.subscriptions.get(key) else {
            return;
        };
        subscriber.handle().notify(|| {
            self.notice(event)
                .with("streams", self.summaries(key))
                .with("private_id", subscriber.private_id().unwrap_or(0))
                .into()
        });
    }

    /// Media can flow to a subscription.
    pub(crate) fn notify_subscribed(&self, key: HandleId) {
        if let Ok(subscriber) = self.subscriptions.get(key) {
            subscriber
                .handle()
                .notify(|| self.notice("subscribed").into());
        }
    }

    /// What a subscription receives, as far as somebody is to be told what it does no more.
    pub(super) fn received(&self, key: HandleId) -> Vec<(Id, Mid)> {
        match self.subscriptions.get(key) {
            Ok(subscriber) if self.events.is_watched() => subscriber.received(&self.publications),
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// What a subscription has received `before` and does no more.
    pub(super) fn notify_unsubscribed(&self, client: &Handle, before: Vec<(Id, Mid)>) {
        let after = self.received(client.id());
        for (feed, mid) in before.iter().filter(|track| !after.contains(track)) {
            client.notify(|| self.unsubscribed(feed, *mid));
        }
    }

    /// What is published ends: nobody receives it any more.
    pub(super) fn notify_ended(&self, feed: &Id, media: &Publication) {
        if !self.events.is_watched() {
            return;
        }
        for (client, mid) in self.subscriptions.receivers_of(feed, media) {
            client.notify(|| self.unsubscribed(feed, mid));
        }
    }

    /// A stream of somebody is forwarded from now on.
    pub(crate) fn notify_forwarder(
        &self,
        client: Option<&Handle>,
        publisher: &Id,
        mid: Mid,
        forwarder: u32,
    ) {
        let media = self.publications.get(publisher);
        let Some(stream) = media.and_then(|media| media.stream(mid)) else {
            return;
        };
        let Some(forwarder) = stream.forwarder(forwarder) else {
            return;
        };
        self.notify(client, || {
            self.notice("rtp_forward")
                .with("publisher_id", publisher.to_json())
                .with("media", medium(stream.kind))
                .with_some("codec", stream.codec.map(CodecName::name))
                .with_some("video_substream", forwarder.substream())
                .with_all(forwarder.to_json())
                .into()
        });
    }

    fn unsubscribed(&self, feed: &Id, mid: Mid) -> Value {
        self.notice("unsubscribed")
            .with("feed", feed.to_json())
            .with("mid", mid.as_str())
            .into()
    }
}
