//! What clients may ask for, and why it is refused.

use portunus_call::{
    CallError, ForwardError, ForwardRequest, PlainError, RecordingAction, Sides, SrtpPolicy, Suite,
};
use portunus_core::record::Format;
use portunus_core::sdp::Kind;
use portunus_core::{
    FieldError, Fields, Jsep, JsepError, Message, Object, Reach, Requests, Right, Rights, Untrusted,
};
use serde_json::Value;

/// All requests, and what each reaches beyond the call.
pub const REQUESTS: Requests = Requests(&[
    ("generate", Reach::Beyond(Right::Forward)),
    ("process", Reach::Beyond(Right::Forward)),
    ("hangup", Reach::Call),
    ("recording", Reach::Said(recording)),
    ("keyframe", Reach::Call),
    ("rtp_forward", Reach::Beyond(Right::Forward)),
    ("stop_rtp_forward", Reach::Beyond(Right::Forward)),
    ("listforwarders", Reach::Beyond(Right::Forward)),
]);

/// To stop recording needs nothing.
fn recording(fields: Fields<'_>) -> Rights {
    let action = fields.string("action").ok().flatten();
    let stops = action.and_then(RecordingAction::from_name) == Some(RecordingAction::Stop);
    Rights::if_so(!stops, Right::Record)
}

/// A request.
#[derive(Debug)]
pub(crate) enum Request<'a> {
    /// SDP for the far end is to be made of this offer or answer.
    Generate {
        jsep: &'a Jsep,
        srtp: Option<SrtpPolicy>,
    },
    /// An offer or answer of the far end.
    Process(Process<'a>),
    Hangup,
    Recording(Recording<'a>),
    Keyframe {
        user: bool,
        peer: bool,
    },
    Forward(ForwardRequest),
    StopForward(u64),
    ListForwarders,
}

/// SDP of the far end.
#[derive(Debug)]
pub(crate) struct Process<'a> {
    pub(crate) is_offer: bool,
    pub(crate) sdp: &'a str,
    pub(crate) srtp: Option<SrtpPolicy>,
    pub(crate) update: bool,
}

/// What is to be recorded, or no more.
#[derive(Debug)]
pub(crate) struct Recording<'a> {
    pub(crate) action: RecordingAction,
    pub(crate) sides: Sides,
    pub(crate) filename: Option<&'a str>,
    pub(crate) format: Option<Format>,
}

impl<'a> Request<'a> {
    /// Reads a request; in a `public` plugin everybody may call.
    pub(crate) fn read(message: &'a Message, public: bool) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let given = fields.required_string("request")?;
        let name = given.to_ascii_lowercase();
        let calls = matches!(name.as_str(), "generate" | "process");
        if !(calls && public) {
            REQUESTS.check(&name, fields, message.rights)?;
        }
        match name.as_str() {
            "generate" => generate(fields, message.jsep.as_ref()),
            "process" => process(fields),
            "hangup" => Ok(Request::Hangup),
            "recording" => read_recording(fields),
            "keyframe" => Ok(Request::Keyframe {
                user: fields.boolean("user")?.unwrap_or(false),
                peer: fields.boolean("peer")?.unwrap_or(false),
            }),
            "rtp_forward" => Ok(Request::Forward(ForwardRequest::read(fields)?)),
            "stop_rtp_forward" => {
                let id = fields.required_positive("stream_id")?;
                Ok(Request::StopForward(id))
            }
            "listforwarders" => Ok(Request::ListForwarders),
            _ => Err(Refusal::Unknown(given.to_owned())),
        }
    }
}

fn generate<'a>(fields: Fields<'_>, jsep: Option<&'a Jsep>) -> Result<Request<'a>, Refusal> {
    fields.string("info")?;
    let srtp = fields.string("srtp")?;
    let profile = fields.string("srtp_profile")?;
    fields.boolean("update")?;
    let jsep = jsep.ok_or(Refusal::MissingSdp)?;
    let media = jsep.description.media.iter();
    if media
        .clone()
        .any(|it| it.kind == Kind::Data && !it.rejected)
    {
        return Err(Refusal::DataChannels);
    }
    if jsep.e2ee {
        return Err(Refusal::Encrypted);
    }
    let srtp = policy(srtp, profile)?;
    Ok(Request::Generate { jsep, srtp })
}

fn process(fields: Fields<'_>) -> Result<Request<'_>, Refusal> {
    let kind = fields.required_string("type")?;
    let sdp = fields.required_string("sdp")?;
    fields.string("info")?;
    let srtp = fields.string("srtp")?;
    // What the far end uses is in its description.
    fields.string("srtp_profile")?;
    let update = fields.boolean("update")?.unwrap_or(false);
    if sdp.is_empty() {
        return Err(Refusal::MissingSdp);
    }
    let is_offer = match kind.to_ascii_lowercase().as_str() {
        "offer" => true,
        "answer" => false,
        _ => return Err(Refusal::SdpType),
    };
    Ok(Request::Process(Process {
        is_offer,
        sdp,
        srtp: policy(srtp, None)?,
        update,
    }))
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

fn read_recording(fields: Fields<'_>) -> Result<Request<'_>, Refusal> {
    let action = fields.required_string("action")?;
    let side = |name| Ok::<_, FieldError>(fields.boolean(name)?.unwrap_or(false));
    let sides = Sides {
        audio: side("audio")?,
        video: side("video")?,
        peer_audio: side("peer_audio")?,
        peer_video: side("peer_video")?,
    };
    let filename = fields.text("filename")?;
    let format = fields.record_format()?;
    let action = match RecordingAction::from_name(action) {
        Some(action @ (RecordingAction::Start | RecordingAction::Stop)) => action,
        Some(RecordingAction::Pause | RecordingAction::Resume) | None => {
            return Err(Refusal::Action);
        }
    };
    match sides.is_any() {
        true => Ok(Request::Recording(Recording {
            action,
            sides,
            filename,
            format,
        })),
        false => Err(Refusal::NoSide),
    }
}

/// Why a request is refused.
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

/// Why the keys that there are cannot be used.
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
    /// What did not work about the media of a call, in a request that is to do something.
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

    /// The `error_code` on the wire.
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

    /// What the client gets.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("nosip", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .into()
    }
}
