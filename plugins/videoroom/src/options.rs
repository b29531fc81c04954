//! What a room can be told, when it is made and later.

use portunus_core::record::Format;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{Fields, Handle, Object, TokenScope};
use portunus_resources::{Access, Id};
use portunus_room::{Dummy, DummyStream, RoomSettings};
use serde_json::{Map, Value};

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

/// Who may do what in a room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DoorOptions {
    /// Who may manage it, and who may join.
    pub(crate) access: Access,
    /// Whoever joins needs a signed token.
    pub(crate) signed_tokens: bool,
    /// Only who shows the secret may change what is recorded.
    pub(crate) lock_record: bool,
}

impl RoomOptions {
    /// Reads the options of a new room; what is not there has its default.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let defaults = RoomSettings::default();
        let flag = |name: &str, default: bool| -> Result<bool, Refusal> {
            Ok(fields.boolean(name)?.unwrap_or(default))
        };
        let above_0 = |name: &str, default: u64| -> Result<u64, Refusal> {
            let number = fields.positive(name)?;
            Ok(number.filter(|number| *number > 0).unwrap_or(default))
        };
        fields.positive("threads")?;
        let videocodec = codecs(fields, "videocodec", Kind::Video)?.unwrap_or(defaults.videocodec);
        let profile = |name: &str, codec: CodecName| -> Result<Option<String>, Refusal> {
            let profile = text(fields, name)?;
            Ok(profile.filter(|_| videocodec.contains(&codec)))
        };
        let description = text(fields, "description")?.unwrap_or_default();
        let access = Access::read(fields)?;
        let settings = RoomSettings {
            description,
            require_pvtid: flag("require_pvtid", defaults.require_pvtid)?,
            require_e2ee: flag("require_e2ee", defaults.require_e2ee)?,
            publishers: fields
                .positive("publishers")?
                .unwrap_or(defaults.publishers),
            bitrate: capped(fields.positive("bitrate")?.unwrap_or(defaults.bitrate)),
            bitrate_cap: flag("bitrate_cap", defaults.bitrate_cap)?,
            fir_freq: fields.positive("fir_freq")?.unwrap_or(defaults.fir_freq),
            audiocodec: codecs(fields, "audiocodec", Kind::Audio)?.unwrap_or(defaults.audiocodec),
            vp9_profile: profile("vp9_profile", CodecName::Vp9)?,
            h264_profile: profile("h264_profile", CodecName::H264)?,
            videocodec,
            opus_fec: flag("opus_fec", defaults.opus_fec)?,
            opus_dtx: flag("opus_dtx", defaults.opus_dtx)?,
            audiolevel_ext: flag("audiolevel_ext", defaults.audiolevel_ext)?,
            audiolevel_event: flag("audiolevel_event", defaults.audiolevel_event)?,
            audio_active_packets: above_0("audio_active_packets", defaults.audio_active_packets)?,
            audio_level_average: above_0("audio_level_average", defaults.audio_level_average)?,
            videoorient_ext: flag("videoorient_ext", defaults.videoorient_ext)?,
            playoutdelay_ext: flag("playoutdelay_ext", defaults.playoutdelay_ext)?,
            transport_wide_cc_ext: flag("transport_wide_cc_ext", defaults.transport_wide_cc_ext)?,
            record: flag("record", defaults.record)?,
            rec_dir: text(fields, "rec_dir")?,
            record_format: fields.record_format()?,
            notify_joining: flag("notify_joining", defaults.notify_joining)?,
            dominant_speaker: flag("dominant_speaker", defaults.dominant_speaker)?,
            bufferkf_ms: match fields.positive("bufferkf_ms")? {
                Some(ms) if ms > MAX_BUFFERKF => {
                    return Err(Refusal::value("bufferkf_ms", "0 to 10000"));
                }
                ms => ms.unwrap_or(defaults.bufferkf_ms),
            },
            dummy: read_dummy(fields)?,
        };
        let door = DoorOptions {
            access,
            signed_tokens: flag("signed_tokens", false)?,
            lock_record: flag("lock_record", false)?,
        };
        Ok(RoomOptions { door, settings })
    }

    /// The options after the request `edit`.
    pub(crate) fn edited(&self, fields: Fields<'_>) -> Result<Self, Refusal> {
        let RoomOptions {
            mut door,
            settings: mut options,
        } = self.clone();
        let set = |target: &mut bool, name: &str| -> Result<(), Refusal> {
            *target = fields.boolean(name)?.unwrap_or(*target);
            Ok(())
        };
        if let Some(description) = text(fields, "new_description")? {
            options.description = description;
        }
        door.access = door.access.edited(fields)?;
        options.rec_dir = text(fields, "new_rec_dir")?.or(options.rec_dir);
        options.record_format = fields.record_format()?.or(options.record_format);
        set(&mut options.require_pvtid, "new_require_pvtid")?;
        set(&mut door.lock_record, "new_lock_record")?;
        options.bitrate = match fields.positive("new_bitrate")? {
            Some(bitrate) => capped(bitrate),
            None => options.bitrate,
        };
        options.fir_freq = fields.positive("new_fir_freq")?.unwrap_or(options.fir_freq);
        options.publishers = fields
            .positive("new_publishers")?
            .unwrap_or(options.publishers);
        let settings = options;
        Ok(RoomOptions { door, settings })
    }

    /// The members of a `list` entry, but for those of the room itsettings.
    pub(crate) fn listed(&self, participants: usize) -> Object {
        let (door, settings) = (&self.door, &self.settings);
        let levels = settings.audiolevel_event;
        Object::new()
            .with("description", settings.description.as_str())
            .with("pin_required", door.access.pin.is_some())
            .with("is_private", door.access.is_private)
            .with("max_publishers", settings.publishers)
            .with("bitrate", settings.bitrate)
            .with_some("bitrate_cap", settings.bitrate_cap.then_some(true))
            .with("fir_freq", settings.fir_freq)
            .with("require_pvtid", settings.require_pvtid)
            .with("require_e2ee", settings.require_e2ee)
            .with("dummy_publisher", settings.dummy.is_some())
            .with("notify_joining", settings.notify_joining)
            .with_some(
                "dominant_speaker",
                settings.dominant_speaker.then_some(true),
            )
            .with("audiocodec", names(&settings.audiocodec))
            .with("videocodec", names(&settings.videocodec))
            .with_some("opus_fec", settings.opus_fec.then_some(true))
            .with_some("opus_dtx", settings.opus_dtx.then_some(true))
            .with("record", settings.record)
            .with_some(
                "record_format",
                settings.record_format.map(Format::extension),
            )
            .with("lock_record", door.lock_record)
            .with("num_participants", participants)
            .with("audiolevel_ext", settings.audiolevel_ext)
            .with("audiolevel_event", settings.audiolevel_event)
            .with_some(
                "audio_active_packets",
                levels.then_some(settings.audio_active_packets),
            )
            .with_some(
                "audio_level_average",
                levels.then_some(settings.audio_level_average),
            )
            .with("videoorient_ext", settings.videoorient_ext)
            .with("playoutdelay_ext", settings.playoutdelay_ext)
            .with("transport_wide_cc_ext", settings.transport_wide_cc_ext)
    }

    /// The members that [`RoomOptions::read`] makes the same of; only what is not the default.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let text = |text: &Option<String>| Value::from(text.clone().unwrap_or_default());
        let format = |format: &Option<Format>| format.map(Format::extension).into();
        let members = |RoomOptions { door, settings }: &RoomOptions| {
            [
                ("description", Value::from(settings.description.as_str())),
                ("is_private", door.access.is_private.into()),
                ("secret", text(&door.access.secret)),
                ("pin", text(&door.access.pin)),
                ("require_pvtid", settings.require_pvtid.into()),
                ("signed_tokens", door.signed_tokens.into()),
                ("require_e2ee", settings.require_e2ee.into()),
                ("publishers", settings.publishers.into()),
                ("bitrate", settings.bitrate.into()),
                ("bitrate_cap", settings.bitrate_cap.into()),
                ("fir_freq", settings.fir_freq.into()),
                ("audiocodec", names(&settings.audiocodec).into()),
                ("videocodec", names(&settings.videocodec).into()),
                ("vp9_profile", text(&settings.vp9_profile)),
                ("h264_profile", text(&settings.h264_profile)),
                ("opus_fec", settings.opus_fec.into()),
                ("opus_dtx", settings.opus_dtx.into()),
                ("audiolevel_ext", settings.audiolevel_ext.into()),
                ("audiolevel_event", settings.audiolevel_event.into()),
                ("audio_active_packets", settings.audio_active_packets.into()),
                ("audio_level_average", settings.audio_level_average.into()),
                ("videoorient_ext", settings.videoorient_ext.into()),
                ("playoutdelay_ext", settings.playoutdelay_ext.into()),
                (
                    "transport_wide_cc_ext",
                    settings.transport_wide_cc_ext.into(),
                ),
                ("record", settings.record.into()),
                ("rec_dir", text(&settings.rec_dir)),
                ("record_format", format(&settings.record_format)),
                ("lock_record", door.lock_record.into()),
                ("notify_joining", settings.notify_joining.into()),
                ("dominant_speaker", settings.dominant_speaker.into()),
                ("bufferkf_ms", settings.bufferkf_ms.into()),
                ("dummy_publisher", settings.dummy.is_some().into()),
                ("dummy_e2ee", dummy_e2ee(settings).into()),
                ("dummy_streams", dummy_streams(settings)),
            ]
        };
        let defaults = members(&RoomOptions::default());
        let own = members(self).into_iter().zip(defaults);
        own.filter(|((_, value), (_, default))| value != default)
            .map(|((name, value), _)| (name.to_owned(), value))
            .collect()
    }
}

impl DoorOptions {
    /// Checks that a request shows a token that is signed for `room`, where these are asked for: as `token` in its body, or as a
    /// JSON Web Token that the API takes.
    pub(crate) fn check_signed_token(
        &self,
        room: &Id,
        (client, scope): (&Handle, &TokenScope),
        fields: Fields<'_>,
    ) -> Result<(), Refusal> {
        if !self.signed_tokens || scope.opens(&room.to_string()) {
            return Ok(());
        }
        let token = fields.string("token")?;
        match client.signed_token_opens(token, &format!("room={room}")) {
            Some(false) => Err(Refusal::NotSigned),
            Some(true) | None => Ok(()),
        }
    }
}

/// Reads what `create` and the configuration say of the placeholder publisher. Returns `None` if there is none.
fn read_dummy(fields: Fields<'_>) -> Result<Option<Dummy>, Refusal> {
    let wanted = fields.boolean("dummy_publisher")?.unwrap_or(false);
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

/// A stream of a placeholder publisher, as it is read.
fn dummy_stream(stream: &DummyStream) -> Value {
    Object::new()
        .with("codec", stream.codec.name())
        .with_some("fmtp", stream.fmtp.as_deref())
        .into()
}

/// A text; an empty one is none.
fn text(fields: Fields<'_>, name: &str) -> Result<Option<String>, Refusal> {
    Ok(fields.text(name)?.map(str::to_owned))
}

fn dummy_e2ee(options: &RoomSettings) -> bool {
    options.dummy.as_ref().is_some_and(|dummy| dummy.e2ee)
}

fn dummy_streams(options: &RoomSettings) -> Value {
    let streams = options.dummy.as_ref().map(|dummy| &dummy.streams);
    let streams = streams.into_iter().flatten().map(dummy_stream);
    streams.collect::<Vec<_>>().into()
}

fn capped(bitrate: u64) -> u64 {
    match bitrate {
        0 => 0,
        bitrate => bitrate.max(MIN_BITRATE),
    }
}

/// A list of codecs with commas between them.
fn codecs(fields: Fields<'_>, name: &str, kind: Kind) -> Result<Option<Vec<CodecName>>, Refusal> {
    let Some(text) = text(fields, name)? else {
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

fn names(codecs: &[CodecName]) -> String {
    let names: Vec<_> = codecs.iter().map(|codec| codec.name()).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn read(members: Value) -> Result<RoomOptions, Refusal> {
        RoomOptions::read(Fields(members.as_object().unwrap()))
    }

    #[test]
    fn nothing_is_the_defaults_and_writes_nothing() {
        assert_eq!(read(json!({})).unwrap(), RoomOptions::default());
        assert!(RoomOptions::default().to_members().is_empty());
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
        let written = Value::Object(options.to_members());
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
        assert_eq!(options.audio_active_packets, 100);
        assert_eq!(options.h264_profile, None);
        assert_eq!(options.audiocodec, [CodecName::Opus, CodecName::Pcma]);
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
