//! The requests of clients.

use portunus_core::record::{Format, RecordError};
use portunus_core::{Asked, FieldError, Fields, Message, Untrusted, recording, requests};
use serde::Deserialize;

requests! {
    /// The requests of the plugin: one, without a name.
    pub enum Request {
        Configure = "": Event, Depends(recording);
    }
}

/// The members of a request. All are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Configure {
    pub(crate) audio: Option<bool>,
    pub(crate) video: Option<bool>,
    /// In bit/s. 0 means no cap.
    pub(crate) bitrate: Option<u64>,
    pub(crate) record: Option<bool>,
    /// The name that files begin with.
    pub(crate) filename: Option<String>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(crate) substream: Option<u8>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(crate) temporal: Option<u8>,
    /// In µs. 0 means the default.
    pub(crate) fallback: Option<u64>,
    /// Clients send it, but the plugin finds out itself.
    #[serde(rename = "svc")]
    _svc: Option<bool>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(crate) spatial_layer: Option<u8>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(crate) temporal_layer: Option<u8>,
    pub(crate) audiocodec: Option<String>,
    pub(crate) videocodec: Option<String>,
    pub(crate) videoprofile: Option<String>,
    pub(crate) opusred: Option<bool>,
    /// The format of the files.
    #[serde(deserialize_with = "portunus_core::with::record_format")]
    pub(crate) record_format: Option<Format>,
    /// In 10 ms. A negative one removes both.
    pub(crate) min_delay: Option<i64>,
    pub(crate) max_delay: Option<i64>,
}

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
    /// Returns the `error_code` on the wire.
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

/// The members of which a request without an offer has at least one.
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

impl Configure {
    pub(crate) fn read(message: &Message) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let Request::Configure =
            Asked::unnamed(Request::Configure).permit(fields, message.rights)?;
        let configure = fields.read()?;
        if message.jsep.is_none() && !USABLE.iter().any(|name| fields.has(name)) {
            return Err(Refusal::NothingUsable);
        }
        Ok(configure)
    }
}
