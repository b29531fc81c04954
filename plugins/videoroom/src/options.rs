//! The options of a room, in `create`, `edit` and the configuration.

use portunus_core::record::Format;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{FieldError, Fields, Object};
use portunus_resources::{Access, Id, Options, Place, place};
use portunus_room::{Dummy, DummyStream, RoomSettings};
use serde_json::Value;

use crate::refusal::Refusal;

/// The most codecs of a kind.
const MAX_CODECS: usize = 5;
/// The longest that is kept from a keyframe on, in ms.
const MAX_BUFFERKF: u64 = 10_000;
/// The smallest cap on what a publisher sends, in bit/s.
const MIN_BITRATE: u64 = 64_000;

/// The options of a room, as `create` and the configuration have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomOptions {
    pub(crate) door: DoorOptions,
    pub(crate) settings: RoomSettings,
}

/// The options that the door keeps: access to the room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DoorOptions {
    /// Its secret and its pin, and whether it is listed.
    pub(crate) access: Access,
    /// Whether a join needs a signed token.
    pub(crate) signed_tokens: bool,
    /// Only who shows the secret may change what is recorded.
    pub(crate) lock_record: bool,
}

type Opt = portunus_resources::Opt<RoomOptions, Refusal>;

/// Their names.
pub(crate) const OPTIONS: Options<RoomOptions, Refusal> = Options(&[
    Opt::checked::<u64>("threads"),
    Opt::new("description", place!(settings.description))
        .edited_as("new_description")
        .listed(),
    Opt::new("is_private", place!(door.access.is_private))
        .edited_as("new_is_private")
        .listed(),
    Opt::new("secret", place!(door.access.secret)).edited_as("new_secret"),
    Opt::new("pin", place!(door.access.pin)).edited_as("new_pin"),
    Opt::new("require_pvtid", place!(settings.require_private_id))
        .edited_as("new_require_pvtid")
        .listed(),
    Opt::new("signed_tokens", place!(door.signed_tokens)),
    Opt::new("require_e2ee", place!(settings.require_e2ee)).listed(),
    Opt::new("publishers", place!(settings.publishers))
        .edited_as("new_publishers")
        .listed_as("max_publishers"),
    Opt::new("bitrate", place!(settings.bitrate, bitrate, number))
        .edited_as("new_bitrate")
        .listed(),
    Opt::new("bitrate_cap", place!(settings.bitrate_cap)).listed_if(|it| it.settings.bitrate_cap),
    Opt::new("fir_freq", place!(settings.keyframes.interval_s))
        .edited_as("new_fir_freq")
        .listed(),
    Opt::new(
        "audiocodec",
        place!(settings.codecs.audio, audio_codecs, |it| names(it)),
    )
    .listed(),
    Opt::new(
        "videocodec",
        place!(settings.codecs.video, video_codecs, |it| names(it)),
    )
    .listed(),
    Opt::new("vp9_profile", place!(settings.codecs.vp9_profile)),
    Opt::new("h264_profile", place!(settings.codecs.h264_profile)),
    Opt::new("opus_fec", place!(settings.codecs.opus_fec))
        .listed_if(|it| it.settings.codecs.opus_fec),
    Opt::new("opus_dtx", place!(settings.codecs.opus_dtx))
        .listed_if(|it| it.settings.codecs.opus_dtx),
    Opt::new("audiolevel_ext", place!(settings.extensions.audio_level)).listed(),
    Opt::new("audiolevel_event", place!(settings.talk.notify)).listed(),
    Opt::new(
        "audio_active_packets",
        place!(settings.talk.packets, above_0, number),
    )
    .listed_if(|it| it.settings.talk.notify),
    Opt::new(
        "audio_level_average",
        place!(settings.talk.level, above_0, number),
    )
    .listed_if(|it| it.settings.talk.notify),
    Opt::new(
        "videoorient_ext",
        place!(settings.extensions.video_orientation),
    )
    .listed(),
    Opt::new(
        "playoutdelay_ext",
        place!(settings.extensions.playout_delay),
    )
    .listed(),
    Opt::new(
        "transport_wide_cc_ext",
        place!(settings.extensions.transport_cc),
    )
    .listed(),
    Opt::new("record", place!(settings.recording.on)).listed(),
    Opt::new("rec_dir", place!(settings.recording.dir)).edited_as("new_rec_dir"),
    Opt::new(
        "record_format",
        place!(settings.recording.format, record_format, |it| it
            .map(Format::extension)
            .into()),
    )
    .edited_as("record_format")
    .listed(),
    Opt::new("lock_record", place!(door.lock_record))
        .edited_as("new_lock_record")
        .listed(),
    Opt::new("notify_joining", place!(settings.notify_joining)).listed(),
    Opt::new("dominant_speaker", place!(settings.dominant_speaker))
        .listed_if(|it| it.settings.dominant_speaker),
    Opt::new(
        "bufferkf_ms",
        place!(settings.keyframes.cache_ms, kept, number),
    ),
    Opt::new(
        "dummy_publisher",
        Place {
            read: |options, fields, name| {
                options.settings.dummy = dummy(fields, name)?;
                Ok(())
            },
            write: |options| options.settings.dummy.is_some().into(),
        },
    )
    .listed(),
    // `dummy` reads both.
    Opt::new(
        "dummy_e2ee",
        Place {
            read: |_, _, _| Ok(()),
            write: |options| {
                let dummy = options.settings.dummy.as_ref();
                dummy.is_some_and(|dummy| dummy.e2ee).into()
            },
        },
    ),
    Opt::new(
        "dummy_streams",
        Place {
            read: |_, _, _| Ok(()),
            write: |options| {
                let streams = options.settings.dummy.iter();
                let streams = streams.flat_map(|dummy| &dummy.streams);
                streams.map(dummy_stream).collect::<Vec<_>>().into()
            },
        },
    ),
]);

impl RoomOptions {
    /// Reads the options of a new room. What is not there has its default.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let mut options = OPTIONS.read(fields)?;
        // The profile of a codec that the room does not have.
        let codecs = &mut options.settings.codecs;
        let has = |codec| codecs.video.contains(&codec);
        let (vp9, h264) = (has(CodecName::Vp9), has(CodecName::H264));
        codecs.vp9_profile.take_if(|_| !vp9);
        codecs.h264_profile.take_if(|_| !h264);
        Ok(options)
    }

    /// Sets the default description, if there is none.
    pub(crate) fn described(mut self, id: &Id) -> Self {
        let description = &mut self.settings.description;
        if description.is_empty() {
            *description = format!("Room {id}");
        }
        self
    }
}

fn number(number: &u64) -> Value {
    (*number).into()
}

/// Reads a number. 0 means the default.
fn above_0(fields: Fields<'_>, name: &str) -> Result<Option<u64>, FieldError> {
    Ok(fields.positive(name)?.filter(|number| *number > 0))
}

/// Reads a cap in bit/s. 0 means no cap.
fn bitrate(fields: Fields<'_>, name: &str) -> Result<Option<u64>, FieldError> {
    let bitrate = fields.positive(name)?;
    Ok(bitrate.map(|bitrate| match bitrate {
        0 => 0,
        bitrate => bitrate.max(MIN_BITRATE),
    }))
}

/// Reads the time for which video is cached, in ms.
fn kept(fields: Fields<'_>, name: &str) -> Result<Option<u64>, Refusal> {
    match fields.positive(name)? {
        Some(ms) if ms > MAX_BUFFERKF => Err(Refusal::value(name, "0 to 10000")),
        ms => Ok(ms),
    }
}

fn record_format(fields: Fields<'_>, _: &str) -> Result<Option<Option<Format>>, FieldError> {
    Ok(fields.record_format()?.map(Some))
}

/// Reads the placeholder publisher, if the member `name` is true.
fn dummy(fields: Fields<'_>, name: &str) -> Result<Option<Dummy>, Refusal> {
    let wanted = fields.boolean(name)?.unwrap_or(false);
    let entries = fields.objects("dummy_streams")?;
    let entries = entries.into_iter().flatten().map(|entry| {
        let codec = CodecName::from_name(entry.required_string("codec")?);
        Ok::<_, Refusal>(DummyStream {
            codec: codec.ok_or_else(|| Refusal::value("dummy_streams", "unsupported codec"))?,
            fmtp: entry.string("fmtp")?.map(str::to_owned),
        })
    });
    let dummy = Dummy {
        streams: entries.collect::<Result<_, _>>()?,
        e2ee: fields.boolean("dummy_e2ee")?.unwrap_or(false),
    };
    Ok(wanted.then_some(dummy))
}

/// Writes a stream of a placeholder publisher in the form that is read.
fn dummy_stream(stream: &DummyStream) -> Value {
    Object::new()
        .with("codec", stream.codec.name())
        .with_some("fmtp", stream.fmtp.as_deref())
        .into()
}

fn audio_codecs(fields: Fields<'_>, name: &str) -> Result<Option<Vec<CodecName>>, Refusal> {
    codecs(fields, name, Kind::Audio)
}

fn video_codecs(fields: Fields<'_>, name: &str) -> Result<Option<Vec<CodecName>>, Refusal> {
    codecs(fields, name, Kind::Video)
}

/// Reads a list of codecs with commas between them.
fn codecs(fields: Fields<'_>, name: &str, kind: Kind) -> Result<Option<Vec<CodecName>>, Refusal> {
    let Some(text) = fields.text(name)? else {
        return Ok(None);
    };
    let mut codecs = Vec::new();
    for codec in text.split(',').map(str::trim).filter(|c| !c.is_empty()) {
        let codec = CodecName::from_name(codec).filter(|codec| codec.kind() == kind);
        let codec = codec.ok_or_else(|| Refusal::value(name, "unsupported codec"))?;
        if !codecs.contains(&codec) {
            codecs.push(codec);
        }
    }
    if codecs.is_empty() {
        return Err(Refusal::value(name, "no codec"));
    }
    codecs.truncate(MAX_CODECS);
    Ok(Some(codecs))
}

fn names(codecs: &[CodecName]) -> Value {
    let names: Vec<_> = codecs.iter().map(|codec| codec.name()).collect();
    names.join(",").into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    fn read(members: Value) -> Result<RoomOptions, Refusal> {
        RoomOptions::read(Fields(members.as_object().unwrap()))
    }

    #[test]
    fn nothing_is_the_defaults_and_writes_nothing() {
        assert_eq!(read(json!({})).unwrap(), RoomOptions::default());
        assert!(OPTIONS.to_members(&RoomOptions::default()).is_empty());
    }

    #[test]
    fn what_is_written_can_be_read() {
        let members = json!({
            "description": "d", "is_private": true, "secret": "s", "pin": "p", "publishers": 0,
            "bitrate": 128_000, "audiocodec": "pcmu,opus", "videocodec": "vp9,h264",
            "vp9_profile": "2", "opus_fec": false, "audiolevel_event": true, "fir_freq": 10,
            "record": true, "rec_dir": "/tmp", "notify_joining": true, "dominant_speaker": true, "bufferkf_ms": 2_000, "dummy_publisher": true, "dummy_e2ee": true,
            "dummy_streams": [{ "codec": "vp9", "fmtp": "profile-id=2" }],
        });
        let options = read(members.clone()).unwrap();
        let written = Value::Object(OPTIONS.to_members(&options));
        assert_eq!(read(written.clone()).unwrap(), options);
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(written.get(name), Some(value), "{name}");
        }
    }

    #[test]
    fn values_are_put_right_or_refused() {
        let options = read(json!({
            "bitrate": 1, "audio_active_packets": 0, "h264_profile": "42e01f",
            "audiocodec": "opus, opus ,PCMA",
        }));
        let options = options.unwrap();
        let options = options.settings;
        assert_eq!(options.bitrate, 64_000);
        assert_eq!(options.talk.packets, 100);
        assert_eq!(options.codecs.h264_profile, None);
        assert_eq!(options.codecs.audio, [CodecName::Opus, CodecName::Pcma]);
        for wrong in [
            json!({ "audiocodec": "vp8" }),
            json!({ "videocodec": "vp8,mpeg4" }),
            json!({ "videocodec": "," }),
            json!({ "publishers": -1 }),
            json!({ "bufferkf_ms": 10_001 }),
            json!({ "record": 1 }),
            json!({ "dummy_publisher": 1 }),
            json!({ "dummy_publisher": true, "dummy_streams": [{ "codec": 1 }] }),
            json!({ "dummy_publisher": true, "dummy_streams": [{ "codec": "mp3" }] }),
            json!({ "description": null }),
        ] {
            assert_eq!(read(wrong.clone()).unwrap_err().code(), 430, "{wrong}");
        }
    }
}
