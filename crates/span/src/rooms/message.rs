//! Messages between two nodes about a video room, as JSON.

use serde::{Deserialize, Serialize};

use super::door_messages::Numbered;

/// A message about a room. Later versions may add messages and members, which earlier ones skip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "room", rename_all = "snake_case")]
pub(crate) enum RoomMessage {
    /// A participant of the receiver was kicked.
    Kick {
        id: String,
        /// Its session. Earlier versions kick whoever has the id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
        /// Whether a client of the sender has its id now.
        #[serde(default, skip_serializing_if = "is_false")]
        replaced: bool,
    },
    /// A stream of a participant of the receiver was muted or unmuted by a moderator.
    Moderate { id: String, mid: String, mute: bool },
    /// A message of a data channel of a participant of the sender.
    Data {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// In base64, if it is no text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<String>,
    },
    /// To the home: a client of the sender asks for something. Only the keepers of rooms understand
    /// the question.
    Ask { call: u64, question: String },
    /// The answer, or `None` if the sender cannot answer.
    Answer {
        call: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// A door of the sender asks the same door of the receiver, in base64.
    AskDoor { call: u64, question: String },
    /// The answer in base64, or `None` if the sender cannot answer.
    AnswerDoor {
        call: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// To a node that has the room: it is about to be used at the sender, so that it should have its
    /// home there.
    Open,
    /// The answer: the room is open.
    Opened,
    /// A message of a door of the sender to the same door of the receiver, in base64.
    Door {
        bytes: String,
        /// Its place among those of the sender. Those without one may be lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        numbered: Option<Numbered>,
    },
    /// The messages of doors of the receiver have come, up to this number of this run.
    Confirmed { run: u64, number: u64 },
    /// To the home: the room was destroyed. Of the home, or of a node without the room: a client has
    /// ended it for all nodes.
    Destroy {
        /// How long ago it was destroyed permanently, in s. `None` if it was not permanently.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permanently: Option<u64>,
    },
    /// The room was changed permanently, and has this definition.
    Keep { definition: String },
    /// A message of a later version.
    #[serde(other)]
    Later,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl RoomMessage {
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
    use super::*;

    #[test]
    fn messages_are_the_same_when_they_were_written_and_read() {
        for message in [
            RoomMessage::Kick {
                id: "7".to_owned(),
                session: Some(8),
                replaced: true,
            },
            RoomMessage::AskDoor {
                call: 7,
                question: "AA==".to_owned(),
            },
            RoomMessage::AnswerDoor {
                call: 7,
                answer: Some("AA==".to_owned()),
            },
            RoomMessage::Moderate {
                id: "7".to_owned(),
                mid: "0".to_owned(),
                mute: true,
            },
            RoomMessage::Data {
                id: "7".to_owned(),
                text: Some("hi".to_owned()),
                bytes: None,
            },
            RoomMessage::Ask {
                call: 7,
                question: "{}".to_owned(),
            },
            RoomMessage::Answer {
                call: 7,
                answer: None,
            },
            RoomMessage::Door {
                bytes: "AA==".to_owned(),
                numbered: Some(Numbered {
                    run: 7,
                    number: 2,
                    first: 1,
                }),
            },
            RoomMessage::Confirmed { run: 7, number: 2 },
            RoomMessage::Open,
            RoomMessage::Opened,
            RoomMessage::Destroy { permanently: None },
            RoomMessage::Destroy {
                permanently: Some(7),
            },
            RoomMessage::Keep {
                definition: "{}".to_owned(),
            },
        ] {
            let again = RoomMessage::parse(&message.to_bytes());
            assert_eq!(again, Some(message));
        }
        let earlier = RoomMessage::parse(br#"{"room":"destroy"}"#);
        assert_eq!(earlier, Some(RoomMessage::Destroy { permanently: None }));
        let later = RoomMessage::parse(br#"{"room":"dance","id":"7"}"#);
        assert_eq!(later, Some(RoomMessage::Later));
        assert_eq!(RoomMessage::parse(b"[]"), None);
    }
}
