//! The requests of clients, and their refusals.

use portunus_core::record::RecordError;
use portunus_core::{
    Asked, FieldError, Fields, Jsep, JsepError, JsepKind, Message, Object, Right, Rights,
    Untrusted, requests,
};
use serde_json::Value;

requests! {
    /// The requests of clients.
    pub enum Request {
        /// Starts a message with the media of an offer.
        Record = "record": Event, Right(Right::Record), Begins;
        /// Changes the PeerConnection.
        Update = "update": Event, Nothing;
        /// Completes the message and closes the handle.
        Stop = "stop": Event, Nothing;
    }
}

impl Request {
    /// Returns the request that the message names, if `rights` suffice.
    pub(crate) fn read(message: &Message, rights: Rights) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required("request")?;
        let asked = Asked::named(name).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        Ok(asked.permit(fields, rights)?)
    }
}

/// Returns the offer of a request that needs one.
pub(crate) fn offer(message: &Message) -> Result<&Jsep, Refusal> {
    let missing = || FieldError::Missing("jsep".to_owned());
    let jsep = message.jsep.as_ref().ok_or_else(missing)?;
    match jsep.kind {
        JsepKind::Answer => Err(Refusal::NotAnOffer),
        JsepKind::Offer if jsep.e2ee => Err(Refusal::Encrypted),
        JsepKind::Offer => Ok(jsep),
    }
}

/// The reason of a refusal, or of the early end of a message. Its text is for the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    #[error("Unknown request '{0}'")]
    Unknown(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Invalid element (jsep should be an offer)")]
    NotAnOffer,
    #[error("Invalid element (what is encrypted end to end cannot be recorded)")]
    Encrypted,
    #[error("Invalid element (the offer has to send Opus)")]
    NoOpus,
    #[error("Invalid element (the sound that is recorded has to stay on its m-line)")]
    OtherLine,
    #[error("Already recording")]
    AlreadyRecording,
    #[error("Cannot open the file: {0}")]
    Open(String),
    #[error("Cannot write the file: {0}")]
    Write(String),
    #[error("Not recording")]
    NotRecording,
    #[error("Error in the offer: {0}")]
    Offer(#[from] JsepError),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
}

impl Refusal {
    /// The file cannot be made. The reason is confidential.
    pub(crate) fn open(error: &RecordError, may_know_reason: bool) -> Self {
        Refusal::Open(reason(error, may_know_reason))
    }

    /// The file cannot be written any more.
    pub(crate) fn write(error: &RecordError, may_know_reason: bool) -> Self {
        Refusal::Write(reason(error, may_know_reason))
    }

    /// Returns the `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 461,
            Refusal::Unknown(_) => 462,
            Refusal::Field(FieldError::Missing(_)) => 463,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::NotAnOffer
            | Refusal::Encrypted
            | Refusal::NoOpus
            | Refusal::OtherLine => 464,
            Refusal::AlreadyRecording => 465,
            Refusal::Open(_) => 466,
            Refusal::Write(_) => 467,
            Refusal::NotRecording => 468,
            Refusal::Offer(_) | Refusal::Untrusted(_) => 499,
        }
    }

    /// Returns the answer to the client.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("voicemail", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .into()
    }
}

fn reason(error: &RecordError, may_know_reason: bool) -> String {
    match may_know_reason {
        true => error.to_string(),
        false => "the server has no room for it now".to_owned(),
    }
}
