//! Error replies of a transport without the gateway.

use portunus_core::ApiError;
use serde_json::Value;

/// Error 454 for a request that is larger than allowed.
pub(crate) fn too_large(max: usize) -> Value {
    let reason = format!("Request too large (at most {max} bytes)");
    ApiError::InvalidJson(reason).reply(None, None)
}

/// Error 450 for a request that the transport refuses.
pub(crate) fn refused(request: &Value, reason: &str) -> Value {
    let transaction = request.get("transaction").and_then(Value::as_str);
    let session = request.get("session_id").cloned();
    ApiError::Transport(reason.to_owned()).reply(session, transaction)
}

/// Error 472 for a client without a place.
pub(crate) fn too_many_clients() -> Value {
    ApiError::NotAcceptingSessions.reply(None, None)
}
