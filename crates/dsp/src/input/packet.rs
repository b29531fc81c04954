//! The packets of a participant.

use std::time::Instant;

/// The content of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// A packet of the participant's codec.
    Codec,
    /// Redundant audio (RFC 2198) of the participant's codec.
    Red,
}

/// A received packet of a participant.
#[derive(Debug, Clone, Copy)]
pub struct IncomingPacket<'a> {
    /// Its sequence number, extended beyond 16 bits.
    pub seq: u64,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Its payload.
    pub payload: &'a [u8],
    /// The content of the payload.
    pub content: Content,
    /// Its level (RFC 6464), if it carries one: 0 (loudest) to 127 (silent).
    pub level: Option<u8>,
    /// Its arrival.
    pub arrival: Instant,
}
