//! Messages to plugins.

use portunus_core::{ApiError, Fields, Gateway, Object, Reply};
use serde_json::{Value, json};

pub(super) async fn message_plugin(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let package = fields.required_string("plugin")?;
    let request = fields.object("request")?.cloned();
    let plugin = gateway
        .plugin(package)
        .ok_or(ApiError::ModuleNotFound("plugin"))?;
    let reply = plugin.admin(request.map_or(Value::Null, Value::Object));
    let response = match reply {
        None => {
            let text = "Plugin doesn't support Admin API messages";
            return Err(ApiError::Unknown(text.to_owned()));
        }
        Some(Reply::Success(response)) => response,
        Some(Reply::Later(later)) => later.result().await,
        Some(Reply::Error(text)) => return Err(ApiError::Unknown(text)),
        Some(Reply::Ack(_)) => json!({}),
    };
    Ok(Object::new().with("response", response))
}
