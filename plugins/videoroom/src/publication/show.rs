//! What is told of participants and of what they publish.

use portunus_core::Object;
use portunus_core::sdp::Kind;
use portunus_resources::Id;
use serde_json::{Value, json};

use super::{Publication, Stream};
use crate::roster::Participant;

/// What others are told of a publisher; `talking` to those who have just come.
pub(crate) fn published(person: &Participant, media: &Publication, talking: bool) -> Value {
    let talking = talking && !person.is_dummy();
    let streams = media.streams.iter().map(|stream| stream.public(talking));
    let streams: Vec<_> = streams.collect();
    let talk = media.talking().filter(|_| talking);
    person
        .named()
        .with_some("audio_codec", media.codec(Kind::Audio))
        .with_some("video_codec", media.codec(Kind::Video))
        .with("streams", streams)
        .with_some("talking", talk)
        .into()
}

/// The entry of a participant in `listparticipants`, with what it publishes, if its media is up.
pub(crate) fn listed(person: &Participant, media: Option<&Publication>) -> Value {
    let talking = media.filter(|_| !person.is_dummy());
    person
        .named()
        .with_some("remote", person.is_remote().then_some(true))
        .with("publisher", media.is_some())
        .with_some("talking", talking.and_then(Publication::talking))
        .into()
}

/// The state of a participant, for administrators; `receivers` says how many m-lines receive a stream.
pub(crate) fn state(
    room: &Id,
    person: &Participant,
    media: Option<&Publication>,
    receivers: impl Fn(&Stream) -> usize,
) -> Value {
    // A file that all streams share.
    let shared = |stream: &Stream| {
        let recording = media?.recording.as_ref()?;
        let is_in = recording.keys().any(|key| key == stream.mid.as_str());
        recording.file_names().into_iter().next().filter(|_| is_in)
    };
    let stream = |stream: &Stream| -> Value {
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
            .with_some("recording", stream.recorded().or_else(|| shared(stream)))
            .with("subscribers", receivers(stream))
            .into()
    };
    let streams = media.into_iter().flat_map(|media| &media.streams);
    let e2ee = media.is_some_and(|media| media.e2ee);
    person
        .labelled(
            Object::new()
                .with("type", "publisher")
                .with("room", room.to_json())
                .with("id", person.id().to_json())
                .with("private_id", person.private_id()),
        )
        .with("bitrate", person.settings.bitrate)
        .with_some("e2ee", e2ee.then_some(true))
        .with("streams", streams.map(stream).collect::<Vec<_>>())
        .with("hangingup", 0)
        .with("destroyed", 0)
        .into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use portunus_core::Mid;
    use portunus_core::media::MediaPlane;
    use portunus_core::record::{Recorder, RecorderConfig};
    use portunus_core::sdp::CodecName;

    use super::*;
    use crate::options::RoomOptions;
    use crate::publication::{Origin, Publications, placeholder};
    use crate::roster::{MediaSettings, Party, Profile, Roster};

    const AL: Id = Id::Number(1);

    /// Somebody on another server, who publishes sound and a picture.
    fn al() -> (Roster, Publications) {
        let profile = Profile {
            display: Some("Al".to_owned()),
            metadata: None,
        };
        let mut roster = Roster::default();
        roster.add(AL, Party::Remote, profile, MediaSettings::default());
        let (media, _, _) = MediaPlane::detached();
        let recorder = Recorder::new(RecorderConfig::default());
        let mut publications = Publications::new(media, recorder);
        let codecs = [CodecName::Opus, CodecName::Vp8].into_iter().enumerate();
        let streams = codecs.map(|(index, codec)| {
            let mid = Mid::new(&index.to_string()).unwrap();
            placeholder(&RoomOptions::default(), codec, None, mid, index)
        });
        publications.start(&AL, Origin::Dummy, false, streams.collect());
        publications.came_up(&AL);
        (roster, publications)
    }

    #[test]
    fn who_comes_is_told_who_talks_and_others_only_what_is_published() {
        let (roster, publications) = al();
        let (person, media) = (roster.get(&AL).unwrap(), publications.up(&AL).unwrap());
        let video = json!({ "type": "video", "mindex": 1, "mid": "1", "codec": "vp8" });
        let audio =
            json!({ "type": "audio", "mindex": 0, "mid": "0", "codec": "opus", "fec": true });
        let event = json!({ "id": 1, "display": "Al", "audio_codec": "opus", "video_codec": "vp8",
                            "streams": [audio, video] });
        assert_eq!(published(person, media, false), event);
        let mut event = event;
        event["streams"][0]["talking"] = json!(false);
        event["talking"] = json!(false);
        assert_eq!(published(person, media, true), event);
    }

    #[test]
    fn a_list_says_who_publishes_and_from_where() {
        let (roster, mut publications) = al();
        let person = roster.get(&AL).unwrap();
        let entry = listed(person, publications.up(&AL));
        let expected = json!({ "id": 1, "display": "Al", "remote": true, "publisher": true,
                               "talking": false });
        assert_eq!(entry, expected);
        publications.end(&AL);
        let entry = listed(person, publications.up(&AL));
        let expected = json!({ "id": 1, "display": "Al", "remote": true, "publisher": false });
        assert_eq!(entry, expected);
    }
}
