//! Requests of the audio bridge plugin.

use serde_json::{Map, Value, json};

use super::videoroom::description;
use crate::client::{ClientError, Connection, Handle, Session, plugin_data};

/// The plugin.
pub(super) const AUDIOBRIDGE: &str = "janus.plugin.audiobridge";

/// Rooms that were made for a run.
#[derive(Debug)]
pub(super) struct Rooms {
    session: Session,
    handle: Handle,
    admin_key: Option<String>,
    /// Their ids.
    pub(super) ids: Vec<Value>,
}

impl Rooms {
    /// None yet.
    pub(super) async fn new(
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

    /// Makes one with these members of `create`.
    pub(super) async fn create(&mut self, members: &Map<String, Value>) -> Result<(), ClientError> {
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

    /// Takes all of them away. The server may be gone, and then need not hear it.
    pub(super) async fn destroy(self) {
        for id in &self.ids {
            let body = json!({ "request": "destroy", "room": id });
            let _ = self.handle.message(body, None).await;
        }
        let _ = self.session.destroy().await;
    }
}

/// Joins with an offer; gives the answer.
pub(super) async fn join(
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
