//! The Data Channel Establishment Protocol (RFC 8832).

use std::time::Duration;

use super::{DataOptions, Reliability};

/// The longest label, in bytes.
pub const MAX_LABEL: usize = 1024;
/// The longest subprotocol name, in bytes.
pub const MAX_PROTOCOL: usize = 63;

const OPEN: u8 = 3;
const ACK: u8 = 2;

/// The bit of the channel type for unordered delivery.
const UNORDERED: u8 = 0x80;
const RELIABLE: u8 = 0;
const MAX_RETRANSMITS: u8 = 1;
const MAX_LIFETIME: u8 = 2;

/// A message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    Open {
        label: String,
        protocol: String,
        options: DataOptions,
    },
    Ack,
}

impl Message {
    /// Reads a message. Returns `None` if it is malformed or its names are too long.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            ACK => Some(Message::Ack),
            OPEN => {
                let (fixed, names) = rest.split_first_chunk::<11>()?;
                let [channel_type, _, _, r0, r1, r2, r3, l0, l1, p0, p1] = *fixed;
                let parameter = u32::from_be_bytes([r0, r1, r2, r3]);
                let label_len = usize::from(u16::from_be_bytes([l0, l1]));
                let protocol_len = usize::from(u16::from_be_bytes([p0, p1]));
                if label_len > MAX_LABEL || protocol_len > MAX_PROTOCOL {
                    return None;
                }
                let (label, names) = names.split_at_checked(label_len)?;
                let protocol = names.get(..protocol_len)?;
                let reliability = match channel_type & !UNORDERED {
                    RELIABLE => Reliability::Reliable,
                    MAX_RETRANSMITS => Reliability::MaxRetransmits(parameter),
                    MAX_LIFETIME => {
                        Reliability::MaxLifetime(Duration::from_millis(parameter.into()))
                    }
                    _ => return None,
                };
                Some(Message::Open {
                    label: String::from_utf8(label.to_vec()).ok()?,
                    protocol: String::from_utf8(protocol.to_vec()).ok()?,
                    options: DataOptions {
                        ordered: channel_type & UNORDERED == 0,
                        reliability,
                    },
                })
            }
            _ => None,
        }
    }

    /// Returns the message as bytes. The lengths of its names have been checked.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Message::Ack => vec![ACK],
            Message::Open {
                label,
                protocol,
                options,
            } => {
                let (kind, parameter) = match options.reliability {
                    Reliability::Reliable => (RELIABLE, 0),
                    Reliability::MaxRetransmits(times) => (MAX_RETRANSMITS, times),
                    Reliability::MaxLifetime(time) => (MAX_LIFETIME, milliseconds(time)),
                };
                let order = if options.ordered { 0 } else { UNORDERED };
                // Priority 256 is what browsers send for "low", their default.
                let mut bytes = vec![OPEN, kind | order, 1, 0];
                bytes.extend(parameter.to_be_bytes());
                bytes.extend((label.len() as u16).to_be_bytes());
                bytes.extend((protocol.len() as u16).to_be_bytes());
                bytes.extend(label.as_bytes());
                bytes.extend(protocol.as_bytes());
                bytes
            }
        }
    }
}

/// Returns a lifetime in ms, as on the wire.
pub(crate) fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_read_back() {
        for ordered in [true, false] {
            for reliability in [
                Reliability::Reliable,
                Reliability::MaxRetransmits(3),
                Reliability::MaxLifetime(Duration::from_millis(250)),
            ] {
                let open = Message::Open {
                    label: "chat".into(),
                    protocol: "json".into(),
                    options: DataOptions {
                        ordered,
                        reliability,
                    },
                };
                assert_eq!(Message::parse(&open.to_bytes()), Some(open));
            }
        }
        assert_eq!(Message::parse(&[2]), Some(Message::Ack));
    }

    #[test]
    fn names_that_are_too_long_are_refused() {
        let open = |label: usize, protocol: usize| Message::Open {
            label: "l".repeat(label),
            protocol: "p".repeat(protocol),
            options: DataOptions::default(),
        };
        assert!(Message::parse(&open(MAX_LABEL, 63).to_bytes()).is_some());
        assert!(Message::parse(&open(MAX_LABEL + 1, 63).to_bytes()).is_none());
        assert!(Message::parse(&open(MAX_LABEL, 64).to_bytes()).is_none());
        let mut cut = open(5, 5).to_bytes();
        cut.pop();
        assert!(Message::parse(&cut).is_none());
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::parse(&bytes);
        }
    }
}
