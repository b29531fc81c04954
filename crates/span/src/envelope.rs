//! Messages between two nodes about a thing, as protobuf: readers skip what they do not know.

use bytes::Bytes;
use portunus_cluster::{HomeKey, KeyError};
use prost::Message;

/// A message about a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The thing.
    pub(crate) key: HomeKey,
    /// The content, which the kind understands.
    pub(crate) body: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Parts {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "bytes", tag = "2")]
    body: Bytes,
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
        let Parts { key, body } = Parts::decode(bytes)?;
        let key = HomeKey::parse(&key)?;
        Ok(Envelope { key, body })
    }

    /// Returns the bytes.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let parts = Parts {
            key: self.key.as_str().to_owned(),
            body: self.body.clone(),
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
        let envelope = Envelope {
            key: HomeKey::new("room.videoroom", "1234").unwrap(),
            body: Bytes::from_static(&[0, 255]),
        };
        let bytes = envelope.to_bytes();
        assert_eq!(Envelope::parse(bytes.clone()).unwrap(), envelope);
        assert!(Envelope::parse(bytes.slice(..5)).is_err());
        assert!(Envelope::parse(Bytes::new()).is_err());
    }
}
