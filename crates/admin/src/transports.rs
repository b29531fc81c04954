//! Messages to transports, event handlers and loggers.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use portunus_core::events::TweakError;
use portunus_core::{ApiError, FieldError, Fields, Gateway, Object};
use serde_json::{Map, Value};

/// Answers operators' requests to a transport.
pub trait TransportControl: Send + Sync {
    /// Answers a request with an object.
    fn query(&self, request: &Map<String, Value>) -> Result<Value, TweakError>;
}

/// The transports that are running.
#[derive(Default)]
pub(crate) struct Transports(Mutex<Vec<(&'static str, Arc<dyn TransportControl>)>>);

impl Transports {
    /// Lets `control` answer the requests to the transport `package`.
    pub(crate) fn add(&self, package: &'static str, control: Arc<dyn TransportControl>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((package, control));
    }

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

pub(super) fn query_transport(
    gateway: &Gateway,
    transports: &Transports,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let package = fields.required_string("transport")?;
    let request = fields.object("request")?;
    // A transport may serve the Admin API alone, and `info` names only those of the Janus API.
    let (package, control) = match transports.find(package) {
        Some((package, control)) => (package, Some(control)),
        None => {
            let named = gateway.facts().transports.iter();
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

/// Answers the request that all transports have in common.
fn configure(
    gateway: &Gateway,
    package: &'static str,
    fields: Fields<'_>,
) -> Result<Value, TweakError> {
    let invalid = |error: FieldError| TweakError::Invalid(error.to_string());
    let events = fields.boolean("events").map_err(invalid)?;
    let json = fields.string("json").map_err(invalid)?;
    fields.string("logging").map_err(invalid)?;
    let mut notes = Vec::new();
    if let Some(events) = events {
        gateway.facts().events.mute(package, !events);
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
    let events = &gateway.facts().events;
    let answered = events
        .query(package, request.unwrap_or(&empty))
        .ok_or(ApiError::ModuleNotFound("event handler"))?;
    Ok(response(answered))
}

/// Refuses the request: the server has no loggers.
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
