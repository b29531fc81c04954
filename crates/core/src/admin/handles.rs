//! Handles: what they are like, and their end.

use tokio::sync::oneshot;

use crate::handle::{Command, Inbox};
use crate::session::Session;
use crate::{ApiError, Fields, HandleId, Object};

/// Why a PeerConnection ends that an administrator ends, as its client is told.
const REASON: &str = "Admin API";

pub(super) async fn info(inbox: &Inbox, fields: Fields<'_>) -> Result<Object, ApiError> {
    let _plugin_only = fields.boolean("plugin_only")?.unwrap_or(false);
    let (reply, state) = oneshot::channel();
    inbox.send(Command::Query { reply }).await;
    let state = state
        .await
        .map_err(|_| ApiError::Unknown("The handle is going away".to_owned()))?;
    Ok(Object::new().with("info", state))
}

/// The client gets `detached`.
pub(super) fn detach(session: &Session, id: HandleId, inbox: &Inbox) -> Object {
    session.remove_handle(id);
    inbox.deliver(Command::Detach { responder: None });
    Object::new()
}

/// The client gets `hangup`.
pub(super) fn hangup(inbox: &Inbox) -> Object {
    inbox.deliver(Command::Hangup {
        reason: REASON.to_owned(),
        responder: None,
    });
    Object::new()
}
