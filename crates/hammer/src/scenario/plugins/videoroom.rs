//! Requests of the video room plugin.

use serde_json::{Map, Value, json};

use crate::client::{ClientError, Connection, Handle, Session, description, plugin_data};

/// The plugin's name.
pub(in crate::scenario) const VIDEOROOM: &str = "janus.plugin.videoroom";

/// A room created for a run.
#[derive(Debug)]
pub(in crate::scenario) struct Room {
    session: Session,
    handle: Handle,
    /// The room's id.
    pub(in crate::scenario) id: Value,
}

impl Room {
    /// Creates a room for this number of publishers, with these further members of `create`.
    pub(in crate::scenario) async fn create(
        connection: &Connection,
        publishers: u32,
        members: &Map<String, Value>,
    ) -> Result<Self, ClientError> {
        let session = connection.create().await?;
        let handle = session.attach(VIDEOROOM).await?;
        let mut body = json!({
            "request": "create", "description": "portunus-hammer", "publishers": publishers,
        });
        if let Some(body) = body.as_object_mut() {
            body.extend(members.clone());
        }
        let reply = handle.message(body, None).await?;
        let id = member(&reply, "create", "room")?;
        Ok(Self {
            session,
            handle,
            id,
        })
    }

    /// Destroys the room. The server may be gone, so errors are ignored.
    pub(in crate::scenario) async fn destroy(self) {
        let body = json!({ "request": "destroy", "room": self.id });
        let _ = self.handle.message(body, None).await;
        let _ = self.session.destroy().await;
    }
}

/// Joins as a publisher. Returns the id of the feed.
pub(in crate::scenario) async fn join(handle: &Handle, room: &Value) -> Result<Value, ClientError> {
    let body = json!({ "request": "join", "ptype": "publisher", "room": room });
    let reply = handle.message(body, None).await?;
    member(&reply, "join", "id")
}

/// Publishes. Returns the answer.
pub(in crate::scenario) async fn publish(
    handle: &Handle,
    offer: String,
) -> Result<String, ClientError> {
    let offer = json!({ "type": "offer", "sdp": offer });
    let reply = handle
        .message(json!({ "request": "publish" }), Some(offer))
        .await?;
    description(&reply, "publish")
}

/// Joins as a subscriber of all of `feeds` by one PeerConnection. Returns the server's offer.
pub(in crate::scenario) async fn subscribe<'a>(
    handle: &Handle,
    room: &Value,
    feeds: impl Iterator<Item = &'a Value>,
) -> Result<String, ClientError> {
    let streams: Vec<Value> = feeds.map(|feed| json!({ "feed": feed })).collect();
    let body =
        json!({ "request": "join", "ptype": "subscriber", "room": room, "streams": streams });
    let reply = handle.message(body, None).await?;
    description(&reply, "join")
}

/// Starts the subscription.
pub(in crate::scenario) async fn start(
    handle: &Handle,
    room: &Value,
    answer: String,
) -> Result<(), ClientError> {
    let answer = json!({ "type": "answer", "sdp": answer });
    let body = json!({ "request": "start", "room": room });
    handle.message(body, Some(answer)).await.map(drop)
}

fn member(reply: &Value, request: &str, name: &'static str) -> Result<Value, ClientError> {
    let member = plugin_data(reply).get(name).cloned();
    member.ok_or_else(|| missing(request, name))
}

fn missing(request: &str, missing: &'static str) -> ClientError {
    ClientError::Malformed {
        request: request.to_owned(),
        missing,
    }
}
