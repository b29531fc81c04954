//! Dummy publishers: they send nothing, and hold the places of publishers who are still to come. Whoever subscribes to
//! one has m-lines that a `switch` gives to others later, without a negotiation.

use portunus_core::sdp::CodecName;
use portunus_core::{Fields, Object};
use serde_json::Value;

use crate::refusal::Refusal;

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
    pub(crate) codec: CodecName,
    pub(crate) fmtp: Option<String>,
}

impl Dummy {
    /// What people see of it.
    pub(crate) const DISPLAY: &'static str = "Dummy publisher";

    /// Reads what `create` and the configuration say of it; none if there is none.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Option<Self>, Refusal> {
        let wanted = fields.boolean("dummy_publisher")?.unwrap_or(false);
        let entries = fields.objects("dummy_streams")?;
        let entries = entries.into_iter().flatten().map(DummyStream::read);
        let dummy = Dummy {
            streams: entries.collect::<Result<_, _>>()?,
            e2ee: fields.boolean("dummy_e2ee")?.unwrap_or(false),
        };
        Ok(wanted.then_some(dummy))
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
