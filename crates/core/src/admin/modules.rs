//! Messages to plugins, transports, event handlers and loggers.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::events::TweakError;
use crate::plugin::Reply;
use crate::{ApiError, Fields, Gateway, Object};

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

/// What answers administrators' requests to a transport.
pub trait TransportControl: Send + Sync {
    /// Answers a request; the object is the answer.
    fn query(&self, request: &Map<String, Value>) -> Result<Value, TweakError>;
}

/// Those of the transports that run.
#[derive(Default)]
pub(crate) struct Transports(Mutex<Vec<(&'static str, Arc<dyn TransportControl>)>>);

impl Transports {
    fn find(&self, package: &str) -> Option<(&'static str, Arc<dyn TransportControl>)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| *known == package).cloned()
    }
}

impl fmt::Debug for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transports")
    }
}

impl Gateway {
    /// Lets `control` answer what administrators ask of the transport `package`.
    pub fn add_transport(&self, package: &'static str, control: Arc<dyn TransportControl>) {
        let transports = &self.context().transports;
        let mut known = transports.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((package, control));
    }
}

pub(super) fn query_transport(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let package = fields.required_string("transport")?;
    let request = fields.object("request")?;
    // One may be there for the Admin API alone: `info` names those of the Janus API.
    let (package, control) = match gateway.context().transports.find(package) {
        Some((package, control)) => (package, Some(control)),
        None => {
            let named = gateway.context().facts.transports.iter();
            let named = named.map(|named| named.package).find(|it| *it == package);
            (named.ok_or(ApiError::ModuleNotFound("transport"))?, None)
        }
    };
    let empty = Map::new();
    let request = request.unwrap_or(&empty);
    let answered = match name(request) {
        Ok("configure") => configure(gateway, package, Fields(request)),
        Ok(_) => match control {
            Some(control) => control.query(request),
            None => Err(TweakError::UnknownRequest),
        },
        Err(error) => Err(error),
    };
    Ok(response(answered))
}

/// What is the same for all transports.
fn configure(
    gateway: &Gateway,
    package: &'static str,
    fields: Fields<'_>,
) -> Result<Value, TweakError> {
    let invalid = |error: crate::FieldError| TweakError::Invalid(error.to_string());
    let events = fields.boolean("events").map_err(invalid)?;
    let json = fields.string("json").map_err(invalid)?;
    fields.string("logging").map_err(invalid)?;
    let mut notes = Vec::new();
    if let Some(events) = events {
        gateway.context().facts.events.mute(package, !events);
        notes.push(format!("events: {events}"));
    }
    match json {
        None | Some("compact") => {}
        Some("indented" | "plain") => notes.push("json: replies are always compact".to_owned()),
        Some(_) => {
            let text = "Invalid element type (json should be indented, plain or compact)";
            return Err(TweakError::Invalid(text.to_owned()));
        }
    }
    if fields.has("logging") {
        notes.push("logging: see set_log_level".to_owned());
    }
    let notes = (!notes.is_empty()).then_some(notes);
    Ok(Object::new().with_some("notes", notes).into())
}

pub(super) fn query_event_handler(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let package = fields.required_string("handler")?;
    let request = fields.object("request")?;
    let empty = Map::new();
    let events = &gateway.context().facts.events;
    let answered = events
        .query(package, request.unwrap_or(&empty))
        .ok_or(ApiError::ModuleNotFound("event handler"))?;
    Ok(response(answered))
}

/// There are no loggers.
pub(super) fn query_logger(fields: Fields<'_>) -> Result<Object, ApiError> {
    fields.required_string("logger")?;
    fields.object("request")?;
    Err(ApiError::ModuleNotFound("logger"))
}

fn name(request: &Map<String, Value>) -> Result<&str, TweakError> {
    match Fields(request).string("request") {
        Ok(Some(name)) => Ok(name),
        Ok(None) => Err(TweakError::Missing("request".to_owned())),
        Err(error) => Err(TweakError::Invalid(error.to_string())),
    }
}

fn response(answered: Result<Value, TweakError>) -> Object {
    let response = match answered {
        Ok(answer) => Object::new().with("result", 200).with_all(answer),
        Err(error) => Object::new()
            .with("error_code", error.code())
            .with("error", error.to_string()),
    };
    Object::new().with("response", response)
}
