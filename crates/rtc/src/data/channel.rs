//! Data channels by label and by stream.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use sctp_proto::{PayloadProtocolIdentifier, StreamId};

/// How a data channel treats its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataOptions {
    /// Messages arrive in the order in which they were sent.
    pub ordered: bool,
    /// The reliability of the delivery.
    pub reliability: Reliability,
}

/// The reliability of the delivery (RFC 8832 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// Retransmit until the delivery succeeds.
    Reliable,
    /// At most this many retransmissions.
    MaxRetransmits(u32),
    /// Retransmit for this time, in whole milliseconds.
    MaxLifetime(Duration),
}

impl Default for DataOptions {
    fn default() -> Self {
        Self {
            ordered: true,
            reliability: Reliability::Reliable,
        }
    }
}

/// A borrowed message: text or bytes (RFC 8831 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DataPayload<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

impl DataPayload<'_> {
    /// Returns its length, in bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bytes(&self) -> &[u8] {
        match self {
            DataPayload::Text(text) => text.as_bytes(),
            DataPayload::Binary(bytes) => bytes,
        }
    }

    /// Returns the message as SCTP carries it. An empty one is one zero byte with its own
    /// identifier.
    pub(super) fn to_wire(self) -> (PayloadProtocolIdentifier, Bytes) {
        use PayloadProtocolIdentifier as Ppid;
        let ppid = match (self, self.is_empty()) {
            (DataPayload::Text(_), false) => Ppid::String,
            (DataPayload::Text(_), true) => Ppid::StringEmpty,
            (DataPayload::Binary(_), false) => Ppid::Binary,
            (DataPayload::Binary(_), true) => Ppid::BinaryEmpty,
        };
        let bytes = if self.is_empty() { &[0] } else { self.bytes() };
        (ppid, Bytes::copy_from_slice(bytes))
    }
}

/// A received message: text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DataMessage {
    Text(String),
    Binary(Vec<u8>),
}

impl DataMessage {
    /// Reads a message as SCTP carries it. Returns `None` for unknown identifiers, and for text
    /// that is not UTF-8.
    pub(super) fn from_wire(ppid: PayloadProtocolIdentifier, bytes: Vec<u8>) -> Option<Self> {
        match ppid {
            PayloadProtocolIdentifier::String => {
                Some(DataMessage::Text(String::from_utf8(bytes).ok()?))
            }
            PayloadProtocolIdentifier::StringEmpty => Some(DataMessage::Text(String::new())),
            PayloadProtocolIdentifier::Binary => Some(DataMessage::Binary(bytes)),
            PayloadProtocolIdentifier::BinaryEmpty => Some(DataMessage::Binary(Vec::new())),
            PayloadProtocolIdentifier::Dcep | PayloadProtocolIdentifier::Unknown => None,
        }
    }
}

/// The state of a channel.
#[derive(Debug, PartialEq)]
pub(super) enum State {
    /// It has no stream, since the association is not established yet.
    Waiting(VecDeque<(PayloadProtocolIdentifier, Bytes)>),
    /// It was offered. Until the peer accepts, all messages are sent in order (RFC 8832 section 6).
    Offered(StreamId),
    /// It is open in both directions.
    Open(StreamId),
}

/// A data channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) label: String,
    pub(super) protocol: String,
    pub(super) options: DataOptions,
    pub(super) state: State,
}

impl Channel {
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self.state {
            State::Waiting(_) => None,
            State::Offered(id) | State::Open(id) => Some(id),
        }
    }
}
