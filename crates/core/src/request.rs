//! Parses the envelope of a request of the Janus API.

use serde_json::{Map, Value};

use crate::{ApiError, FieldError, Fields, HandleId, SessionId, id};

/// A request with a valid envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The transaction, which the reply carries, too.
    pub transaction: String,
    /// The verb in lower case.
    pub verb: String,
    /// The addressee.
    pub address: Address,
    /// All members.
    pub members: Map<String, Value>,
}

/// The addressee of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// The server.
    Server,
    /// A session.
    Session(SessionId),
    /// A handle of a session.
    Handle(SessionId, HandleId),
}

/// A request with an invalid envelope, with what the reply needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The reason.
    pub error: ApiError,
    /// The session that it names.
    pub session: Option<SessionId>,
    /// The transaction that it names.
    pub transaction: Option<String>,
}

/// Parses the text of a request as JSON. As in Janus only an object or an array is valid. The error
/// describes the fault.
pub fn parse_json(text: &[u8]) -> Result<Value, String> {
    let value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match value {
        Value::Object(_) | Value::Array(_) => Ok(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err("an object is expected".to_owned())
        }
    }
}

impl Request {
    /// Parses `message`. With `string_ids`, ids may be strings of digits.
    pub fn parse(message: &[u8], string_ids: bool) -> Result<Request, Refusal> {
        let message = parse_json(message).map_err(|wrong| Refusal {
            error: ApiError::InvalidJson(format!("Invalid Janus API request - {wrong}")),
            session: None,
            transaction: None,
        })?;
        Self::from_value(message, string_ids)
    }

    /// As [`Request::parse`], for a message that is JSON already.
    pub fn from_value(message: Value, string_ids: bool) -> Result<Request, Refusal> {
        let mut members = match message {
            Value::Object(members) => members,
            // As in Janus, an array gets the error of an empty object.
            _ => Map::new(),
        };
        if members.get("handle_id").is_some_and(Value::is_null) {
            members.remove("handle_id");
        }
        let session = id::read(members.get("session_id"), string_ids);
        let handle = id::read(members.get("handle_id"), string_ids);
        let names_handle = members.contains_key("handle_id");
        let known_session = (session > 0).then_some(SessionId(session));

        let refusal = |error, transaction| Refusal {
            error,
            session: known_session,
            transaction,
        };
        let (transaction, verb) =
            envelope(Fields(&members), string_ids).map_err(|error| refusal(error.into(), None))?;

        let address = match (known_session, handle) {
            (None, 0) => Ok(Address::Server),
            (None, _) => Err(ApiError::NoSession),
            (Some(_), 0) if names_handle => Err(ApiError::NoHandle),
            (Some(session), 0) => Ok(Address::Session(session)),
            (Some(session), handle) => Ok(Address::Handle(session, HandleId(handle))),
        };
        match address {
            Ok(address) => Ok(Request {
                transaction,
                verb,
                address,
                members,
            }),
            Err(error) => Err(refusal(error, Some(transaction))),
        }
    }

    /// Returns the member `name` if it is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// Returns the session that the request is for.
    pub fn session(&self) -> Option<SessionId> {
        match self.address {
            Address::Server => None,
            Address::Session(session) | Address::Handle(session, _) => Some(session),
        }
    }
}

/// Returns the transaction, and the verb in lower case.
fn envelope(fields: Fields<'_>, string_ids: bool) -> Result<(String, String), FieldError> {
    let transaction = fields.required_string("transaction")?.to_owned();
    let verb = fields.required_string("janus")?.to_ascii_lowercase();
    let id_is_digits = || matches!(fields.string("id"), Ok(Some(id)) if id.parse::<u64>().is_ok());
    if !(string_ids && id_is_digits()) {
        fields.positive("id")?;
    }
    Ok((transaction, verb))
}
