//! Messages between two nodes about a thing, as protobuf: readers skip what they do not know.

use bytes::Bytes;
use portunus_cluster::{HomeKey, KeyError};
use prost::Message;

/// A message about a thing, or a part of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The thing.
    pub(crate) key: HomeKey,
    /// The content, which the kind understands.
    pub(crate) body: Bytes,
    /// Which part it is, if it is one.
    pub(crate) part: Option<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The number of the message. A node uses none twice on one connection.
    pub(crate) message: u64,
    /// The number of the part, from 0.
    pub(crate) index: u32,
    /// Whether it is the last one.
    pub(crate) is_last: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Parts {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "bytes", tag = "2")]
    body: Bytes,
    #[prost(message, optional, tag = "3")]
    part: Option<PartOf>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct PartOf {
    #[prost(uint64, tag = "1")]
    message: u64,
    #[prost(uint32, tag = "2")]
    index: u32,
    #[prost(bool, tag = "3")]
    is_last: bool,
}

/// A message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    /// It is no protobuf message.
    #[error("a message about a thing is malformed: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// It does not name a thing.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Envelope {
    /// Reads a message.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self, EnvelopeError> {
        let Parts { key, body, part } = Parts::decode(bytes)?;
        let key = HomeKey::parse(&key)?;
        let part = part.map(|part| Part {
            message: part.message,
            index: part.index,
            is_last: part.is_last,
        });
        Ok(Envelope { key, body, part })
    }

    /// Returns the bytes.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let parts = Parts {
            key: self.key.as_str().to_owned(),
            body: self.body.clone(),
            part: self.part.map(|part| PartOf {
                message: part.message,
                index: part.index,
                is_last: part.is_last,
            }),
        };
        parts.encode_to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn an_envelope_is_the_same_when_it_was_written_and_read() {
        let part = Part {
            message: 7,
            index: 0,
            is_last: true,
        };
        let envelope = |part| Envelope {
            key: HomeKey::new("room.videoroom", "1234").unwrap(),
            body: Bytes::from_static(&[0, 255]),
            part,
        };
        for envelope in [envelope(None), envelope(Some(part))] {
            assert_eq!(Envelope::parse(envelope.to_bytes()).unwrap(), envelope);
        }
        let bytes = envelope(None).to_bytes();
        assert!(Envelope::parse(bytes.slice(..5)).is_err());
        assert!(Envelope::parse(Bytes::new()).is_err());
    }
}
