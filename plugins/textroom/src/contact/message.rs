//! Messages between two nodes about text rooms, as JSON.

use std::collections::{BTreeMap, BTreeSet};

use portunus_core::{ClientAddress, Right, Rights};
use portunus_resources::{Asker, ClientElsewhere, Maker};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message between the home of a room and the node of a guest. Later versions may add messages
/// and members, which earlier ones skip. A guest is named by the number of its handle at its node,
/// a room by its id as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "text", rename_all = "snake_case")]
pub(crate) enum RoomMessage {
    /// To the home: a request of a guest's data channel.
    Said {
        guest: u64,
        request: String,
        asker: FarAsker,
    },
    /// To the home: a request by the API, which is answered by [`RoomMessage::Answered`].
    Asked {
        guest: u64,
        ask: u64,
        request: Map<String, Value>,
        asker: FarAsker,
    },
    /// To the home: a guest is gone.
    Gone { guest: u64 },
    /// To the home: the members that the sender has in these rooms. If `all`, the sender has none in
    /// other rooms of the home.
    Present { rooms: Vec<Presence>, all: bool },
    /// To a guest's node: the guest is a member of a room.
    Entered {
        room: String,
        guest: u64,
        name: Name,
    },
    /// To a guest's node: the guest is no member of a room any more.
    Left { room: String, guest: u64 },
    /// To a guest's node: messages for the guest.
    Whispered { guest: u64, texts: Vec<String> },
    /// To a node with members of a room: a message for all of them.
    Published {
        room: String,
        message: String,
        #[serde(flatten)]
        news: News,
    },
    /// To a node with members of a room: the history.
    History { room: String, texts: Vec<String> },
    /// To a node with members of a room: all members.
    Names { room: String, names: Vec<Name> },
    /// To a guest's node: the answer to [`RoomMessage::Asked`].
    Answered { ask: u64, answer: Value },
    /// To all nodes: rooms of the sender that are new or have changed, and those that are gone.
    Rooms {
        rooms: BTreeMap<String, Value>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<String>,
    },
    /// To a node whose connection is new: the ids of all rooms of the sender, which follow.
    AllRooms { rooms: BTreeSet<String> },
    /// To a node with a room of the same id: the room was destroyed.
    Destroyed {
        room: String,
        /// How long ago it was destroyed permanently, in s. `None` if it was not permanently.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permanently: Option<u64>,
    },
    /// To a node with a room of the same id: the room was changed permanently by this request.
    Edited {
        room: String,
        request: Map<String, Value>,
    },
    /// Messages of the sender are lost, so the receiver tells which members it has.
    Reset,
    /// A message of a later version.
    #[serde(other)]
    Later,
}

/// What a message to all members changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct News {
    /// Who has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) joined: Option<Name>,
    /// Who is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gone: Option<String>,
    /// What is added to the history. Empty means the message itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<String>,
}

/// A member as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name {
    pub(crate) username: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) display: Option<String>,
}

/// The members that a node has in a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Presence {
    pub(crate) room: String,
    /// The guests with their names.
    pub(crate) members: Vec<(u64, Name)>,
}

/// Who makes a request. Its node has checked the scope of its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarAsker {
    #[serde(default)]
    rights: Vec<String>,
    /// The address of the client. `None` means a socket of its node's machine, or a broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<std::net::IpAddr>,
}

impl FarAsker {
    pub(crate) fn of(asker: &Asker) -> Self {
        let rights = Right::ALL.into_iter().filter(|right| asker.may(*right));
        FarAsker {
            rights: rights.map(|right| right.as_str().to_owned()).collect(),
            address: match asker.maker {
                Maker::Client(ClientAddress::Ipv4(address)) => Some(address.into()),
                Maker::Client(ClientAddress::Ipv6([a, b, c, d])) => {
                    Some([a, b, c, d, 0, 0, 0, 0].into())
                }
                Maker::Client(ClientAddress::Unix | ClientAddress::Broker(_)) | Maker::Operator => {
                    None
                }
            },
        }
    }

    pub(crate) fn asker(&self) -> Asker {
        let known = self.rights.iter().filter_map(|name| Right::from_name(name));
        let rights = known.fold(Rights::NONE, |rights, right| {
            rights.and(Rights::if_so(true, right))
        });
        let address = self
            .address
            .map_or(ClientAddress::Unix, ClientAddress::from);
        // Text rooms know no signed tokens.
        let client = ClientElsewhere {
            is_signed: true,
            is_own: false,
        };
        Asker::elsewhere(rights, address, client)
    }
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

    fn name(username: &str) -> Name {
        Name {
            username: username.to_owned(),
            display: None,
        }
    }

    #[test]
    fn messages_are_the_same_when_they_were_written_and_read() {
        let room = || "1234".to_owned();
        let asker = FarAsker {
            rights: vec!["create".to_owned()],
            address: Some([192, 0, 2, 1].into()),
        };
        for message in [
            RoomMessage::Said {
                guest: 1 << 52,
                request: "{}".to_owned(),
                asker: asker.clone(),
            },
            RoomMessage::Asked {
                guest: 7,
                ask: 1,
                request: Map::new(),
                asker,
            },
            RoomMessage::Present {
                rooms: vec![Presence {
                    room: room(),
                    members: vec![(7, name("ada"))],
                }],
                all: true,
            },
            RoomMessage::Published {
                room: room(),
                message: "\u{0}".to_owned(),
                news: News {
                    joined: Some(name("ada")),
                    ..News::default()
                },
            },
            RoomMessage::History {
                room: room(),
                texts: vec!["{}".to_owned()],
            },
            RoomMessage::AllRooms {
                rooms: [room()].into(),
            },
            RoomMessage::Rooms {
                rooms: [(room(), Value::Null)].into(),
                gone: vec![room()],
            },
            RoomMessage::Reset,
        ] {
            let again = RoomMessage::parse(&message.to_bytes());
            assert_eq!(again, Some(message));
        }
        let later = RoomMessage::parse(br#"{"text":"sung","guest":7}"#);
        assert_eq!(later, Some(RoomMessage::Later));
        assert_eq!(RoomMessage::parse(b"[]"), None);
    }

    #[test]
    fn an_asker_has_its_rights_and_its_address_at_the_home_too() {
        let far = FarAsker {
            rights: vec!["record".to_owned(), "fly".to_owned()],
            address: Some([192, 0, 2, 1].into()),
        };
        let asker = far.asker();
        assert!(asker.may(Right::Record) && !asker.may(Right::Administer));
        assert_eq!(FarAsker::of(&asker).address, far.address);
        let operator = FarAsker::of(&Asker::administrator());
        assert_eq!(operator.asker().maker, Maker::Operator);
    }
}
