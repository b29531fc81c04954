//! The messages about participants and their publications.

use portunus_core::Object;
use portunus_core::sdp::{CodecName, Description, Kind};
use portunus_room::{Participant, PersonId, Profile, Publication, Stream};
use serde_json::Value;

use super::{Show, stream};

impl Show<'_> {
    /// Writes a participant: its id and its profile.
    pub(crate) fn named(self, person: &Participant) -> Object {
        let named = Object::new().with("id", self.id(person.id()));
        labelled(named, &person.profile).with_some("dummy", person.is_dummy().then_some(true))
    }

    /// Writes a publisher whose media is up. Only new participants get the members about `talking`.
    pub(super) fn published(self, id: &PersonId, talking: bool) -> Option<Value> {
        let (person, media) = (self.room.person(id)?, self.room.published(id)?);
        let talking = talking && !person.is_dummy();
        let streams = media.streams().iter();
        let streams = streams.map(|it| stream::public(it, talking));
        let codec = |kind| media.codec(kind).map(CodecName::name);
        let published = self
            .named(person)
            .with_some("audio_codec", codec(Kind::Audio))
            .with_some("video_codec", codec(Kind::Video))
            .with("streams", streams.collect::<Vec<_>>())
            .with_some("talking", media.talking().filter(|_| talking));
        Some(published.into())
    }

    /// Writes the entries of `listparticipants`.
    pub(crate) fn participants(self) -> Vec<Value> {
        let listed = |person: &Participant| {
            let media = self.room.published(person.id());
            let talking = media.filter(|_| !person.is_dummy());
            self.named(person)
                .with_some("remote", person.is_remote().then_some(true))
                .with("publisher", media.is_some())
                .with_some("talking", talking.and_then(Publication::talking))
                .into()
        };
        self.room.people().map(listed).collect()
    }

    /// Writes the answer to a participant that has joined as `id`.
    pub(crate) fn joined(self, id: &PersonId) -> Object {
        let others = self.room.feeds().filter(|feed| *feed != id);
        let publishers: Vec<_> = others.filter_map(|id| self.published(id, true)).collect();
        let settings = self.room.settings();
        let attendees = settings.notify_joining.then(|| {
            let silent = self
                .room
                .people()
                .filter(|person| person.id() != id && self.room.published(person.id()).is_none());
            let silent = silent.map(|person| self.named(person).into());
            silent.collect::<Vec<Value>>()
        });
        let person = self.room.person(id);
        let talk = person.map(|person| person.settings.talk);
        let dominant = self.room.dominant().filter(|_| settings.dominant_speaker);
        self.head("joined")
            .with("description", settings.description.as_str())
            .with("id", self.id(id))
            .with_some("private_id", person.map(Participant::private_id))
            .with("publishers", publishers)
            .with_some("attendees", attendees)
            .with_some("dominant", dominant.map(|id| self.id(id)))
            .with_some("audio_active_packets", talk.and_then(|talk| talk.packets))
            .with_some("audio_level_average", talk.and_then(|talk| talk.level))
    }

    /// Writes the members of a publisher's answer about its negotiation: the codecs and the
    /// streams.
    pub(crate) fn agreed(self, id: &PersonId, offer: &Description) -> Object {
        let Some(media) = self.room.publication(id) else {
            return Object::new();
        };
        let offered = |kind| offer.media.iter().any(|media| media.kind == kind);
        let codec = |kind| {
            let codec = media.codec(kind).map(CodecName::name);
            codec.or(offered(kind).then_some("none"))
        };
        let streams: Vec<Value> = media.streams().iter().map(stream::own).collect();
        Object::new()
            .with_some("audio_codec", codec(Kind::Audio))
            .with_some("video_codec", codec(Kind::Video))
            .with("streams", streams)
    }

    /// Writes the state of a participant, for administrators.
    pub(crate) fn participant_state(self, person: &Participant) -> Value {
        let media = self.room.publication(person.id());
        let state = |media: &Publication, stream: &Stream| -> Value {
            let levels = stream.has_levels();
            stream::described_with(stream, ["h264-profile", "vp9-profile"])
                .with_some("playout-delay", stream.playout_delay().map(stream::delay))
                .with_some("audio-level-dBov", stream.level().filter(|_| levels))
                .with_some("talking", levels.then_some(stream.is_talking()))
                .with_some("recording", media.recorded(stream))
                .with("subscribers", self.room.receivers(person.id(), stream))
                .into()
        };
        let streams = media.into_iter().flat_map(|media| {
            let streams = media.streams().iter();
            streams.map(move |stream| state(media, stream))
        });
        let e2ee = media.is_some_and(|media| media.e2ee);
        let head = Object::new()
            .with("type", "publisher")
            .with("room", self.room())
            .with("id", self.id(person.id()))
            .with("private_id", person.private_id());
        labelled(head, &person.profile)
            .with("bitrate", person.settings.bitrate)
            .with_some("e2ee", e2ee.then_some(true))
            .with("streams", streams.collect::<Vec<_>>())
            .with("hangingup", 0)
            .with("destroyed", 0)
            .into()
    }
}

/// Adds the profile of a participant to `object`.
pub(crate) fn labelled(object: Object, profile: &Profile) -> Object {
    object
        .with_some("display", profile.display.as_deref())
        .with_some("metadata", metadata(profile))
}

/// Returns the metadata as the object that was read.
pub(super) fn metadata(profile: &Profile) -> Option<Value> {
    serde_json::from_str(profile.metadata.as_ref()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_core::Mid;
    use portunus_core::events::EventBus;
    use portunus_core::media::MediaPlane;
    use portunus_core::record::{Recorder, RecorderConfig};
    use portunus_resources::Ids;
    use portunus_room::{
        ExtensionIds, FileNames, NewRemote, Place, Remote, Room, RoomSettings, Setup,
    };
    use serde_json::json;

    use super::*;
    use crate::client::Watchers;

    /// Returns a room with a publisher of another server, who sends audio and video.
    fn room() -> (Room, PersonId) {
        let (media, _, _) = MediaPlane::detached();
        let watcher = Watchers {
            events: EventBus::default().of_plugin("test"),
            ids: Ids::Numbers,
        };
        let room = Room::new(Setup {
            name: "1234".into(),
            settings: RoomSettings::default(),
            media: media.clone(),
            recorder: Recorder::new(RecorderConfig::default()),
            names: FileNames::default(),
            watcher: Box::new(watcher),
        });
        let codecs = [CodecName::Opus, CodecName::Vp8].into_iter().enumerate();
        let streams = codecs.map(|(index, codec)| {
            let mid = Mid::new(&index.to_string()).unwrap();
            let mut stream = Stream::new(codec.kind(), mid, index);
            stream.disabled = false;
            stream.format.codec = Some(codec);
            stream.format.extensions = ExtensionIds {
                audio_level: (index == 0).then_some(1),
                ..ExtensionIds::default()
            };
            stream
        });
        let place = Place {
            port: 0,
            rtcp_port: 0,
            interface: None,
            multicast: None,
        };
        let new = NewRemote {
            remote: Remote::open(media, &place, None).unwrap().0,
            profile: Profile {
                display: Some("Al".to_owned()),
                metadata: Some(json!({ "x": 1 }).to_string()),
            },
            e2ee: false,
            streams: streams.collect(),
        };
        let al = PersonId::from("1");
        room.lock().add_remote(&al, new);
        (room, al)
    }

    #[test]
    fn who_comes_is_told_who_talks_and_others_only_what_is_published() {
        let (room, al) = room();
        let state = room.lock();
        let show = Show::new(Ids::Numbers, &state);
        let video = json!({ "type": "video", "mindex": 1, "mid": "1", "codec": "vp8" });
        let audio = json!({ "type": "audio", "mindex": 0, "mid": "0", "codec": "opus" });
        let mut event = json!({ "id": 1, "display": "Al", "metadata": { "x": 1 },
                                "audio_codec": "opus", "video_codec": "vp8",
                                "streams": [audio, video] });
        assert_eq!(show.published(&al, false).unwrap(), event);
        event["streams"][0]["talking"] = json!(false);
        event["talking"] = json!(false);
        assert_eq!(show.published(&al, true).unwrap(), event);
        // The id is a text where ids are texts.
        let as_text = Show::new(Ids::Texts, &state).published(&al, false);
        assert_eq!(as_text.unwrap()["id"], json!("1"));
    }

    #[test]
    fn a_list_says_who_publishes_and_from_where() {
        let (room, al) = room();
        let expected = json!([{ "id": 1, "display": "Al", "metadata": { "x": 1 }, "remote": true,
                                "publisher": true, "talking": false }]);
        let list = |room: &Room| {
            let state = room.lock();
            json!(Show::new(Ids::Numbers, &state).participants())
        };
        assert_eq!(list(&room), expected);
        room.lock().remove_remote(&al);
        assert_eq!(list(&room), json!([]));
    }
}
