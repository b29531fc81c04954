//! Messages between two nodes about calls, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portunus_core::media::{DataMessage, DataPayload};
use portunus_relay::Offer;
use serde::{Deserialize, Serialize};

use super::description::Described;

/// A message between the nodes of the two sides of a call, which has a number at random. Later
/// versions may add messages and members, which earlier ones skip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum CallMessage {
    /// A user of the sender calls one of the receiver.
    Invite {
        id: u64,
        from: String,
        to: String,
        offer: Described,
        /// The mid of the m-line that comes as simulcast.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        simulcast: Option<String>,
        #[serde(default)]
        e2ee: bool,
    },
    /// The callee is told.
    Ringing { id: u64 },
    /// There is no call.
    Refused { id: u64, reason: Unwilling },
    /// The callee has accepted.
    Accepted {
        id: u64,
        answer: Described,
        #[serde(default)]
        e2ee: bool,
    },
    /// An offer that changes the call, or the answer to one.
    Update {
        id: u64,
        is_offer: bool,
        description: Described,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        simulcast: Option<String>,
    },
    /// What the user of the sender wants to be sent.
    Settings { id: u64, audio: bool, video: bool },
    /// The sources of the user of the sender, by the places of their m-lines.
    Sources { id: u64, offers: Vec<Option<Offer>> },
    /// A message of a data channel.
    Data { id: u64, message: FarData },
    /// The call has ended: on request, with its text, or because the side is gone.
    End { id: u64, reason: Option<String> },
    /// After a connection was replaced: all calls with the receiver, and which of them are accepted.
    Known { calls: Vec<(u64, bool)> },
    /// A message of a later version.
    #[serde(other)]
    Later,
}

/// Why a user is not called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unwilling {
    /// There is no such user.
    NoSuchUser,
    /// The user has a call.
    Busy,
    /// The offer does not fit, for this reason.
    Offer(String),
}

/// A message of a data channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarData {
    label: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

impl FarData {
    pub(crate) fn of(message: &DataMessage) -> Self {
        let (text, bytes) = match &message.payload {
            DataPayload::Text(text) => (Some(text.clone()), None),
            DataPayload::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        FarData {
            label: message.label.clone(),
            protocol: message.protocol.clone(),
            text,
            bytes,
        }
    }

    /// Returns the message, or `None` if it is malformed.
    pub(crate) fn message(self) -> Option<DataMessage> {
        let payload = match (self.text, self.bytes) {
            (Some(text), _) => DataPayload::Text(text),
            (None, bytes) => DataPayload::Binary(STANDARD.decode(bytes?).ok()?),
        };
        Some(DataMessage {
            label: self.label,
            protocol: self.protocol,
            payload,
        })
    }
}

impl CallMessage {
    /// Reads a message. Returns `None` if it is malformed.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use portunus_core::sdp::Description;

    use super::*;

    #[test]
    fn messages_are_the_same_when_they_were_written_and_read() {
        let nothing = || Described::of(&Description::default());
        let data = DataMessage {
            label: "chat".to_owned(),
            protocol: String::new(),
            payload: DataPayload::Binary(vec![0, 255]),
        };
        assert_eq!(FarData::of(&data).message(), Some(data.clone()));
        for message in [
            CallMessage::Invite {
                id: u64::MAX,
                from: "al".to_owned(),
                to: "bo".to_owned(),
                offer: nothing(),
                simulcast: Some("1".to_owned()),
                e2ee: true,
            },
            CallMessage::Refused {
                id: 1,
                reason: Unwilling::Offer("why".to_owned()),
            },
            CallMessage::Sources {
                id: 1,
                offers: vec![None],
            },
            CallMessage::Data {
                id: 1,
                message: FarData::of(&data),
            },
            CallMessage::Known {
                calls: vec![(1, true)],
            },
        ] {
            let again = CallMessage::parse(&message.to_bytes());
            assert_eq!(again, Some(message));
        }
        let later = CallMessage::parse(br#"{"call":"hold","id":7}"#);
        assert_eq!(later, Some(CallMessage::Later));
        assert_eq!(CallMessage::parse(b"[]"), None);
    }
}
