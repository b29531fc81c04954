//! Requests of clients, and their refusals.

use portunus_call::{
    CallError, ForwardError, PlainError, RecordingAction, Sides, SrtpPolicy, Suite,
};
use portunus_core::record::Format;
use portunus_core::sdp::Kind;
use portunus_core::{
    Asked, FieldError, Fields, Jsep, JsepError, JsepKind, Message, Object, Right, Rights,
    Untrusted, requests,
};
use serde::Deserialize;
use serde_json::Value;

requests! {
    /// A request of a client.
    pub enum Request {
        Generate = "generate": Event, Right(Right::Forward), Begins;
        Process = "process": Event, Right(Right::Forward), Begins;
        Hangup = "hangup": Event, Nothing;
        Recording = "recording": Event, Depends(recording);
        Keyframe = "keyframe": Event, Nothing;
        Forward = "rtp_forward": Event, Right(Right::Forward);
        StopForward = "stop_rtp_forward": Event, Right(Right::Forward);
        ListForwarders = "listforwarders": Event, Right(Right::Forward);
    }
}

/// Stopping a recording needs no right.
fn recording(fields: Fields<'_>) -> Rights {
    let action = fields.member("action").ok().flatten();
    let stops = action.and_then(RecordingAction::from_name) == Some(RecordingAction::Stop);
    Rights::if_so(!stops, Right::Record)
}

impl Request {
    /// Returns the request of `message` if its client may make it. In a `public` plugin everybody
    /// may call. Its other members are read later.
    pub(crate) fn read(message: &Message, public: bool) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required("request")?;
        let asked = Asked::named(name).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let calls = [Request::Generate, Request::Process].map(Asked::unnamed);
        let rights = match public && calls.contains(&asked) {
            true => Right::Forward.into(),
            false => message.rights,
        };
        Ok(asked.permit(fields, rights)?)
    }
}

/// The members of `generate`.
#[derive(Deserialize)]
pub(crate) struct Generate<'a> {
    #[serde(rename = "info")]
    _info: Option<&'a str>,
    srtp: Option<&'a str>,
    srtp_profile: Option<&'a str>,
    #[serde(rename = "update")]
    _update: Option<bool>,
}

impl Generate<'_> {
    /// Returns the client's description, and its SRTP policy.
    pub(crate) fn check(self, jsep: Option<&Jsep>) -> Result<(&Jsep, Option<SrtpPolicy>), Refusal> {
        let jsep = jsep.ok_or(Refusal::MissingSdp)?;
        let mut media = jsep.description.media.iter();
        if media.any(|it| it.kind == Kind::Data && !it.rejected) {
            return Err(Refusal::DataChannels);
        }
        if jsep.e2ee {
            return Err(Refusal::Encrypted);
        }
        Ok((jsep, policy(self.srtp, self.srtp_profile)?))
    }
}

/// The members of `process`.
#[derive(Deserialize)]
pub(crate) struct Process<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    pub(crate) sdp: &'a str,
    #[serde(rename = "info")]
    _info: Option<&'a str>,
    srtp: Option<&'a str>,
    /// The description has the far end's policy.
    #[serde(rename = "srtp_profile")]
    _srtp_profile: Option<&'a str>,
    #[serde(default)]
    pub(crate) update: bool,
}

impl Process<'_> {
    /// Returns the kind of the far end's description, and the SRTP policy.
    pub(crate) fn check(&self) -> Result<(JsepKind, Option<SrtpPolicy>), Refusal> {
        if self.sdp.is_empty() {
            return Err(Refusal::MissingSdp);
        }
        let kind = match self.kind.to_ascii_lowercase().as_str() {
            "offer" => JsepKind::Offer,
            "answer" => JsepKind::Answer,
            _ => return Err(Refusal::SdpType),
        };
        Ok((kind, policy(self.srtp, None)?))
    }
}

fn policy(srtp: Option<&str>, profile: Option<&str>) -> Result<Option<SrtpPolicy>, Refusal> {
    let suite = match profile {
        None => Some(Suite::default()),
        Some(name) => Suite::from_name(name),
    };
    match srtp {
        None => Ok(None),
        Some("sdes_optional") => suite
            .map(|suite| Some(SrtpPolicy::Optional(suite)))
            .ok_or(Refusal::Profile),
        Some("sdes_mandatory") => suite
            .map(|suite| Some(SrtpPolicy::Mandatory(suite)))
            .ok_or(Refusal::Profile),
        Some(_) => Err(Refusal::Srtp),
    }
}

/// A recording request.
#[derive(Debug)]
pub(crate) struct Recording<'a> {
    pub(crate) action: RecordingAction,
    pub(crate) sides: Sides,
    pub(crate) filename: Option<&'a str>,
    pub(crate) format: Option<Format>,
}

impl<'a> Recording<'a> {
    pub(crate) fn read(fields: Fields<'a>) -> Result<Self, Refusal> {
        let action = fields.required("action")?;
        let sides: Sides = fields.read()?;
        let filename = fields.text("filename")?;
        let format = fields.record_format()?;
        let action = match RecordingAction::from_name(action) {
            Some(action @ (RecordingAction::Start | RecordingAction::Stop)) => action,
            Some(RecordingAction::Pause | RecordingAction::Resume) | None => {
                return Err(Refusal::Action);
            }
        };
        if !sides.is_any() {
            return Err(Refusal::NoSide);
        }
        Ok(Recording {
            action,
            sides,
            filename,
            format,
        })
    }
}

/// The refusal of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("Unknown request ({0})")]
    Unknown(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Missing SDP")]
    MissingSdp,
    #[error("Missing or invalid SDP type")]
    SdpType,
    #[error("The NoSIP plugin does not support DataChannels")]
    DataChannels,
    #[error("Media encryption unsupported by this plugin")]
    Encrypted,
    #[error("Invalid element (srtp can only be sdes_optional or sdes_mandatory)")]
    Srtp,
    #[error("Invalid element (unsupported SRTP profile)")]
    Profile,
    #[error("Can't {what}: SDES-SRTP required, but caller didn't offer it{}", detail(.error))]
    TooStrict {
        what: &'static str,
        error: PlainError,
    },
    #[error("Error parsing SDP: {0}")]
    Parse(PlainError),
    #[error("{0}")]
    Unusable(PlainError),
    #[error("Wrong state ({0})")]
    State(&'static str),
    #[error(transparent)]
    Call(CallError),
    #[error("Invalid action (should be start|stop)")]
    Action,
    #[error(
        "Invalid request (at least one of audio, video, peer_audio and peer_video should be true)"
    )]
    NoSide,
    #[error(transparent)]
    Forward(#[from] ForwardError),
    #[error("No such stream ({0})")]
    NoSuchStream(u64),
}

/// The reason why the present keys cannot be used.
fn detail(error: &PlainError) -> String {
    match error {
        PlainError::NoKey { refusals, .. } if !refusals.is_empty() => {
            let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            format!(" ({})", reasons.join("; "))
        }
        _ => String::new(),
    }
}

impl Refusal {
    /// Makes the refusal of a request whose media failed.
    pub(crate) fn of(what: &'static str, error: CallError) -> Self {
        match error {
            CallError::Sdp(error) if error.is_for_lack_of_srtp() => {
                Refusal::TooStrict { what, error }
            }
            CallError::Sdp(PlainError::NoOffer) => Refusal::State("no offer to answer"),
            CallError::Sdp(PlainError::Data) => Refusal::DataChannels,
            CallError::Sdp(error) if error.is_unusable() => Refusal::Unusable(error),
            CallError::Sdp(error) => Refusal::Parse(error),
            CallError::Jsep(JsepError::NoOffer) => Refusal::State("no offer to answer"),
            error => Refusal::Call(error),
        }
    }

    /// Returns the `error_code` on the wire.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Refusal::Unknown(_) => 442,
            Refusal::Field(FieldError::Missing(_))
            | Refusal::Forward(ForwardError::Field(FieldError::Missing(_))) => 443,
            Refusal::Field(_)
            | Refusal::Encrypted
            | Refusal::Srtp
            | Refusal::Profile
            | Refusal::Action
            | Refusal::Forward(_)
            | Refusal::Call(CallError::Recording(_) | CallError::Forwarders) => 444,
            Refusal::State(_) => 445,
            Refusal::MissingSdp | Refusal::SdpType | Refusal::DataChannels | Refusal::Parse(_) => {
                446
            }
            Refusal::Unusable(_) | Refusal::Call(CallError::Network(_) | CallError::Family(_)) => {
                447
            }
            Refusal::Call(CallError::Ports(_)) => 448,
            Refusal::NoSide => 449,
            Refusal::TooStrict { .. } => 450,
            Refusal::NoSuchStream(_) => 451,
            Refusal::Untrusted(_) | Refusal::Call(_) => 499,
        }
    }

    /// Makes the event for the client.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("nosip", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .into()
    }
}
