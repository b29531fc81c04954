//! What users may ask for, and why they are refused.

use portunus_core::record::{Format, RecordError};
use portunus_core::{
    FieldError, Fields, JsepError, Message, Reach, Requests, Untrusted, recording,
};

/// All requests, and what each reaches beyond the call.
pub const REQUESTS: Requests = Requests(&[
    ("list", Reach::Call),
    ("register", Reach::Call),
    ("call", Reach::Call),
    ("accept", Reach::Call),
    ("set", Reach::Said(recording)),
    ("hangup", Reach::Call),
]);

/// A request with its fields checked, except a username: other checks come before it.
#[derive(Debug)]
pub(crate) enum Request {
    List,
    Register,
    Call,
    Accept,
    Set(Changes),
    Hangup { reason: Option<String> },
}

/// The fields of `set`; all are optional.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) audio: Option<bool>,
    pub(crate) video: Option<bool>,
    /// bit/s; 0: no cap
    pub(crate) bitrate: Option<u64>,
    pub(crate) substream: Option<u8>,
    pub(crate) temporal: Option<u8>,
    /// µs; 0: the default
    pub(crate) fallback: Option<u64>,
    pub(crate) record: Option<bool>,
    /// The name that files begin with.
    pub(crate) filename: Option<String>,
    /// What the files are like.
    pub(crate) record_format: Option<Format>,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("Unknown request ({0})")]
    Unknown(String),
    #[error("Register a username first")]
    NotRegistered,
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Cannot record: {0}")]
    Recording(#[from] RecordError),
    #[error("Username '{0}' already taken")]
    Taken(String),
    #[error("Already registered ({0})")]
    AlreadyRegistered(String),
    #[error("Username '{0}' doesn't exist")]
    NoSuchUser(String),
    #[error("You can't call yourself... use the EchoTest for that")]
    Oneself,
    #[error("Already in a call")]
    AlreadyInCall,
    #[error("No incoming call to accept")]
    NoCall,
    #[error("Missing SDP")]
    MissingSdp,
    #[error("Error parsing offer: {0}")]
    Offer(JsepError),
    #[error("Error parsing answer: {0}")]
    Answer(JsepError),
    #[error("Error parsing {0}: unexpected type")]
    WrongType(&'static str),
}

impl Refusal {
    /// The `error_code` on the wire.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Refusal::Unknown(_) => 472,
            Refusal::NotRegistered => 473,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Untrusted(_)
            | Refusal::Recording(_) => 474,
            Refusal::Field(FieldError::Missing(_)) => 475,
            Refusal::Taken(_) => 476,
            Refusal::AlreadyRegistered(_) => 477,
            Refusal::NoSuchUser(_) => 478,
            Refusal::Oneself => 479,
            Refusal::AlreadyInCall => 480,
            Refusal::NoCall => 481,
            Refusal::MissingSdp => 482,
            Refusal::Offer(_) | Refusal::Answer(_) | Refusal::WrongType(_) => 483,
        }
    }
}

impl Request {
    pub(crate) fn read(message: &Message) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required_string("request")?;
        let lower = name.to_ascii_lowercase();
        let unknown = || Refusal::Unknown(name.to_owned());
        REQUESTS.reach(&lower).ok_or_else(unknown)?;
        REQUESTS.check(&lower, fields, message.rights)?;
        match lower.as_str() {
            "list" => Ok(Request::List),
            "register" => Ok(Request::Register),
            "call" => Ok(Request::Call),
            "accept" => Ok(Request::Accept),
            "set" => Changes::read(fields).map(Request::Set),
            "hangup" => {
                let reason = fields.string("reason").ok().flatten().map(str::to_owned);
                Ok(Request::Hangup { reason })
            }
            _ => Err(unknown()),
        }
    }
}

impl Changes {
    fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let audio = fields.boolean("audio")?;
        let video = fields.boolean("video")?;
        let bitrate = fields.positive("bitrate")?;
        let record = fields.boolean("record")?;
        let filename = fields.string("filename")?.map(str::to_owned);
        // The client restarts ICE by its offer; there is nothing to do for it here.
        fields.boolean("restart")?;
        let layer = |name| match fields.layer(name) {
            Err(_) => Err(FieldError::value(name, "should be 0, 1 or 2")),
            layer => layer,
        };
        Ok(Changes {
            audio,
            video,
            bitrate,
            substream: layer("substream")?,
            temporal: layer("temporal")?,
            fallback: fields.positive("fallback")?,
            record,
            filename,
            record_format: fields.record_format()?,
        })
    }
}
