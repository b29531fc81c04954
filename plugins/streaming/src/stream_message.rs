//! Messages of data streams, on their way to other nodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portunus_core::media::DataPayload;
use serde::{Deserialize, Serialize};

/// A message of a data stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMessage {
    /// The id of the mountpoint.
    pub mountpoint: String,
    /// The mid of the stream.
    pub mid: String,
    /// The content.
    pub payload: DataPayload,
    /// Whether the message is older than the request of the other node, which may have it.
    pub is_kept: bool,
}

/// A [`StreamMessage`] as JSON.
#[derive(Serialize, Deserialize)]
struct Written {
    id: String,
    mid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    #[serde(default)]
    kept: bool,
}

/// The bytes are no message of a data stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message of a data stream cannot be read: {0}")]
pub struct StreamMessageError(String);

impl StreamMessage {
    /// Reads a message. Unknown members are skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self, StreamMessageError> {
        let read: Result<Written, _> = serde_json::from_slice(bytes);
        let written = read.map_err(|error| StreamMessageError(error.to_string()))?;
        let payload = match (written.text, written.bytes) {
            (Some(text), _) => DataPayload::Text(text),
            (None, Some(bytes)) => {
                let bytes = STANDARD.decode(bytes);
                DataPayload::Binary(bytes.map_err(|error| StreamMessageError(error.to_string()))?)
            }
            (None, None) => return Err(StreamMessageError("it is empty".to_owned())),
        };
        Ok(StreamMessage {
            mountpoint: written.id,
            mid: written.mid,
            payload,
            is_kept: written.kept,
        })
    }

    /// Returns the bytes that [`StreamMessage::parse`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (text, bytes) = match &self.payload {
            DataPayload::Text(text) => (Some(text.clone()), None),
            DataPayload::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        let written = Written {
            id: self.mountpoint.clone(),
            mid: self.mid.clone(),
            text,
            bytes,
            kept: self.is_kept,
        };
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(&written).unwrap_or_default()
    }

    /// Returns the content as bytes.
    pub(crate) fn content(&self) -> &[u8] {
        match &self.payload {
            DataPayload::Text(text) => text.as_bytes(),
            DataPayload::Binary(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_message_is_the_same_when_it_was_written_and_read() {
        for payload in [
            DataPayload::Text("hi".to_owned()),
            DataPayload::Binary(vec![0, 255]),
        ] {
            let message = StreamMessage {
                mountpoint: "7".to_owned(),
                mid: "d".to_owned(),
                payload,
                is_kept: true,
            };
            assert_eq!(StreamMessage::parse(&message.to_bytes()), Ok(message));
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        for wrong in [
            "",
            "[]",
            "{\"id\": \"7\", \"mid\": \"d\"}",
            "{\"id\": \"7\", \"mid\": \"d\", \"bytes\": \"?\"}",
            "{\"id\": 7, \"mid\": \"d\", \"text\": \"\"}",
        ] {
            assert!(StreamMessage::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
