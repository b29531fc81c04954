//! What clients may ask for.

use portunus_core::record::{Format, RecordError};
use portunus_core::{FieldError, Fields, Message, Reach, Requests, Untrusted, recording};

/// The members of a request, with the right types; all are optional.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) audio: Option<bool>,
    pub(crate) video: Option<bool>,
    /// bit/s; 0: no cap
    pub(crate) bitrate: Option<u64>,
    pub(crate) substream: Option<u8>,
    pub(crate) temporal: Option<u8>,
    pub(crate) spatial_layer: Option<u8>,
    pub(crate) temporal_layer: Option<u8>,
    /// µs; 0: the default
    pub(crate) fallback: Option<u64>,
    /// Units of 10 ms; negative: off.
    pub(crate) min_delay: Option<i64>,
    pub(crate) max_delay: Option<i64>,
    pub(crate) audiocodec: Option<String>,
    pub(crate) videocodec: Option<String>,
    pub(crate) videoprofile: Option<String>,
    pub(crate) opusred: bool,
    pub(crate) record: Option<bool>,
    /// The name that files begin with.
    pub(crate) filename: Option<String>,
    /// What the files are like.
    pub(crate) record_format: Option<Format>,
}

/// All requests, of which there is one, without a name, and what it reaches beyond the call.
pub const REQUESTS: Requests = Requests(&[("", Reach::Said(recording))]);

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Message error: no supported attributes found")]
    NothingUsable,
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Cannot record: {0}")]
    Recording(#[from] RecordError),
    #[error("Error parsing offer: {0}")]
    Offer(#[from] portunus_core::JsepError),
}

impl Refusal {
    /// The `error_code` on the wire.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Refusal::Field(_)
            | Refusal::NothingUsable
            | Refusal::Untrusted(_)
            | Refusal::Recording(_) => 413,
            Refusal::Offer(_) => 414,
        }
    }
}

impl Request {
    pub(crate) fn read(message: &Message) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        REQUESTS.check("", fields, message.rights)?;
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        let audio = fields.boolean("audio")?;
        let video = fields.boolean("video")?;
        let bitrate = fields.positive("bitrate")?;
        let record = fields.boolean("record")?;
        let filename = text("filename")?;
        for layer in ["substream", "temporal"] {
            fields.positive(layer)?;
        }
        let fallback = fields.positive("fallback")?;
        fields.boolean("svc")?;
        for layer in ["spatial_layer", "temporal_layer"] {
            fields.positive(layer)?;
        }
        let request = Request {
            audio,
            video,
            bitrate,
            fallback,
            audiocodec: text("audiocodec")?,
            videocodec: text("videocodec")?,
            videoprofile: text("videoprofile")?,
            opusred: fields.boolean("opusred")?.unwrap_or(false),
            record,
            filename,
            record_format: fields.record_format()?,
            min_delay: fields.integer("min_delay")?,
            max_delay: fields.integer("max_delay")?,
            substream: fields.layer("substream")?,
            temporal: fields.layer("temporal")?,
            spatial_layer: fields.layer("spatial_layer")?,
            temporal_layer: fields.layer("temporal_layer")?,
        };
        const USABLE: [&str; 14] = [
            "audio",
            "video",
            "videocodec",
            "videoprofile",
            "opusred",
            "bitrate",
            "substream",
            "temporal",
            "fallback",
            "spatial_layer",
            "temporal_layer",
            "record",
            "min_delay",
            "max_delay",
        ];
        if message.jsep.is_none() && !USABLE.iter().any(|name| fields.has(name)) {
            return Err(Refusal::NothingUsable);
        }
        Ok(request)
    }
}
