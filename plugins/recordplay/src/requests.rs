//! What clients may ask for.

use std::time::Duration;

use portunus_core::record::Format;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{FieldError, Fields, Jsep, JsepKind, Message, Reach, Requests, Right, Rights};

use crate::nfo::is_file_name;
use crate::refusal::Refusal;

/// All requests, and what each reaches beyond the call.
pub const REQUESTS: Requests = Requests(&[
    ("update", Reach::Call),
    ("list", Reach::Call),
    ("configure", Reach::Call),
    ("record", Reach::Beyond(Right::Record)),
    ("play", Reach::Said(playing)),
    ("start", Reach::Call),
    ("seek", Reach::Call),
    ("pause", Reach::Call),
    ("resume", Reach::Call),
    ("stop", Reach::Call),
]);

/// Files of other plugins are for those who may make them.
fn playing(fields: Fields<'_>) -> Rights {
    Rights::if_so(fields.has("file"), Right::Record)
}

/// A request that is answered by an event.
#[derive(Debug)]
pub(crate) enum Request<'a> {
    Record(Record<'a>),
    Play(Play),
    /// Goes on playing the same, with new ICE credentials.
    Restart,
    Start,
    Seek(Duration),
    Pause,
    Resume,
    Stop,
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

impl<'a> Request<'a> {
    /// Reads the request called `name`; none if there is none that is answered by an event.
    pub(crate) fn read(name: &str, message: &'a Message) -> Option<Result<Self, Refusal>> {
        let fields = Fields(&message.body);
        Some(match name {
            "record" => Record::read(message, fields).map(Request::Record),
            "play" => play(message, fields),
            "start" => match &message.jsep {
                None => Err(Refusal::MissingAnswer),
                Some(jsep) if jsep.kind == JsepKind::Offer => {
                    Err(Refusal::Answer("a start goes with an answer"))
                }
                Some(_) => Ok(Request::Start),
            },
            "seek" => fields
                .required_positive("position")
                .map(|position| Request::Seek(Duration::from_millis(position)))
                .map_err(Refusal::from),
            "pause" => Ok(Request::Pause),
            "resume" => Ok(Request::Resume),
            "stop" => Ok(Request::Stop),
            _ => return None,
        })
    }
}

fn play<'a>(message: &Message, fields: Fields<'_>) -> Result<Request<'a>, Refusal> {
    if message.jsep.is_some() {
        return Err(Refusal::PlayWithJsep);
    }
    let restart = fields.boolean("restart")?.unwrap_or(false);
    let file = fields.text("file")?;
    if let Some(file) = file.filter(|_| !restart) {
        return Ok(Request::Play(Play::File(file.to_owned())));
    }
    let id = match file {
        Some(_) => 0,
        None => fields.required_positive("id")?,
    };
    Ok(match restart {
        true => Request::Restart,
        false => Request::Play(Play::Recording(id)),
    })
}

impl<'a> Record<'a> {
    fn read(message: &'a Message, fields: Fields<'_>) -> Result<Self, Refusal> {
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
