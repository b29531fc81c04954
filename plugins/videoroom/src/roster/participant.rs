//! Who is in a room, and how that is told.

use std::collections::HashSet;

use portunus_core::sdp::Kind;
use portunus_core::{HandleId, Object};
use serde_json::{Map, Value, json};

use crate::id::Id;
use crate::publication::{Origin, Published, RecordSettings, Stream};

/// Someone who has joined a room, publishing or not.
#[derive(Debug)]
pub(crate) struct Participant {
    pub(crate) origin: Origin,
    pub(crate) id: Id,
    /// What ties subscriptions to this participant; only it knows it.
    pub(crate) private_id: u32,
    pub(crate) display: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
    /// bit/s; 0: no cap
    pub(crate) bitrate: u64,
    pub(crate) talk: TalkSettings,
    pub(crate) record: RecordSettings,
    /// What it publishes: there is a PeerConnection.
    pub(crate) media: Option<Published>,
    /// The subscriptions that gave its private id.
    pub(crate) subscriptions: HashSet<HandleId>,
}

/// When somebody counts as talking, where that is not as the room has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TalkSettings {
    /// Packets of a window.
    pub(crate) packets: Option<u64>,
    /// -dBov
    pub(crate) level: Option<u64>,
}

impl Participant {
    /// What it publishes, if its media is up.
    pub(crate) fn up(&self) -> Option<&Published> {
        self.media.as_ref().filter(|media| media.active.is_some())
    }

    /// Its name: the id, and what it shows of itself.
    pub(crate) fn named(&self) -> Object {
        let named = self.labelled(Object::new().with("id", self.id.to_json()));
        self.origin.marked(named)
    }

    /// `object` with what it shows of itself.
    pub(crate) fn labelled(&self, object: Object) -> Object {
        object
            .with_some("display", self.display.as_deref())
            .with_some("metadata", self.metadata.clone())
    }

    /// What others are told of a publisher; `talking` to those who have just come.
    pub(crate) fn published(&self, talking: bool) -> Option<Value> {
        let media = self.up()?;
        let talking = talking && !self.origin.is_dummy();
        let streams = media.streams.iter().map(|stream| stream.public(talking));
        let streams: Vec<_> = streams.collect();
        let talk = media.talking().filter(|_| talking);
        let publisher = self
            .named()
            .with_some("audio_codec", media.codec(Kind::Audio))
            .with_some("video_codec", media.codec(Kind::Video))
            .with("streams", streams)
            .with_some("talking", talk);
        Some(publisher.into())
    }

    /// Its entry in `listparticipants`.
    pub(crate) fn listed(&self) -> Value {
        let media = self.up();
        let remote = self.origin.remote().is_some();
        self.named()
            .with_some("remote", remote.then_some(true))
            .with("publisher", media.is_some())
            .with_some(
                "talking",
                media
                    .filter(|_| !self.origin.is_dummy())
                    .and_then(Published::talking),
            )
            .into()
    }

    /// Its state, for administrators.
    pub(crate) fn state(&self, room: &Id) -> Value {
        let stream = |stream: &Stream| -> Value {
            let receivers = stream.receivers.len();
            let delay = stream.delay.range();
            let levels = stream.has_levels();
            Object::new()
                .with_all(stream.described_with(["h264-profile", "vp9-profile"]))
                .with_some(
                    "playout-delay",
                    delay.map(|(min, max)| json!({ "min-delay": min, "max-delay": max })),
                )
                .with_some("audio-level-dBov", stream.talk.level.filter(|_| levels))
                .with_some("talking", levels.then_some(stream.talk.talking))
                .with_some("recording", stream.recorded())
                .with("subscribers", receivers)
                .into()
        };
        let streams = self.media.iter().flat_map(|media| &media.streams);
        let e2ee = self.media.as_ref().is_some_and(|media| media.e2ee);
        self.labelled(
            Object::new()
                .with("type", "publisher")
                .with("room", room.to_json())
                .with("id", self.id.to_json())
                .with("private_id", self.private_id),
        )
        .with("bitrate", self.bitrate)
        .with_some("e2ee", e2ee.then_some(true))
        .with("streams", streams.map(stream).collect::<Vec<_>>())
        .with("hangingup", 0)
        .with("destroyed", 0)
        .into()
    }
}
