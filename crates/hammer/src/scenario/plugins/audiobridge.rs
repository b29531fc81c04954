//! Requests of the audio bridge plugin.

use serde_json::{Map, Value, json};

use crate::client::{ClientError, Connection, Handle, Session, description, plugin_data};

/// The plugin's name.
pub(in crate::scenario) const AUDIOBRIDGE: &str = "janus.plugin.audiobridge";

/// Rooms created for a run.
#[derive(Debug)]
pub(in crate::scenario) struct Rooms {
    session: Session,
    handle: Handle,
    admin_key: Option<String>,
    /// Their ids.
    pub(in crate::scenario) ids: Vec<Value>,
}

impl Rooms {
    /// Creates no rooms yet.
    pub(in crate::scenario) async fn new(
        connection: &Connection,
        admin_key: Option<String>,
    ) -> Result<Self, ClientError> {
        let session = connection.create().await?;
        let handle = session.attach(AUDIOBRIDGE).await?;
        Ok(Self {
            session,
            handle,
            admin_key,
            ids: Vec::new(),
        })
    }

    /// Creates a room with these members of `create`.
    pub(in crate::scenario) async fn create(
        &mut self,
        members: &Map<String, Value>,
    ) -> Result<(), ClientError> {
        let mut body = json!({ "request": "create", "description": "portunus-hammer" });
        if let Some(body) = body.as_object_mut() {
            body.extend(members.clone());
            let key = self.admin_key.iter();
            body.extend(key.map(|key| ("admin_key".to_owned(), key.as_str().into())));
        }
        let reply = self.handle.message(body, None).await?;
        let id = plugin_data(&reply).get("room").cloned();
        self.ids.push(id.ok_or_else(|| ClientError::Malformed {
            request: "create".to_owned(),
            missing: "room",
        })?);
        Ok(())
    }

    /// Destroys all rooms. The server may be gone, so errors are ignored.
    pub(in crate::scenario) async fn destroy(self) {
        for id in &self.ids {
            let body = json!({ "request": "destroy", "room": id });
            let _ = self.handle.message(body, None).await;
        }
        let _ = self.session.destroy().await;
    }
}

/// Joins with an offer. Returns the answer.
pub(in crate::scenario) async fn join(
    handle: &Handle,
    room: &Value,
    codec: &str,
    muted: bool,
    offer: String,
) -> Result<String, ClientError> {
    let body = json!({ "request": "join", "room": room, "codec": codec, "muted": muted });
    let offer = json!({ "type": "offer", "sdp": offer });
    let reply = handle.message(body, Some(offer)).await?;
    description(&reply, "join")
}
