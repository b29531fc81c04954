//! Events and output of the ICE agent.

use std::net::SocketAddr;

use is::IceConnectionState;

use super::attempt::IceAttempt;
use super::selected_pair::SelectedPair;
use crate::Path;

/// The state of the ICE agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IceState {
    /// The remote side's parameters are unknown.
    New,
    /// The agent checks pairs.
    Checking,
    /// A pair works.
    Connected,
    /// A pair works, and no other is left to try.
    Completed,
    /// No pair works at the moment.
    Disconnected,
}

impl From<IceConnectionState> for IceState {
    fn from(state: IceConnectionState) -> Self {
        match state {
            IceConnectionState::New => IceState::New,
            IceConnectionState::Checking => IceState::Checking,
            IceConnectionState::Connected => IceState::Connected,
            IceConnectionState::Completed => IceState::Completed,
            IceConnectionState::Disconnected => IceState::Disconnected,
        }
    }
}

/// An event of the ICE agent.
#[derive(Debug)]
pub(crate) enum IceEvent {
    State(IceState),
    Selected(SelectedPair),
    /// Authentic messages arrive by UDP from this address.
    Source(SocketAddr),
    Failed(IceAttempt),
}

/// A datagram to send.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) path: Path,
    pub(crate) bytes: Vec<u8>,
}

/// The result of receiving a STUN datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StunOutcome {
    Accepted,
    Malformed,
    Refused,
}
