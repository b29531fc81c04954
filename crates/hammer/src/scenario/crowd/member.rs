//! What a participant consists of, so that it can be ended.

use serde_json::Value;

use super::hall::Place;
use crate::client::{Broadcast, ClientError, Connection, Handle, Session};
use crate::scenario::plugins::videoroom::Room;
use crate::viewer::{LoadThreads, PeerId};

/// How the server knows a participant, and what runs for it here.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Member {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) broadcast: Option<Broadcast>,
    /// What runs for the broadcast.
    pub(super) broadcast_peer: Option<PeerId>,
    /// The room that was made for it.
    pub(super) room: Option<Room>,
    /// Its place in an audio room.
    pub(super) place: Option<Place>,
}

/// One user's session with its PeerConnections.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) session: Session,
    /// They keep their places at the connection.
    pub(super) handles: Vec<Handle>,
    pub(super) peers: Vec<PeerId>,
}

/// A PeerConnection that is up, and the handle that it belongs to.
pub(super) struct Joined {
    pub(super) peer: PeerId,
    pub(super) handle: Handle,
}

impl Endpoint {
    /// A session without handles.
    pub(super) async fn new(connection: Option<&Connection>) -> Result<Self, ClientError> {
        let connection = connection.ok_or(ClientError::Closed)?;
        Ok(Self {
            session: connection.create().await?,
            handles: Vec::new(),
            peers: Vec::new(),
        })
    }

    /// Takes over a PeerConnection.
    pub(super) fn add(&mut self, joined: Joined) {
        self.peers.push(joined.peer);
        self.handles.push(joined.handle);
    }
}

impl Member {
    /// Who watches by WHEP.
    pub(super) fn whep(broadcast: Broadcast) -> Self {
        Self {
            broadcast: Some(broadcast),
            ..Self::default()
        }
    }

    /// The id of the room that was made for it.
    pub(in crate::scenario) fn room_id(&self) -> Value {
        let room = self.room.as_ref();
        room.map_or(Value::Null, |room| room.id.clone())
    }

    /// What runs for it.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        let of_endpoints = self.endpoints.iter().flat_map(|e| e.peers.iter().copied());
        of_endpoints.chain(self.broadcast_peer)
    }

    /// Says goodbye. The server may be gone, and then need not hear it.
    pub(super) async fn end(self, load: &LoadThreads) {
        for peer in self.peers() {
            load.remove(peer);
        }
        for endpoint in self.endpoints {
            let _ = endpoint.session.destroy().await;
        }
        if let Some(broadcast) = self.broadcast {
            let _ = broadcast.end().await;
        }
        if let Some(room) = self.room {
            room.destroy().await;
        }
    }
}
