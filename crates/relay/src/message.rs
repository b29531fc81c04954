//! What two nodes tell each other.

use serde::{Deserialize, Serialize};

use crate::SourceId;

/// A message to another node, about sources of that node or of this one. Messages of a connection
/// arrive in their order, or the connection is [resumed](crate::Relays::resume). Later versions may
/// add members, which earlier ones skip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    /// All that the sender wants of a source of the receiver, in place of what it wanted before.
    Want {
        /// The source.
        source: SourceId,
        /// Its encodings, one stream for each. Empty means nothing.
        streams: Vec<Wanted>,
        /// The highest SVC spatial layer, 0 to 2.
        spatial: u8,
        /// The highest temporal layer, 0 to 2.
        temporal: u8,
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
