//! The frames of the control link: protobuf messages, each after its length in 4 bytes.
//!
//! Protobuf, since a reader skips fields and frames that it does not know, so that neighbouring
//! versions work together.

use bytes::Bytes;
use prost::{Message, Oneof};
use serde::{Deserialize, Serialize};

use crate::id::{Epoch, IdError, NodeId, Revision};
use crate::key::{HomeKey, KeyError};

/// The largest frame in bytes, without its length.
pub const MAX_FRAME: usize = 65_536;

/// The longest name of an item in bytes.
pub(crate) const MAX_ITEM: usize = 512;

/// The largest content of a message or an item in bytes, which leaves room for the rest.
pub(crate) const MAX_PAYLOAD: usize = MAX_FRAME - 2_048;

/// A range of versions of the control protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The lowest one.
    pub min: u32,
    /// The highest one.
    pub max: u32,
}

impl VersionRange {
    /// The versions that this program speaks. Each release speaks that of the one before, too.
    pub const OURS: VersionRange = VersionRange { min: 1, max: 1 };

    /// Returns the highest version that both speak.
    pub fn common(self, other: VersionRange) -> Option<u32> {
        let version = self.max.min(other.max);
        (version >= self.min.max(other.min)).then_some(version)
    }
}

impl std::fmt::Display for VersionRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.min == self.max {
            true => write!(f, "{}", self.min),
            false => write!(f, "{} to {}", self.min, self.max),
        }
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The first frame of each side.
    Hello {
        /// The sender.
        node: NodeId,
        /// Its run.
        epoch: Epoch,
        /// The name of its cluster.
        cluster: String,
        /// The versions that it speaks.
        versions: VersionRange,
    },
    /// A sign of life, each 500 ms.
    Ping {
        /// The sender's clock, in µs since any moment.
        clock: u64,
    },
    /// The answer to a ping.
    Pong {
        /// The clock in the ping.
        clock: u64,
    },
    /// To a home: the sender has this open.
    Register(About),
    /// From a home: the registration holds. All items of the others follow.
    Registered(About),
    /// From a node that is not the home at that revision.
    Refused {
        /// About what, with the revision that was asked for.
        about: About,
        /// The home that it knows, if that is a later one.
        home: Option<KnownHome>,
    },
    /// To a home: the sender has it no longer open.
    Unregister(About),
    /// An item: to the home from its owner, from the home to all others.
    Item {
        /// Of what.
        about: About,
        /// Whose.
        owner: NodeId,
        /// Its name, up to 512 bytes.
        name: String,
        /// Its value, or `None` if it is gone.
        value: Option<Bytes>,
    },
    /// All items of the sender have been sent. What was not among them is gone.
    Synced(About),
    /// From a home: it has ended.
    Ended(About),
    /// A message between a home and a registered node.
    Message {
        /// About what.
        about: About,
        /// The content.
        payload: Bytes,
    },
    /// A message about no room.
    Direct {
        /// The purpose, as the server numbers it.
        channel: u32,
        /// The content.
        payload: Bytes,
    },
}

/// What a frame is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// What.
    pub key: HomeKey,
    /// The revision of its home: the fencing token.
    pub revision: Revision,
}

/// A home that somebody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHome {
    /// Since when.
    pub revision: Revision,
    /// The home.
    pub node: NodeId,
    /// Its run.
    pub epoch: Epoch,
}

/// A frame cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It is larger than 64 KiB.
    #[error("a frame of {0} bytes, and 65,536 are allowed")]
    Long(usize),
    /// It is no protobuf message.
    #[error("a malformed frame: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The name of a node in it is none.
    #[error(transparent)]
    Node(#[from] IdError),
    /// The key in it is none.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A part is missing or too long.
    #[error("a frame lacks a part, or one is too long")]
    Part,
}

impl Frame {
    /// Reads a frame, without its length. Returns `None` for a frame of a later version.
    pub fn decode(bytes: Bytes) -> Result<Option<Self>, FrameError> {
        if bytes.len() > MAX_FRAME {
            return Err(FrameError::Long(bytes.len()));
        }
        let Some(body) = Envelope::decode(bytes)?.body else {
            return Ok(None);
        };
        body.read().map(Some)
    }

    /// Returns the bytes, without the length.
    pub fn encode(self) -> Bytes {
        let body = Some(Body::of(self));
        Envelope { body }.encode_to_vec().into()
    }
}

#[derive(Clone, PartialEq, Message)]
struct Envelope {
    #[prost(oneof = "Body", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    body: Option<Body>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Body {
    #[prost(message, tag = "1")]
    Hello(HelloPart),
    #[prost(uint64, tag = "2")]
    Ping(u64),
    #[prost(uint64, tag = "3")]
    Pong(u64),
    #[prost(message, tag = "4")]
    Register(AboutPart),
    #[prost(message, tag = "5")]
    Registered(AboutPart),
    #[prost(message, tag = "6")]
    Refused(RefusedPart),
    #[prost(message, tag = "7")]
    Unregister(AboutPart),
    #[prost(message, tag = "8")]
    Item(ItemPart),
    #[prost(message, tag = "9")]
    Synced(AboutPart),
    #[prost(message, tag = "10")]
    Ended(AboutPart),
    #[prost(message, tag = "11")]
    Message(MessagePart),
    #[prost(message, tag = "12")]
    Direct(DirectPart),
}

#[derive(Clone, PartialEq, Message)]
struct HelloPart {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(uint64, tag = "2")]
    epoch: u64,
    #[prost(string, tag = "3")]
    cluster: String,
    #[prost(uint32, tag = "4")]
    min: u32,
    #[prost(uint32, tag = "5")]
    max: u32,
}

#[derive(Clone, PartialEq, Message)]
struct AboutPart {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(uint64, tag = "2")]
    generation: u64,
    #[prost(uint64, tag = "3")]
    sequence: u64,
}

#[derive(Clone, PartialEq, Message)]
struct HomePart {
    #[prost(uint64, tag = "1")]
    generation: u64,
    #[prost(uint64, tag = "2")]
    sequence: u64,
    #[prost(string, tag = "3")]
    node: String,
    #[prost(uint64, tag = "4")]
    epoch: u64,
}

#[derive(Clone, PartialEq, Message)]
struct RefusedPart {
    #[prost(message, optional, tag = "1")]
    about: Option<AboutPart>,
    #[prost(message, optional, tag = "2")]
    home: Option<HomePart>,
}

#[derive(Clone, PartialEq, Message)]
struct ItemPart {
    #[prost(message, optional, tag = "1")]
    about: Option<AboutPart>,
    #[prost(string, tag = "2")]
    owner: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(bytes = "bytes", optional, tag = "4")]
    value: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct MessagePart {
    #[prost(message, optional, tag = "1")]
    about: Option<AboutPart>,
    #[prost(bytes = "bytes", tag = "2")]
    payload: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct DirectPart {
    #[prost(uint32, tag = "1")]
    channel: u32,
    #[prost(bytes = "bytes", tag = "2")]
    payload: Bytes,
}

impl AboutPart {
    fn of(about: About) -> Self {
        AboutPart {
            key: about.key.as_str().to_owned(),
            generation: about.revision.generation,
            sequence: about.revision.sequence,
        }
    }

    fn read(self) -> Result<About, FrameError> {
        Ok(About {
            key: HomeKey::parse(&self.key)?,
            revision: Revision {
                generation: self.generation,
                sequence: self.sequence,
            },
        })
    }
}

fn about(part: Option<AboutPart>) -> Result<About, FrameError> {
    part.ok_or(FrameError::Part)?.read()
}

impl Body {
    fn of(frame: Frame) -> Self {
        match frame {
            Frame::Hello {
                node,
                epoch,
                cluster,
                versions,
            } => Body::Hello(HelloPart {
                node: node.as_str().to_owned(),
                epoch: epoch.0,
                cluster,
                min: versions.min,
                max: versions.max,
            }),
            Frame::Ping { clock } => Body::Ping(clock),
            Frame::Pong { clock } => Body::Pong(clock),
            Frame::Register(about) => Body::Register(AboutPart::of(about)),
            Frame::Registered(about) => Body::Registered(AboutPart::of(about)),
            Frame::Refused { about, home } => Body::Refused(RefusedPart {
                about: Some(AboutPart::of(about)),
                home: home.map(|home| HomePart {
                    generation: home.revision.generation,
                    sequence: home.revision.sequence,
                    node: home.node.as_str().to_owned(),
                    epoch: home.epoch.0,
                }),
            }),
            Frame::Unregister(about) => Body::Unregister(AboutPart::of(about)),
            Frame::Item {
                about,
                owner,
                name,
                value,
            } => Body::Item(ItemPart {
                about: Some(AboutPart::of(about)),
                owner: owner.as_str().to_owned(),
                name,
                value,
            }),
            Frame::Synced(about) => Body::Synced(AboutPart::of(about)),
            Frame::Ended(about) => Body::Ended(AboutPart::of(about)),
            Frame::Message { about, payload } => Body::Message(MessagePart {
                about: Some(AboutPart::of(about)),
                payload,
            }),
            Frame::Direct { channel, payload } => Body::Direct(DirectPart { channel, payload }),
        }
    }

    fn read(self) -> Result<Frame, FrameError> {
        Ok(match self {
            Body::Hello(part) => Frame::Hello {
                node: NodeId::new(&part.node)?,
                epoch: Epoch(part.epoch),
                cluster: part.cluster,
                versions: VersionRange {
                    min: part.min,
                    max: part.max,
                },
            },
            Body::Ping(clock) => Frame::Ping { clock },
            Body::Pong(clock) => Frame::Pong { clock },
            Body::Register(part) => Frame::Register(part.read()?),
            Body::Registered(part) => Frame::Registered(part.read()?),
            Body::Refused(part) => Frame::Refused {
                about: about(part.about)?,
                home: part.home.map(HomePart::read).transpose()?,
            },
            Body::Unregister(part) => Frame::Unregister(part.read()?),
            Body::Item(part) => {
                if part.name.len() > MAX_ITEM {
                    return Err(FrameError::Part);
                }
                Frame::Item {
                    about: about(part.about)?,
                    owner: NodeId::new(&part.owner)?,
                    name: part.name,
                    value: part.value,
                }
            }
            Body::Synced(part) => Frame::Synced(part.read()?),
            Body::Ended(part) => Frame::Ended(part.read()?),
            Body::Message(part) => Frame::Message {
                about: about(part.about)?,
                payload: part.payload,
            },
            Body::Direct(part) => Frame::Direct {
                channel: part.channel,
                payload: part.payload,
            },
        })
    }
}

impl HomePart {
    fn read(self) -> Result<KnownHome, FrameError> {
        Ok(KnownHome {
            revision: Revision {
                generation: self.generation,
                sequence: self.sequence,
            },
            node: NodeId::new(&self.node)?,
            epoch: Epoch(self.epoch),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn room() -> About {
        About {
            key: HomeKey::new("room.videoroom", "1234").unwrap(),
            revision: Revision {
                generation: 1_700_000_000_000,
                sequence: 42,
            },
        }
    }

    fn all() -> Vec<Frame> {
        let node = NodeId::new("a-1").unwrap();
        vec![
            Frame::Hello {
                node: node.clone(),
                epoch: Epoch(9),
                cluster: "c".to_owned(),
                versions: VersionRange { min: 1, max: 3 },
            },
            Frame::Ping { clock: 5 },
            Frame::Pong { clock: 5 },
            Frame::Register(room()),
            Frame::Registered(room()),
            Frame::Refused {
                about: room(),
                home: None,
            },
            Frame::Refused {
                about: room(),
                home: Some(KnownHome {
                    revision: room().revision,
                    node: node.clone(),
                    epoch: Epoch(1),
                }),
            },
            Frame::Unregister(room()),
            Frame::Item {
                about: room(),
                owner: node.clone(),
                name: "member 7".to_owned(),
                value: Some(Bytes::from_static(b"x")),
            },
            Frame::Item {
                about: room(),
                owner: node,
                name: String::new(),
                value: None,
            },
            Frame::Synced(room()),
            Frame::Ended(room()),
            Frame::Message {
                about: room(),
                payload: Bytes::from_static(b"hello"),
            },
            Frame::Direct {
                channel: 1,
                payload: Bytes::new(),
            },
        ]
    }

    #[test]
    fn each_frame_is_the_same_when_it_is_read_again() {
        for frame in all() {
            let again = Frame::decode(frame.clone().encode()).unwrap();
            assert_eq!(again, Some(frame));
        }
    }

    #[test]
    fn frames_of_a_later_version_are_skipped_and_malformed_ones_refused() {
        // Field 99 of an unknown type.
        let later = Bytes::from_static(&[0x9a, 0x06, 0x01, 0x00]);
        assert_eq!(Frame::decode(later), Ok(None));
        for cut in all().into_iter().map(Frame::encode) {
            let cut = cut.slice(..cut.len() - 1);
            // A frame without its last byte is malformed, or another one.
            let _ = Frame::decode(cut);
        }
        assert!(Frame::decode(Bytes::from_static(&[0x0a, 0xff])).is_err());
        let long = Bytes::from(vec![0; MAX_FRAME + 1]);
        assert_eq!(Frame::decode(long), Err(FrameError::Long(MAX_FRAME + 1)));
    }

    #[test]
    fn the_highest_common_version_is_spoken() {
        let range = |min, max| VersionRange { min, max };
        assert_eq!(range(1, 3).common(range(2, 5)), Some(3));
        assert_eq!(range(2, 2).common(range(1, 2)), Some(2));
        assert_eq!(range(1, 1).common(range(2, 3)), None);
        // An impossible range of a stranger.
        assert_eq!(range(1, 1).common(range(9, 0)), None);
    }
}
