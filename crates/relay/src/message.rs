//! What two nodes tell each other.

use serde::{Deserialize, Serialize};

use crate::{NodeName, SourceDescription, SourceId};

/// A message to another node, about sources of that node or of this one, or of a third node whose
/// sources one of the two carries for the other. Messages of a connection arrive in their order, or
/// the connection is [resumed](crate::Relays::resume). Later versions may add members, which earlier
/// ones skip. Messages about carriers are for nodes with a [place](crate::FarNodeOptions::place)
/// only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    /// All that the sender wants of a source of the receiver, in place of what it wanted before. The
    /// receiver sends it, or names carriers.
    Want {
        /// The source.
        source: SourceId,
        /// Its encodings, one stream for each. Empty means nothing.
        streams: Vec<Wanted>,
        /// The highest SVC spatial layer, 0 to 2.
        spatial: u8,
        /// The highest temporal layer, 0 to 2.
        temporal: u8,
        /// The sender takes no carrier, as it carries the source for others.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        direct: bool,
        /// Carriers that have failed the sender.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<NodeName>,
    },
    /// A source of the sender is gone. Its id will not be used again.
    Ended {
        /// The source.
        source: SourceId,
    },
    /// Encodings that the sender does not send for now, because the link carries no more.
    Withheld {
        /// The source.
        source: SourceId,
        /// The encodings, 0 the lowest. Empty means that all wanted ones are sent again.
        encodings: Vec<u8>,
    },
    /// The sender tells again what it wants. What it does not name soon, it does not want.
    Again,
    /// The media link with the receiver does not work. The sender asks who carries a source of it.
    Seek {
        /// The source.
        source: SourceId,
        /// Carriers that have failed the sender.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<NodeName>,
    },
    /// Who carries a source of the sender. It is not sent over this link.
    Carriers {
        /// The source.
        source: SourceId,
        /// The nodes, the first one to be tried first. Empty means that there are none.
        nodes: Vec<NodeName>,
    },
    /// Asks the receiver to carry a source of a third node.
    Ask {
        /// The node of the source.
        of: NodeName,
        /// The source there.
        source: SourceId,
        /// Its format.
        description: SourceDescription,
    },
    /// The sender carries a source of a third node, and can be told what is wanted of it.
    Carrying {
        /// The node of the source.
        of: NodeName,
        /// The source there.
        source: SourceId,
        /// The worker of the sender that has it.
        worker: u16,
    },
    /// All that is wanted of a source that the receiver carries.
    Carry {
        /// The node of the source.
        of: NodeName,
        /// The source there.
        source: SourceId,
        /// Its encodings, one stream for each. Empty means nothing, and no more carrying.
        streams: Vec<Wanted>,
        /// The highest SVC spatial layer, 0 to 2.
        spatial: u8,
        /// The highest temporal layer, 0 to 2.
        temporal: u8,
    },
    /// The sender does not carry a source, or no longer.
    Refused {
        /// The node of the source.
        of: NodeName,
        /// The source there.
        source: SourceId,
    },
    /// A source that the sender carried has ended at its node.
    Gone {
        /// The node of the source.
        of: NodeName,
        /// The source there.
        source: SourceId,
    },
    /// As [`Message::Withheld`], of a source that the sender carries.
    CarriedWithheld {
        /// The node of the source.
        of: NodeName,
        /// The source there.
        source: SourceId,
        /// The encodings, 0 the lowest.
        encodings: Vec<u8>,
    },
    /// A message of a later version.
    #[serde(other)]
    Later,
}

/// An encoding that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The simulcast encoding, 0 the lowest.
    pub encoding: u8,
    /// The SSRC to send it with, which the sender of the message has chosen.
    pub ssrc: u32,
    /// The worker of the sender of the message that takes it.
    pub worker: u16,
}
