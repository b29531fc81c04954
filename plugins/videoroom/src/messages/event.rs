//! The events of a room for the observers of the server.

use portunus_core::Object;
use portunus_core::sdp::CodecName;
use portunus_room::{ConnectionId, Event, Participant, PersonId, Stream};
use serde_json::Value;

use super::person::labelled;
use super::{Show, stream};
use crate::management::forwarder;

impl Show<'_> {
    /// Writes an event.
    pub(crate) fn watched(self, event: &Event<'_>) -> Value {
        let event = match event {
            Event::Published(id) => self.media_of("published", id),
            Event::Updated(id) => self.media_of("updated", id),
            Event::Unpublished(person) => self.about("unpublished", person),
            Event::Left(person) => self.about("leaving", person),
            Event::Kicked(person) => self.about("kicked", person),
            Event::Talk(talk) => self.talk(talk),
            Event::Subscribing(key) => self.subscription("subscribing", *key),
            Event::Resubscribed(key) => self.subscription("updated", *key),
            Event::Unsubscribed { feed, mid } => self
                .event_of("unsubscribed")
                .with("feed", self.id(feed))
                .with("mid", mid.as_str()),
        };
        event.into()
    }

    /// Returns the head of an event.
    pub(crate) fn event_of(self, event: &str) -> Object {
        Object::new().with("event", event).with("room", self.room())
    }

    /// Writes that a participant has joined, and showed this token.
    pub(crate) fn has_joined(self, person: &Participant, token: Option<&str>) -> Object {
        let joined = self
            .event_of("joined")
            .with("id", self.id(person.id()))
            .with("private_id", person.private_id())
            .with_some("token", token);
        let talk = person.settings.talk;
        labelled(joined, &person.profile)
            .with_some("audio_active_packets", talk.packets)
            .with_some("audio_level_average", talk.level)
    }

    /// Writes that a stream is forwarded.
    pub(crate) fn forwarding(self, publisher: &PersonId, stream: &Stream, id: u32) -> Value {
        let forwarder = stream.forwarder(id).map(|it| (it.substream, forwarder(it)));
        let (substream, forwarder) = forwarder.unzip();
        self.event_of("rtp_forward")
            .with("publisher_id", self.id(publisher))
            .with("media", stream.kind.name())
            .with_some("codec", stream.format.codec.map(CodecName::name))
            .with_some("video_substream", substream.flatten())
            .with_all(forwarder.unwrap_or_default())
            .into()
    }

    fn media_of(self, event: &str, id: &PersonId) -> Object {
        let streams = self
            .room
            .published(id)
            .map_or(&[][..], |media| media.streams());
        let streams = streams.iter().map(|it| stream::public(it, false));
        let event = self.event_of(event).with("id", self.id(id));
        let event = match self.room.person(id) {
            Some(person) => labelled(event, &person.profile),
            None => event,
        };
        event.with("streams", streams.collect::<Vec<_>>())
    }

    fn about(self, event: &str, person: &Participant) -> Object {
        let event = self.event_of(event).with("id", self.id(person.id()));
        labelled(event, &person.profile)
    }

    fn subscription(self, event: &str, key: ConnectionId) -> Object {
        let subscriber = self.room.subscriber(key);
        let private_id = subscriber.and_then(|subscriber| subscriber.private_id);
        self.event_of(event)
            .with("streams", self.lines(key))
            .with("private_id", private_id.unwrap_or(0))
    }
}
