//! The messages between the node of a client and the home of its room, as JSON.
//!
//! Later versions may add messages and members, which earlier ones skip.

use portunus_relay::Offer;
use portunus_resources::FarAuthor;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The number of a client's stay in a room, at the node of the client.
pub(crate) type StayId = u64;
/// The number of a request that is answered.
pub(crate) type CallId = u64;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(crate) enum FarMessage {
    /// To the home: a client wants to join a room, or to listen to it.
    Enter {
        call: CallId,
        stay: StayId,
        listens: bool,
        author: FarAuthor,
        body: Map<String, Value>,
    },
    /// To the home: a request about a room. `configure` is one of them, with a stay.
    Ask {
        call: CallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stay: Option<StayId>,
        author: FarAuthor,
        body: Map<String, Value>,
    },
    /// To the home: the media of a stay.
    Media { stay: StayId, media: FarMedia },
    /// To the home: a stay has ended. `lost`: not by a request of the client.
    Leave { stay: StayId, lost: bool },
    /// To the home: the client begins a new stream.
    ResetDecoder { stay: StayId },
    /// To a node with a room of the same id: the room was destroyed, or changed permanently by a
    /// request.
    Destroyed {
        room: String,
        /// How long ago it was destroyed permanently, in s. `None` if it was not permanently.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permanently: Option<u64>,
    },
    Edited {
        room: String,
        body: Map<String, Value>,
    },
    /// The client is in the room.
    Entered {
        call: CallId,
        stay: StayId,
        entry: FarEntry,
    },
    /// The answer to a request, or the refusal of an entry.
    Answer { call: CallId, answer: Value },
    /// An event for clients.
    Tell { stays: Vec<StayId>, event: Value },
    /// What a client hears.
    Mix { stay: StayId, offer: Offer },
    /// The stay has ended at the home. The client loses its PeerConnection.
    Closed { stay: StayId },
    /// A message of a later version.
    #[serde(other)]
    Later,
}

/// What the node of a client has to know of its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarEntry {
    /// The id of the participant, or `None` for a listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Value>,
    /// The answer to the client, without the name of the event for a participant.
    pub(crate) event: Map<String, Value>,
    /// The codec of a participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) codec: Option<String>,
    /// The sampling rate in Hz.
    pub(crate) rate: u32,
    /// Whether the mix is stereo.
    pub(crate) spatial: bool,
}

/// The media of a client, as it was negotiated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FarMedia {
    /// Whether media can flow.
    pub(crate) is_up: bool,
    /// The source of the client, if it talks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<Offer>,
    /// The codec that it hears, if it hears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hears: Option<String>,
    /// Whether its packets carry audio levels.
    pub(crate) levels: bool,
    /// Whether it accepts in-band FEC.
    pub(crate) fec: bool,
    /// Whether it may send redundant audio.
    pub(crate) red: bool,
}

impl FarMessage {
    /// Reads a message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Returns the bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // The types have no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use portunus_core::sdp::CodecName;
    use portunus_relay::{SourceDescription, SourceId};
    use portunus_resources::{Asker, Id};
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_the_same_when_they_were_written_and_read() {
        let body = json!({ "request": "join", "room": 1 });
        let offer = Offer {
            id: SourceId(7),
            description: SourceDescription::new(CodecName::Opus),
        };
        for message in [
            FarMessage::Enter {
                call: 1,
                stay: 2,
                listens: false,
                author: FarAuthor::of(&Asker::administrator(), &Id::Number(1), None),
                body: body.as_object().unwrap().clone(),
            },
            FarMessage::Media {
                stay: 2,
                media: FarMedia {
                    is_up: true,
                    offer: Some(offer),
                    hears: Some("opus".to_owned()),
                    ..FarMedia::default()
                },
            },
            FarMessage::Tell {
                stays: vec![1, 2],
                event: json!({ "audiobridge": "event" }),
            },
        ] {
            let again = FarMessage::parse(&message.to_bytes()).unwrap();
            assert_eq!(again, message);
        }
        let later = FarMessage::parse(br#"{"message":"dance","stay":1}"#).unwrap();
        assert_eq!(later, FarMessage::Later);
        assert!(FarMessage::parse(b"[]").is_err());
    }
}
