//! Who is in a room, what they send, and how that is told.

use std::collections::HashSet;

use portunus_core::media::{KeyframeCache, KeyframeInterval, TalkDetection};
use portunus_core::record::Recording;
use portunus_core::sdp::{CodecName, Kind, OfferedFlags};
use portunus_core::{HandleId, Mid, Object};
use serde_json::{Map, Value, json};

use crate::delay::Delay;
use crate::forward::Forwarder;
use crate::id::Id;
use crate::origin::Origin;
use crate::recording::RecordSettings;
use crate::remote::Remotization;

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

/// What a participant sends.
#[derive(Debug)]
pub(crate) struct Published {
    /// Its place among those whose media is up; none as long as it is not.
    pub(crate) active: Option<u64>,
    pub(crate) e2ee: bool,
    /// One for each m-line.
    pub(crate) streams: Vec<Stream>,
    /// The other servers that it is published on.
    pub(crate) remotizations: Vec<Remotization>,
}

/// An m-line of a publisher.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) kind: Kind,
    pub(crate) mid: Mid,
    pub(crate) index: usize,
    /// Rejected, or not sent any more.
    pub(crate) disabled: bool,
    pub(crate) codec: Option<CodecName>,
    pub(crate) description: Option<String>,
    pub(crate) opus: OfferedFlags,
    /// The format parameters, where the packets cannot be understood without them.
    pub(crate) fmtp: Option<String>,
    pub(crate) h264_profile: Option<String>,
    pub(crate) vp9_profile: Option<String>,
    pub(crate) simulcast: bool,
    pub(crate) svc: bool,
    pub(crate) extensions: ExtensionIds,
    pub(crate) delay: Delay,
    /// The publisher lets it out.
    pub(crate) send: bool,
    /// A moderator does not let it out.
    pub(crate) moderated: bool,
    pub(crate) talk: Talk,
    /// The media plane keeps it from its last keyframe on.
    pub(crate) kept: Option<KeyframeCache>,
    /// When the media plane asks for keyframes of it.
    pub(crate) asked_every: Option<KeyframeInterval>,
    pub(crate) recording: Option<Recording>,
    /// The m-lines of subscriptions that receive it.
    pub(crate) receivers: HashSet<(HandleId, usize)>,
    pub(crate) forwarders: Vec<Forwarder>,
}

/// The numbers of the header extensions that those who take the media over need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ExtensionIds {
    pub(crate) audio_level: Option<u8>,
    pub(crate) video_orientation: Option<u8>,
    pub(crate) playout_delay: Option<u8>,
    pub(crate) dependency_descriptor: Option<u8>,
}

/// What the audio level says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Talk {
    pub(crate) talking: bool,
    /// The average at its last change, in -dBov.
    pub(crate) level: Option<f64>,
    /// What the media plane was asked to listen for.
    pub(crate) detection: Option<TalkDetection>,
    /// The media plane was asked to measure how much is spoken.
    pub(crate) measured: bool,
}

impl Stream {
    /// A new m-line of a publisher.
    pub(crate) fn new(kind: Kind, mid: Mid, index: usize) -> Self {
        Stream {
            kind,
            mid,
            index,
            disabled: true,
            codec: None,
            description: None,
            opus: OfferedFlags::default(),
            fmtp: None,
            h264_profile: None,
            vp9_profile: None,
            simulcast: false,
            svc: false,
            extensions: ExtensionIds::default(),
            delay: Delay::default(),
            send: true,
            moderated: false,
            talk: Talk::default(),
            kept: None,
            asked_every: None,
            recording: None,
            receivers: HashSet::new(),
            forwarders: Vec::new(),
        }
    }

    /// Whether its media is relayed.
    pub(crate) fn is_open(&self) -> bool {
        !self.disabled && self.send && !self.moderated
    }

    /// The file that it is recorded into now.
    fn recorded(&self) -> Option<String> {
        let recording = self.recording.as_ref();
        recording
            .filter(|recording| !recording.is_over())
            .map(Recording::file_name)
    }

    /// Whether it is audio that says how loud it is.
    pub(crate) fn has_levels(&self) -> bool {
        self.kind == Kind::Audio && !self.disabled && self.extensions.audio_level.is_some()
    }

    /// The members that all descriptions of it for clients have.
    fn described(&self) -> Object {
        self.described_with(["h264_profile", "vp9_profile"])
    }

    /// The members that all descriptions of it have, with the names of its profiles.
    fn described_with(&self, [h264_profile, vp9_profile]: [&str; 2]) -> Object {
        let place = Object::new()
            .with("type", medium(self.kind))
            .with("mindex", self.index)
            .with("mid", self.mid.as_str());
        if self.disabled {
            return place.with("disabled", true);
        }
        let set = |flag: bool| flag.then_some(true);
        place
            .with_some("description", self.description.as_deref())
            .with_some("codec", self.codec.map(CodecName::name))
            .with_some("stereo", set(self.opus.stereo))
            .with_some("fec", set(self.opus.fec))
            .with_some("dtx", set(self.opus.dtx))
            .with_some(h264_profile, self.h264_profile.as_deref())
            .with_some(vp9_profile, self.vp9_profile.as_deref())
            .with_some("simulcast", set(self.simulcast))
            .with_some("svc", set(self.svc))
    }

    /// As its publisher is told of it.
    pub(crate) fn own(&self) -> Value {
        let described = self.described();
        if self.disabled {
            return described.into();
        }
        described
            .with_some("audiolevel_ext_id", self.extensions.audio_level)
            .with_some("videoorient_ext_id", self.extensions.video_orientation)
            .with_some("playoutdelay_ext_id", self.extensions.playout_delay)
            .with_some(
                "dependencydesc_ext_id",
                self.extensions.dependency_descriptor,
            )
            .into()
    }

    /// As others are told of it; `talking` to those who have just come.
    fn public(&self, talking: bool) -> Value {
        let described = self.described();
        if self.disabled {
            return described.into();
        }
        let talk = (talking && self.has_levels()).then_some(self.talk.talking);
        described
            .with_some("talking", talk)
            .with_some("moderated", self.moderated.then_some(true))
            .into()
    }
}

impl Published {
    /// The stream of m-line `mid`.
    pub(crate) fn stream(&self, mid: Mid) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.mid == mid)
    }

    /// The stream of m-line `mid`.
    pub(crate) fn stream_mut(&mut self, mid: Mid) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.mid == mid)
    }

    /// The streams that carry data.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Stream> {
        let carries = |stream: &&Stream| stream.kind == Kind::Data && !stream.disabled;
        self.streams.iter().filter(carries)
    }

    /// The codec of the first stream of `kind` that has one.
    pub(crate) fn codec(&self, kind: Kind) -> Option<&'static str> {
        let streams = self.streams.iter().filter(|stream| !stream.disabled);
        let mut codecs = streams
            .filter(|stream| stream.kind == kind)
            .filter_map(|stream| stream.codec);
        codecs.next().map(CodecName::name)
    }

    /// The true state, if some audio says how loud it is.
    pub(crate) fn talking(&self) -> Option<bool> {
        let mut heard = self.streams.iter().filter(|stream| stream.has_levels());
        let first = heard.next()?;
        Some(first.talk.talking || heard.any(|stream| stream.talk.talking))
    }
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

/// The name of a kind of media.
pub(crate) const fn medium(kind: Kind) -> &'static str {
    match kind {
        Kind::Audio => "audio",
        Kind::Video => "video",
        Kind::Data => "data",
    }
}
