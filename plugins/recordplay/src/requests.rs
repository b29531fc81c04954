//! What clients may ask for.

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
        Record = "record": Event, Right(Right::Record);
        Play = "play": Event, Depends(playing);
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
        let name = fields.required_string("request")?;
        Asked::named(name).ok_or_else(|| Refusal::Unknown(name.to_owned()))
    }
}

/// Files of other plugins are for those who may make them.
fn playing(fields: Fields<'_>) -> Rights {
    Rights::if_so(fields.has("file"), Right::Record)
}

/// What is to be played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Play {
    /// The recording of this number.
    Recording(u64),
    /// A recording of any plugin, by the name of its file.
    File(String),
}

/// A recording to be, or one that is renegotiated.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) offer: &'a Jsep,
    pub(crate) name: String,
    /// None: at random.
    pub(crate) id: Option<u64>,
    pub(crate) is_private: Option<bool>,
    pub(crate) file: Option<String>,
    pub(crate) audio_codec: Option<CodecName>,
    pub(crate) video_codec: Option<CodecName>,
    pub(crate) video_profile: Option<String>,
    pub(crate) red: bool,
    /// Data is text, else bytes.
    pub(crate) text: bool,
    pub(crate) format: Option<Format>,
    /// It changes the recording that there is.
    pub(crate) updates: bool,
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
    /// Returns `None` if what is played goes on, with new ICE credentials.
    pub(crate) fn read(message: &Message) -> Result<Option<Self>, Refusal> {
        let fields = Fields(&message.body);
        if message.jsep.is_some() {
            return Err(Refusal::PlayWithJsep);
        }
        let Wish { restart, file } = fields.read()?;
        let play = match file {
            Some(file) => Play::File(file),
            None => Play::Recording(fields.required_positive("id")?),
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
        let fields = Fields(&message.body);
        let offer = message.jsep.as_ref().ok_or(Refusal::MissingOffer)?;
        if offer.kind == JsepKind::Answer {
            return Err(Refusal::Offer("it is an answer".to_owned()));
        }
        let name = fields.required_string("name")?;
        if name.is_empty() {
            return Err(Refusal::element("name", "a text that is not empty"));
        }
        let file = fields.text("filename")?;
        if file.is_some_and(|file| !is_file_name(file) || file.len() > 200) {
            return Err(Refusal::element("filename", "a name without folders"));
        }
        let format = fields.text("record_format")?;
        let format = format.map(str::parse).transpose();
        Ok(Record {
            name: name.to_owned(),
            id: fields.positive("id")?.filter(|id| *id > 0),
            is_private: fields.boolean("is_private")?,
            file: file.map(str::to_owned),
            audio_codec: codec(fields, "audiocodec", Kind::Audio)?,
            video_codec: codec(fields, "videocodec", Kind::Video)?,
            video_profile: fields.text("videoprofile")?.map(str::to_owned),
            red: fields.boolean("opusred")?.unwrap_or(false),
            text: fields.boolean("textdata")?.unwrap_or(true),
            format: format.map_err(|error| Refusal::Invalid(format!("record_format: {error}")))?,
            updates: fields.boolean("update")?.unwrap_or(false) || offer.update,
            offer,
        })
    }
}

fn codec(fields: Fields<'_>, member: &str, kind: Kind) -> Result<Option<CodecName>, Refusal> {
    let Some(name) = fields.text(member)? else {
        return Ok(None);
    };
    let codec = CodecName::from_name(&name.to_ascii_lowercase());
    match codec.filter(|codec| codec.kind() == kind) {
        Some(codec) => Ok(Some(codec)),
        None => Err(Refusal::Field(FieldError::wrong_type(
            member,
            "the name of a codec",
        ))),
    }
}

/// What a handle asks its clients for while they are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The most that video may have, in bit/s; 0: no limit.
    pub(crate) bitrate: u64,
    /// How often a keyframe is asked for; zero: never.
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
    /// These with what `configure` says.
    pub(crate) fn configured(mut self, fields: Fields<'_>) -> Result<Self, FieldError> {
        let bitrate = fields.positive("video-bitrate-max")?;
        let keyframes = fields.positive("video-keyframe-interval")?;
        self.bitrate = bitrate.unwrap_or(self.bitrate);
        self.keyframes = keyframes.map_or(self.keyframes, Duration::from_millis);
        Ok(self)
    }
}
