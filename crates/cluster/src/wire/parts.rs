//! Frames as protobuf messages.

use bytes::Bytes;
use prost::{Message, Oneof};

use super::{About, Frame, FrameError, Hearing, KnownHome, MAX_HEARD, MAX_ITEM, VersionRange, Via};
use crate::id::{Epoch, NodeId, Revision};
use crate::key::HomeKey;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Envelope {
    #[prost(oneof = "Body", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
    pub(super) body: Option<Body>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Body {
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
    #[prost(message, tag = "13")]
    Hears(HearsPart),
    #[prost(message, tag = "14")]
    Via(ViaPart),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HelloPart {
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
pub(super) struct AboutPart {
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
pub(super) struct RefusedPart {
    #[prost(message, optional, tag = "1")]
    about: Option<AboutPart>,
    #[prost(message, optional, tag = "2")]
    home: Option<HomePart>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ItemPart {
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
pub(super) struct MessagePart {
    #[prost(message, optional, tag = "1")]
    about: Option<AboutPart>,
    #[prost(bytes = "bytes", tag = "2")]
    payload: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DirectPart {
    #[prost(uint32, tag = "1")]
    channel: u32,
    #[prost(bytes = "bytes", tag = "2")]
    payload: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HearsPart {
    #[prost(bool, tag = "1")]
    is_all: bool,
    #[prost(message, repeated, tag = "2")]
    nodes: Vec<HearingPart>,
}

#[derive(Clone, PartialEq, Message)]
struct HearingPart {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(uint64, optional, tag = "2")]
    epoch: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ViaPart {
    #[prost(string, tag = "1")]
    from: String,
    #[prost(string, tag = "2")]
    to: String,
    #[prost(uint64, tag = "3")]
    path: u64,
    #[prost(uint64, tag = "4")]
    number: u64,
    #[prost(uint64, tag = "5")]
    received: u64,
    #[prost(bool, tag = "6")]
    is_closed: bool,
    #[prost(bytes = "bytes", tag = "7")]
    frame: Bytes,
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
    pub(super) fn of(frame: Frame) -> Self {
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
            Frame::Hears { is_all, nodes } => Body::Hears(HearsPart {
                is_all,
                nodes: nodes.into_iter().map(HearingPart::of).collect(),
            }),
            Frame::Via(via) => Body::Via(ViaPart {
                from: via.from.as_str().to_owned(),
                to: via.to.as_str().to_owned(),
                path: via.path,
                number: via.number,
                received: via.received,
                is_closed: via.is_closed,
                frame: via.frame,
            }),
        }
    }

    pub(super) fn read(self) -> Result<Frame, FrameError> {
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
            Body::Hears(part) => {
                if part.nodes.len() > MAX_HEARD {
                    return Err(FrameError::Part);
                }
                let nodes = part.nodes.into_iter().map(HearingPart::read);
                Frame::Hears {
                    is_all: part.is_all,
                    nodes: nodes.collect::<Result<_, _>>()?,
                }
            }
            Body::Via(part) => Frame::Via(Via {
                from: NodeId::new(&part.from)?,
                to: NodeId::new(&part.to)?,
                path: part.path,
                number: part.number,
                received: part.received,
                is_closed: part.is_closed,
                frame: part.frame,
            }),
        })
    }
}

impl HearingPart {
    fn of(hearing: Hearing) -> Self {
        HearingPart {
            node: hearing.node.as_str().to_owned(),
            epoch: hearing.epoch.map(|epoch| epoch.0),
        }
    }

    fn read(self) -> Result<Hearing, FrameError> {
        Ok(Hearing {
            node: NodeId::new(&self.node)?,
            epoch: self.epoch.map(Epoch),
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
