//! What a session's task gets.

use livekit_protocol::{DisconnectReason, ParticipantInfo, Room, SignalRequest, SyncState};
use portunus_core::Share;
use tokio::sync::oneshot;

use super::member::Role;
use super::out::Wire;

/// A request of the client.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) request: SignalRequest,
    /// The number of the connection that it came by. `None` if it is the server's own.
    pub(crate) generation: Option<u64>,
    /// Pays for the request until it is served.
    pub(crate) _paid: Share,
}

impl Input {
    /// Returns a request of an administrator in the client's name.
    pub(crate) fn of_server(request: SignalRequest) -> Self {
        Input {
            request,
            generation: None,
            _paid: Share::default(),
        }
    }
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A PeerConnection is up.
    Up(Role),
    /// A PeerConnection has ended, for this reason.
    HungUp(Role, String),
    /// A connection of the client has ended.
    Closed {
        /// The number of the connection.
        generation: u64,
    },
    /// The client resumes its session by another connection.
    Resume {
        /// Its state, if it came with the request.
        sync_state: Option<Box<SyncState>>,
        /// Gets the connection.
        wire: oneshot::Sender<Wire>,
    },
    /// The client has to join another room.
    Move(Box<Move>),
    /// The participant has to go, or is gone from the room already.
    End(DisconnectReason),
}

/// The room that a participant is moved to.
#[derive(Debug)]
pub(crate) struct Move {
    /// The room.
    pub(crate) room: Room,
    /// The participants there that others see.
    pub(crate) participants: Vec<ParticipantInfo>,
}
