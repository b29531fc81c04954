//! The parts of a participant, which end with it.

use futures_util::future::join_all;
use serde_json::Value;

use super::guest::Guest;
use super::hall::Place;
use crate::client::{Broadcast, ClientError, Connection, Handle, Session};
use crate::scenario::plugins::videoroom::Room;
use crate::viewer::{LoadThreads, PeerId};

/// A participant's session on the server, and its peers here.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Member {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) broadcast: Option<Broadcast>,
    /// The peer of the broadcast.
    pub(super) broadcast_peer: Option<PeerId>,
    /// Its participants of LiveKit's rooms.
    pub(super) guests: Vec<Guest>,
    /// The room created for it.
    pub(super) room: Option<Room>,
    /// Its place in an audio room.
    pub(super) place: Option<Place>,
}

/// One user's session with its PeerConnections.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) session: Session,
    /// The handles, which keep their places at the connection.
    pub(super) handles: Vec<Handle>,
    pub(super) peers: Vec<PeerId>,
}

/// A connected PeerConnection with its handle.
pub(super) struct Joined {
    pub(super) peer: PeerId,
    pub(super) handle: Handle,
}

impl Endpoint {
    /// Creates a session without handles.
    pub(super) async fn new(connection: Option<&Connection>) -> Result<Self, ClientError> {
        let connection = connection.ok_or(ClientError::Closed)?;
        Ok(Self {
            session: connection.create().await?,
            handles: Vec::new(),
            peers: Vec::new(),
        })
    }

    /// Adds a PeerConnection.
    pub(super) fn add(&mut self, joined: Joined) {
        self.peers.push(joined.peer);
        self.handles.push(joined.handle);
    }
}

impl Member {
    /// Creates a viewer by WHEP.
    pub(super) fn whep(broadcast: Broadcast) -> Self {
        Self {
            broadcast: Some(broadcast),
            ..Self::default()
        }
    }

    /// Returns the id of the room created for it.
    pub(in crate::scenario) fn room_id(&self) -> Value {
        let room = self.room.as_ref();
        room.map_or(Value::Null, |room| room.id.clone())
    }

    /// Returns its peers.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        let of_endpoints = self.endpoints.iter().flat_map(|e| e.peers.iter().copied());
        let of_guests = self.guests.iter().flat_map(|g| g.peers.iter().copied());
        of_endpoints.chain(of_guests).chain(self.broadcast_peer)
    }

    /// Closes the session. The server may be gone, so errors are ignored.
    pub(super) async fn end(self, load: &LoadThreads) {
        for peer in self.peers() {
            load.remove(peer);
        }
        for endpoint in self.endpoints {
            let _ = endpoint.session.destroy().await;
        }
        join_all(self.guests.into_iter().map(Guest::leave)).await;
        if let Some(broadcast) = self.broadcast {
            let _ = broadcast.end().await;
        }
        if let Some(room) = self.room {
            room.destroy().await;
        }
    }
}
