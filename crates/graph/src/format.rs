//! The format of a source: its kind, clock and encodings.

use portunus_rtp::Pt;

use crate::KeyframeCache;

/// The index of a source in its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SourceKey(pub usize);

/// The format of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFormat {
    /// It carries video, else audio or messages.
    pub is_video: bool,
    /// The RTP clock, in Hz.
    pub clock_rate: u32,
    /// The maximum number of simulcast encodings, 1 without simulcast.
    pub encodings: u8,
    /// Set if the source carries messages for data channels instead of RTP.
    pub messages: Option<Messages>,
    /// How much is kept for new sinks.
    pub keep: Option<KeyframeCache>,
    /// The source is sent only while somebody can see it, so its worker reports the demand.
    pub on_demand: bool,
}

/// The messages that a source carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages {
    /// The label of the data channels for routes that have no label of their own.
    pub label: &'static str,
    /// Their type.
    pub kind: MessageKind,
}

/// The type of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// All are text.
    Text,
    /// All are bytes.
    Bytes,
    /// The payload type of each says which it is: 0 is text.
    Marked,
}

impl Messages {
    /// The messages of peers.
    pub const OF_PEERS: Messages = Messages {
        label: "",
        kind: MessageKind::Marked,
    };
}

impl MessageKind {
    /// Whether a message with this payload type is text.
    #[inline]
    pub fn is_text(self, pt: Pt) -> bool {
        match self {
            MessageKind::Text => true,
            MessageKind::Bytes => false,
            MessageKind::Marked => pt == Pt(0),
        }
    }
}
