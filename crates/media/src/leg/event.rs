//! What a leg tells.

use std::net::SocketAddr;

use super::{LegId, LegSide};

/// What happened to a leg, and to which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegNews {
    /// The leg.
    pub leg: LegId,
    /// What happened.
    pub event: LegEvent,
}

/// What happened to a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegEvent {
    /// A valid packet came: the first one, or the first after [`LegEvent::Silent`].
    Heard,
    /// No valid packet came for the time that was asked for, while the gate for them was open.
    Silent,
    /// Somebody pressed a key (RFC 4733). It is told once, with the first packet that says that it was let go, or when another
    /// one, or half a second without packets, says so.
    Key {
        /// Who pressed it.
        by: LegSide,
        /// Which event: 0 to 15 are the keys `0123456789*#ABCD`; [`LegEvent::digit`] gives the character.
        event: u8,
        /// How long it was pressed, in units of RTP time.
        duration: u32,
        /// How many of these units are a second, in Hz.
        clock_rate: u32,
    },
    /// The far end asks for a keyframe. The source has been asked already.
    KeyframeWanted,
    /// RTP is exchanged with this address from now on, which the description did not say.
    Moved(SocketAddr),
    /// The far end has said that it sends no more (BYE of RTCP).
    Bye,
    /// Sockets of RTP had 100 errors, such as that nobody listens where we send to, and no packet came meanwhile. It is told once for
    /// each address of the far end.
    Failed,
}

impl LegEvent {
    /// The key that was pressed.
    pub fn digit(&self) -> Option<char> {
        match self {
            LegEvent::Key { event, .. } => portunus_rtp::telephone_event::digit(*event),
            _ => None,
        }
    }
}
