//! What a room can be told, when it is made and later.

use portunus_core::record::Format;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{Fields, Handle, Object, TokenScope};
use portunus_resources::{Access, Id};
use serde_json::{Map, Value};

use crate::dummy::{Dummy, DummyStream};
use crate::refusal::Refusal;

/// The most codecs of a kind.
const MAX_CODECS: usize = 5;
/// The longest that is kept from a keyframe on, in ms.
const MAX_BUFFERKF: u64 = 10_000;
/// The smallest cap on what a publisher sends, in bit/s.
const MIN_BITRATE: u64 = 64_000;

/// The options of a room, as `create` and the configuration have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomOptions {
    pub(crate) description: String,
    /// Who may manage it, and who may join.
    pub(crate) access: Access,
    pub(crate) require_pvtid: bool,
    pub(crate) signed_tokens: bool,
    pub(crate) require_e2ee: bool,
    pub(crate) publishers: u64,
    /// bit/s; 0: no cap
    pub(crate) bitrate: u64,
    pub(crate) bitrate_cap: bool,
    /// seconds; 0: never
    pub(crate) fir_freq: u64,
    pub(crate) audiocodec: Vec<CodecName>,
    pub(crate) videocodec: Vec<CodecName>,
    pub(crate) vp9_profile: Option<String>,
    pub(crate) h264_profile: Option<String>,
    pub(crate) opus_fec: bool,
    pub(crate) opus_dtx: bool,
    pub(crate) audiolevel_ext: bool,
    pub(crate) audiolevel_event: bool,
    /// packets
    pub(crate) audio_active_packets: u64,
    /// -dBov: 0 is loud, 127 silent
    pub(crate) audio_level_average: u64,
    pub(crate) videoorient_ext: bool,
    pub(crate) playoutdelay_ext: bool,
    pub(crate) transport_wide_cc_ext: bool,
    /// Whoever joins is recorded.
    pub(crate) record: bool,
    pub(crate) rec_dir: Option<String>,
    /// What the files of recordings are like; none: as it is configured for all.
    pub(crate) record_format: Option<Format>,
    pub(crate) lock_record: bool,
    pub(crate) notify_joining: bool,
    pub(crate) dominant_speaker: bool,
    /// ms that are kept from a keyframe on; 0: nothing
    pub(crate) bufferkf_ms: u64,
    /// The placeholder publisher, if there is one.
    pub(crate) dummy: Option<Dummy>,
}

impl Default for RoomOptions {
    fn default() -> Self {
        RoomOptions {
            description: String::new(),
            access: Access::default(),
            require_pvtid: false,
            signed_tokens: false,
            require_e2ee: false,
            publishers: 3,
            bitrate: 0,
            bitrate_cap: false,
            fir_freq: 0,
            audiocodec: vec![CodecName::Opus],
            videocodec: vec![CodecName::Vp8],
            vp9_profile: None,
            h264_profile: None,
            opus_fec: true,
            opus_dtx: false,
            audiolevel_ext: true,
            audiolevel_event: false,
            audio_active_packets: 100,
            audio_level_average: 25,
            videoorient_ext: true,
            playoutdelay_ext: true,
            transport_wide_cc_ext: true,
            record: false,
            rec_dir: None,
            record_format: None,
            lock_record: false,
            notify_joining: false,
            dominant_speaker: false,
            bufferkf_ms: 0,
            dummy: None,
        }
    }
}

impl RoomOptions {
    /// Reads the options of a new room; what is not there has its default.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let defaults = RoomOptions::default();
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
        Ok(RoomOptions {
            description: text(fields, "description")?.unwrap_or_default(),
            access: Access::read(fields)?,
            require_pvtid: flag("require_pvtid", defaults.require_pvtid)?,
            signed_tokens: flag("signed_tokens", defaults.signed_tokens)?,
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
            lock_record: flag("lock_record", defaults.lock_record)?,
            notify_joining: flag("notify_joining", defaults.notify_joining)?,
            dominant_speaker: flag("dominant_speaker", defaults.dominant_speaker)?,
            bufferkf_ms: match fields.positive("bufferkf_ms")? {
                Some(ms) if ms > MAX_BUFFERKF => {
                    return Err(Refusal::value("bufferkf_ms", "0 to 10000"));
                }
                ms => ms.unwrap_or(defaults.bufferkf_ms),
            },
            dummy: Dummy::read(fields)?,
        })
    }

    /// The options after the request `edit`.
    pub(crate) fn edited(&self, fields: Fields<'_>) -> Result<Self, Refusal> {
        let mut options = self.clone();
        let set = |target: &mut bool, name: &str| -> Result<(), Refusal> {
            *target = fields.boolean(name)?.unwrap_or(*target);
            Ok(())
        };
        if let Some(description) = text(fields, "new_description")? {
            options.description = description;
        }
        options.access = options.access.edited(fields)?;
        options.rec_dir = text(fields, "new_rec_dir")?.or(options.rec_dir);
        options.record_format = fields.record_format()?.or(options.record_format);
        set(&mut options.require_pvtid, "new_require_pvtid")?;
        set(&mut options.lock_record, "new_lock_record")?;
        options.bitrate = match fields.positive("new_bitrate")? {
            Some(bitrate) => capped(bitrate),
            None => options.bitrate,
        };
        options.fir_freq = fields.positive("new_fir_freq")?.unwrap_or(options.fir_freq);
        options.publishers = fields
            .positive("new_publishers")?
            .unwrap_or(options.publishers);
        Ok(options)
    }

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

    /// The members of a `list` entry, but for those of the room itself.
    pub(crate) fn listed(&self, participants: usize) -> Object {
        let levels = self.audiolevel_event;
        Object::new()
            .with("description", self.description.as_str())
            .with("pin_required", self.access.pin.is_some())
            .with("is_private", self.access.is_private)
            .with("max_publishers", self.publishers)
            .with("bitrate", self.bitrate)
            .with_some("bitrate_cap", self.bitrate_cap.then_some(true))
            .with("fir_freq", self.fir_freq)
            .with("require_pvtid", self.require_pvtid)
            .with("require_e2ee", self.require_e2ee)
            .with("dummy_publisher", self.dummy.is_some())
            .with("notify_joining", self.notify_joining)
            .with_some("dominant_speaker", self.dominant_speaker.then_some(true))
            .with("audiocodec", names(&self.audiocodec))
            .with("videocodec", names(&self.videocodec))
            .with_some("opus_fec", self.opus_fec.then_some(true))
            .with_some("opus_dtx", self.opus_dtx.then_some(true))
            .with("record", self.record)
            .with_some("record_format", self.record_format.map(Format::extension))
            .with("lock_record", self.lock_record)
            .with("num_participants", participants)
            .with("audiolevel_ext", self.audiolevel_ext)
            .with("audiolevel_event", self.audiolevel_event)
            .with_some(
                "audio_active_packets",
                levels.then_some(self.audio_active_packets),
            )
            .with_some(
                "audio_level_average",
                levels.then_some(self.audio_level_average),
            )
            .with("videoorient_ext", self.videoorient_ext)
            .with("playoutdelay_ext", self.playoutdelay_ext)
            .with("transport_wide_cc_ext", self.transport_wide_cc_ext)
    }

    /// The members that [`RoomOptions::read`] makes the same of; only what is not the default.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let text = |text: &Option<String>| Value::from(text.clone().unwrap_or_default());
        let format = |format: &Option<Format>| format.map(Format::extension).into();
        let members = |options: &RoomOptions| {
            [
                ("description", Value::from(options.description.as_str())),
                ("is_private", options.access.is_private.into()),
                ("secret", text(&options.access.secret)),
                ("pin", text(&options.access.pin)),
                ("require_pvtid", options.require_pvtid.into()),
                ("signed_tokens", options.signed_tokens.into()),
                ("require_e2ee", options.require_e2ee.into()),
                ("publishers", options.publishers.into()),
                ("bitrate", options.bitrate.into()),
                ("bitrate_cap", options.bitrate_cap.into()),
                ("fir_freq", options.fir_freq.into()),
                ("audiocodec", names(&options.audiocodec).into()),
                ("videocodec", names(&options.videocodec).into()),
                ("vp9_profile", text(&options.vp9_profile)),
                ("h264_profile", text(&options.h264_profile)),
                ("opus_fec", options.opus_fec.into()),
                ("opus_dtx", options.opus_dtx.into()),
                ("audiolevel_ext", options.audiolevel_ext.into()),
                ("audiolevel_event", options.audiolevel_event.into()),
                ("audio_active_packets", options.audio_active_packets.into()),
                ("audio_level_average", options.audio_level_average.into()),
                ("videoorient_ext", options.videoorient_ext.into()),
                ("playoutdelay_ext", options.playoutdelay_ext.into()),
                (
                    "transport_wide_cc_ext",
                    options.transport_wide_cc_ext.into(),
                ),
                ("record", options.record.into()),
                ("rec_dir", text(&options.rec_dir)),
                ("record_format", format(&options.record_format)),
                ("lock_record", options.lock_record.into()),
                ("notify_joining", options.notify_joining.into()),
                ("dominant_speaker", options.dominant_speaker.into()),
                ("bufferkf_ms", options.bufferkf_ms.into()),
                ("dummy_publisher", options.dummy.is_some().into()),
                ("dummy_e2ee", dummy_e2ee(options).into()),
                ("dummy_streams", dummy_streams(options)),
            ]
        };
        let defaults = members(&RoomOptions::default());
        let own = members(self).into_iter().zip(defaults);
        own.filter(|((_, value), (_, default))| value != default)
            .map(|((name, value), _)| (name.to_owned(), value))
            .collect()
    }
}

/// A text; an empty one is none.
fn text(fields: Fields<'_>, name: &str) -> Result<Option<String>, Refusal> {
    Ok(fields.text(name)?.map(str::to_owned))
}

fn dummy_e2ee(options: &RoomOptions) -> bool {
    options.dummy.as_ref().is_some_and(|dummy| dummy.e2ee)
}

fn dummy_streams(options: &RoomOptions) -> Value {
    let streams = options.dummy.as_ref().map(|dummy| &dummy.streams);
    let streams = streams.into_iter().flatten().map(DummyStream::to_json);
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
