//! What a participant sends.

use std::time::Instant;

/// What the payload of a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// A packet of the participant's codec.
    Codec,
    /// Redundant audio (RFC 2198) made of the participant's codec.
    Red,
}

/// A packet of a participant, as it came in.
#[derive(Debug, Clone, Copy)]
pub struct IncomingPacket<'a> {
    /// Its sequence number, extended beyond 16 bits.
    pub seq: u64,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Its payload.
    pub payload: &'a [u8],
    /// What the payload is.
    pub content: Content,
    /// How loud it is, if it tells (RFC 6464): 0 is the loudest, 127 silence.
    pub level: Option<u8>,
    /// When it came in.
    pub arrival: Instant,
}
