//! Sessions: their list, their timeouts, and their end.

use std::sync::Arc;

use portunus_core::{ApiError, Fields, Gateway, Object, Session, SessionTimeout};
use serde_json::Value;

pub(super) fn list(gateway: &Gateway) -> Object {
    let string_ids = gateway.config().string_ids;
    let mut ids: Vec<_> = gateway.sessions().iter().map(|it| it.id()).collect();
    ids.sort_unstable();
    let ids = ids.into_iter().map(|id| id.to_json(string_ids));
    Object::new().with("sessions", ids.collect::<Value>())
}

/// Ends a session. Its client is not notified.
pub(super) fn destroy(gateway: &Gateway, session: &Arc<Session>) -> Object {
    gateway.end_session(session);
    Object::new()
}

pub(super) fn set_timeout(session: &Session, fields: Fields<'_>) -> Result<Object, ApiError> {
    let seconds = fields.required::<i64>("timeout")?;
    let timeout = match seconds {
        -1 => SessionTimeout::AsAll,
        0.. => SessionTimeout::Own(u32::try_from(seconds).unwrap_or(u32::MAX)),
        _ => {
            let text = "Invalid element type (timeout should be a positive integer or -1)";
            return Err(ApiError::InvalidElement(text.to_owned()));
        }
    };
    session.set_timeout(timeout);
    Ok(Object::new().with("timeout", seconds))
}

pub(super) fn list_handles(gateway: &Gateway, session: &Session) -> Object {
    let string_ids = gateway.config().string_ids;
    let ids = session.handle_ids().into_iter();
    let ids = ids.map(|id| id.to_json(string_ids));
    Object::new().with("handles", ids.collect::<Value>())
}
