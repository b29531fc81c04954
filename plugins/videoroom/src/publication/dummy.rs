//! Dummy publishers: they send nothing, and hold the places of publishers who are still to come. Whoever subscribes to
//! one has m-lines that a `switch` gives to others later, without a negotiation.

use std::collections::HashSet;

use portunus_core::sdp::{CodecName, CodecSpec, Kind, OfferedFlags};
use portunus_core::{Fields, Mid, Object, Pt};
use serde_json::Value;

use crate::id::Ids;
use crate::members;
use crate::options::RoomOptions;
use crate::publication::{ExtensionIds, Origin, Published, RecordSettings, Stream};
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::{Participant, TalkSettings};

/// What people see of it.
const DISPLAY: &str = "Dummy publisher";

/// The number of a header extension that nobody sends.
const ANY: u8 = 1;

/// What a room says of its dummy publisher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Dummy {
    /// Its streams; empty: one for each of the room's codecs.
    pub(crate) streams: Vec<DummyStream>,
    /// It counts as encrypted end to end.
    pub(crate) e2ee: bool,
}

/// A stream of a dummy publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DummyStream {
    codec: CodecName,
    fmtp: Option<String>,
}

impl Dummy {
    /// Reads what `create` and the configuration say of it; none if there is none.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Option<Self>, Refusal> {
        let wanted = fields.boolean("dummy_publisher")?.unwrap_or(false);
        let entries = members::objects(fields, "dummy_streams")?;
        let entries = entries.into_iter().flatten().map(DummyStream::read);
        let dummy = Dummy {
            streams: entries.collect::<Result<_, _>>()?,
            e2ee: fields.boolean("dummy_e2ee")?.unwrap_or(false),
        };
        Ok(wanted.then_some(dummy))
    }

    /// Its streams in a room with these options: those of its own list that the room has, or all of the room's.
    fn streams(&self, options: &RoomOptions) -> Vec<Stream> {
        let codecs = options.audiocodec.iter().chain(&options.videocodec);
        let wanted = codecs.filter_map(|codec| {
            let own = self.streams.iter().find(|stream| stream.codec == *codec);
            let fmtp = own.and_then(|own| own.fmtp.as_deref());
            (own.is_some() || self.streams.is_empty()).then_some((*codec, fmtp))
        });
        let streams = wanted.enumerate().filter_map(|(index, (codec, fmtp))| {
            let mid = Mid::new(&index.to_string())?;
            Some(placeholder(options, codec, fmtp, mid, index))
        });
        streams.collect()
    }
}

impl DummyStream {
    fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let codec = CodecName::from_name(fields.required_string("codec")?);
        Ok(DummyStream {
            codec: codec.ok_or_else(|| Refusal::value("dummy_streams", "unsupported codec"))?,
            fmtp: fields.string("fmtp")?.map(str::to_owned),
        })
    }

    /// As it is read.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("codec", self.codec.name())
            .with_some("fmtp", self.fmtp.as_deref())
            .into()
    }
}

/// A stream as a publisher of a room would send it who makes use of all that the room allows.
pub(crate) fn placeholder(
    options: &RoomOptions,
    codec: CodecName,
    fmtp: Option<&str>,
    mid: Mid,
    index: usize,
) -> Stream {
    let mut stream = Stream::new(codec.kind(), mid, index);
    let spec = CodecSpec {
        fmtp: fmtp.map(str::to_owned),
        ..CodecSpec::new(codec, Pt(0))
    };
    let own = |name: &str| spec.parameter(name).map(str::to_owned);
    let says = |name: &str| fmtp.is_none() || spec.parameter(name) == Some("1");
    stream.disabled = false;
    stream.codec = Some(codec);
    match codec {
        CodecName::Opus => {
            stream.opus = OfferedFlags {
                fec: options.opus_fec && says("useinbandfec"),
                dtx: options.opus_dtx && says("usedtx"),
                stereo: spec.parameter("stereo") == Some("1"),
            };
        }
        CodecName::MultiOpus => stream.fmtp.clone_from(&spec.fmtp),
        CodecName::H264 => {
            stream.h264_profile = own("profile-level-id").or(options.h264_profile.clone());
        }
        CodecName::Vp9 => stream.vp9_profile = own("profile-id").or(options.vp9_profile.clone()),
        _ => {}
    }
    let (audio, video) = (stream.kind == Kind::Audio, stream.kind == Kind::Video);
    let set = |wanted: bool| wanted.then_some(ANY);
    stream.extensions = ExtensionIds {
        audio_level: set(audio && options.audiolevel_ext),
        video_orientation: set(video && options.videoorient_ext),
        playout_delay: set(video && options.playoutdelay_ext),
        dependency_descriptor: set(video),
    };
    stream
}

impl RoomState {
    /// Adds the room's dummy publisher, of which nobody is told.
    pub(crate) fn add_dummy(&mut self, dummy: &Dummy, ids: Ids) {
        let media = Published {
            active: None,
            e2ee: dummy.e2ee || self.options.require_e2ee,
            streams: dummy.streams(&self.options),
            remotizations: Vec::new(),
        };
        let id = ids.random(|id| self.people.contains_key(id));
        self.add(Participant {
            origin: Origin::Dummy,
            id: id.clone(),
            private_id: self.new_private_id(),
            display: Some(DISPLAY.to_owned()),
            metadata: None,
            bitrate: 0,
            talk: TalkSettings::default(),
            record: RecordSettings::default(),
            media: Some(media),
            subscriptions: HashSet::new(),
        });
        self.media_up(&id);
    }
}
