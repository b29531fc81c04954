//! Events of legs.

use std::net::SocketAddr;

use super::{LegId, LegSide};

/// An event of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegNews {
    /// The leg.
    pub leg: LegId,
    /// The event.
    pub event: LegEvent,
}

/// What happened to a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegEvent {
    /// A valid packet arrived: the first one, or the first after [`LegEvent::Silent`].
    Heard,
    /// No valid packet arrived for the requested time, while the gate for them was open.
    Silent,
    /// A key was pressed (RFC 4733). It is reported once: with the first packet that says that it
    /// was released, with the next key, or after half a second without packets.
    Key {
        /// The side that pressed it.
        by: LegSide,
        /// The event number. 0 to 15 are the keys `0123456789*#ABCD`, see [`LegEvent::digit`].
        event: u8,
        /// The duration, in units of the RTP clock.
        duration: u32,
        /// The RTP clock, in Hz.
        clock_rate: u32,
    },
    /// The far end asks for a keyframe. The request was passed on to the source.
    KeyframeWanted,
    /// RTP is exchanged with another address than the description says.
    Moved(SocketAddr),
    /// The far end sends no more (BYE of RTCP).
    Bye,
    /// The sockets of RTP had 100 errors without a packet between them, for example because the
    /// port of the far end is closed. It is reported once for each address.
    Failed,
}

impl LegEvent {
    /// The character of the key.
    pub fn digit(&self) -> Option<char> {
        match self {
            LegEvent::Key { event, .. } => portunus_rtp::telephone_event::digit(*event),
            _ => None,
        }
    }
}
