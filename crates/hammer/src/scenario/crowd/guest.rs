//! A participant of LiveKit's rooms, which leaves with its connection.

use crate::client::livekit::Signal;
use crate::viewer::PeerId;

/// A participant in a room.
#[derive(Debug)]
pub(super) struct Guest {
    /// Its connection.
    pub(super) signal: Signal,
    /// Its PeerConnections.
    pub(super) peers: Vec<PeerId>,
}

impl Guest {
    /// Leaves the room.
    pub(super) async fn leave(self) {
        self.signal.leave().await;
    }
}
