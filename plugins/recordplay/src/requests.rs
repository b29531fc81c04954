//! The requests of clients.

use std::time::Duration;

use portunus_core::record::Format;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{Asked, FieldError, Fields, Jsep, JsepKind, Message, Right, Rights, requests};
use serde::Deserialize;

use crate::nfo::is_file_name;
use crate::refusal::Refusal;

requests! {
    /// The requests of clients.
    pub enum Request {
        Update = "update": Reply, Nothing;
        List = "list": Reply, Nothing;
        Configure = "configure": Reply, Nothing;
        Record = "record": Event, Right(Right::Record), Begins;
        Play = "play": Event, Depends(playing), Begins;
        Start = "start": Event, Nothing;
        Seek = "seek": Event, Nothing;
        Pause = "pause": Event, Nothing;
        Resume = "resume": Event, Nothing;
        Stop = "stop": Event, Nothing;
    }
}

impl Request {
    /// Returns the request that a body names.
    pub(crate) fn asked(fields: Fields<'_>) -> Result<Asked<Self>, Refusal> {
        let name = fields.required("request")?;
        Asked::named(name).ok_or_else(|| Refusal::Unknown(name.to_owned()))
    }
}

/// Playing files of other plugins needs the right to create.
fn playing(fields: Fields<'_>) -> Rights {
    Rights::if_so(fields.has("file"), Right::Record)
}

/// The recording to play.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Play {
    /// The recording with this id.
    Recording(u64),
    /// A recording of any plugin, by the name of its file.
    File(String),
}

/// A request to record, or to renegotiate a recording.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) offer: &'a Jsep,
    pub(crate) name: String,
    /// `None`: a random id.
    pub(crate) id: Option<u64>,
    pub(crate) is_private: Option<bool>,
    pub(crate) file: Option<String>,
    pub(crate) audio_codec: Option<CodecName>,
    pub(crate) video_codec: Option<CodecName>,
    pub(crate) video_profile: Option<String>,
    pub(crate) red: bool,
    /// Whether data is text. Otherwise it is binary.
    pub(crate) text: bool,
    pub(crate) format: Option<Format>,
    /// Whether it changes the present recording.
    pub(crate) updates: bool,
}

/// The members of `record`.
#[derive(Deserialize)]
struct RecordMembers {
    name: String,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    filename: Option<String>,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    record_format: Option<String>,
    id: Option<u64>,
    is_private: Option<bool>,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    audiocodec: Option<String>,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    videocodec: Option<String>,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    videoprofile: Option<String>,
    #[serde(default)]
    opusred: bool,
    textdata: Option<bool>,
    #[serde(default)]
    update: bool,
}

/// The members of `configure`.
#[derive(Deserialize)]
struct Configure {
    #[serde(rename = "video-bitrate-max")]
    bitrate: Option<u64>,
    /// In ms.
    #[serde(rename = "video-keyframe-interval")]
    keyframes: Option<u64>,
}

/// The members of `seek`.
#[derive(Deserialize)]
pub(crate) struct Seek {
    /// In ms.
    pub(crate) position: u64,
}

/// The members of `play`.
#[derive(Deserialize)]
struct Wish {
    #[serde(default)]
    restart: bool,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    file: Option<String>,
}

impl Play {
    /// Reads the request. Returns `None` if it restarts ICE for the present playback.
    pub(crate) fn read(message: &Message) -> Result<Option<Self>, Refusal> {
        let fields = Fields(&message.body);
        if message.jsep.is_some() {
            return Err(Refusal::PlayWithJsep);
        }
        let Wish { restart, file } = fields.read()?;
        let play = match file {
            Some(file) => Play::File(file),
            None => Play::Recording(fields.required("id")?),
        };
        Ok(Some(play).filter(|_| !restart))
    }
}

/// Checks that a `start` has an answer.
pub(crate) fn check_answer(message: &Message) -> Result<(), Refusal> {
    match message.jsep.as_ref().map(|jsep| jsep.kind) {
        None => Err(Refusal::MissingAnswer),
        Some(JsepKind::Offer) => Err(Refusal::Answer("a start goes with an answer")),
        Some(JsepKind::Answer) => Ok(()),
    }
}

impl<'a> Record<'a> {
    pub(crate) fn read(message: &'a Message) -> Result<Self, Refusal> {
        let offer = message.jsep.as_ref().ok_or(Refusal::MissingOffer)?;
        if offer.kind == JsepKind::Answer {
            return Err(Refusal::Offer("it is an answer".to_owned()));
        }
        let members: RecordMembers = Fields(&message.body).read()?;
        if members.name.is_empty() {
            return Err(Refusal::element("name", "a text that is not empty"));
        }
        let file = members.filename;
        let is_bad = |file: &String| !is_file_name(file) || file.len() > 200;
        if file.as_ref().is_some_and(is_bad) {
            return Err(Refusal::element("filename", "a name without folders"));
        }
        let format = members.record_format.map(|format| format.parse());
        let invalid = |error| Refusal::Invalid(format!("record_format: {error}"));
        Ok(Record {
            name: members.name,
            id: members.id.filter(|id| *id > 0),
            is_private: members.is_private,
            file,
            audio_codec: codec(members.audiocodec, "audiocodec", Kind::Audio)?,
            video_codec: codec(members.videocodec, "videocodec", Kind::Video)?,
            video_profile: members.videoprofile,
            red: members.opusred,
            text: members.textdata.unwrap_or(true),
            format: format.transpose().map_err(invalid)?,
            updates: members.update || offer.update,
            offer,
        })
    }
}

fn codec(name: Option<String>, member: &str, kind: Kind) -> Result<Option<CodecName>, FieldError> {
    let Some(name) = name else {
        return Ok(None);
    };
    let codec = CodecName::from_name(&name.to_ascii_lowercase());
    match codec.filter(|codec| codec.kind() == kind) {
        Some(codec) => Ok(Some(codec)),
        None => Err(FieldError::wrong_type(member, "the name of a codec")),
    }
}

/// The settings for senders that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The greatest bitrate of video in bit/s. 0: no limit.
    pub(crate) bitrate: u64,
    /// The interval between keyframe requests. Zero: none.
    pub(crate) keyframes: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bitrate: 1_048_576,
            keyframes: Duration::from_secs(15),
        }
    }
}

impl Settings {
    /// Applies the request `configure`.
    pub(crate) fn configured(mut self, fields: Fields<'_>) -> Result<Self, FieldError> {
        let Configure { bitrate, keyframes } = fields.read()?;
        self.bitrate = bitrate.unwrap_or(self.bitrate);
        self.keyframes = keyframes.map_or(self.keyframes, Duration::from_millis);
        Ok(self)
    }
}
