//! Common parts of requests over HTTP to both APIs: ids in the path, JSON in the body, JSON in the
//! response.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use portunus_core::request::parse_json;
use portunus_core::{ApiError, DRAIN_RETRY_SECONDS, OverBudget, Share, prices};
use serde_json::Value;
use tokio::time::timeout;

use super::Shared;
use crate::bodies::{BodyError, RequestBody};
use crate::reply;

/// The error code of a server that accepts no new sessions.
const NOT_ACCEPTING: u64 = 472;

/// The session and handle in a request's path, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    pub(crate) session: Option<&'a str>,
    pub(crate) handle: Option<&'a str>,
}

impl<'a> Path<'a> {
    /// Parses the path after the base path. Returns `None` if it has more segments.
    pub(crate) fn parse(rest: &'a str) -> Option<Self> {
        let mut parts = rest.split('/').skip(1).filter(|part| !part.is_empty());
        let path = Self {
            session: parts.next(),
            handle: parts.next(),
        };
        parts.next().is_none().then_some(path)
    }
}

/// Reads the message in the body of a POST, and adds the ids of the path. The share pays for it.
/// The error is the response.
pub(crate) async fn message(
    shared: &Shared,
    path: Path<'_>,
    body: RequestBody,
) -> Result<(Value, Share), Response> {
    let max = shared.config.max_body;
    // The time limit does not apply to the plugin: its work would be done anyway, and the client
    // would not learn the result.
    let limit = shared.config.request_timeout;
    let Ok(body) = timeout(limit, body.read(max)).await else {
        shared.counters.refused.add(1);
        return Err(empty(StatusCode::REQUEST_TIMEOUT));
    };
    let paid = body.and_then(|(body, mut share)| {
        share.resize(prices::request(&body))?;
        Ok((body, share))
    });
    let (body, share) = paid.map_err(|error| {
        // The connection is unusable, since the rest of the body may follow.
        shared.counters.refused.add(1);
        match error {
            BodyError::Broken => {
                let mut response = json_response(&reply::too_large(max));
                *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
                response
            }
            BodyError::OverBudget(error) => over_budget(error),
        }
    })?;
    let message = merged(&body, path).map_err(|error| {
        shared.counters.refused.add(1);
        json_response(&error.reply(None, None))
    })?;
    Ok((message, share))
}

/// The response without memory for a request.
fn over_budget(error: OverBudget) -> Response {
    let mut response = json_response(&ApiError::from(error).reply(None, None));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let again = HeaderValue::from_static("2");
    response.headers_mut().insert(RETRY_AFTER, again);
    response
}

fn merged(body: &[u8], path: Path<'_>) -> Result<Value, ApiError> {
    if body.is_empty() {
        return Err(ApiError::InvalidJson("Request payload missing".into()));
    }
    let mut message =
        parse_json(body).map_err(|wrong| ApiError::InvalidJson(format!("JSON error: {wrong}")))?;
    let members = message
        .as_object_mut()
        .ok_or(ApiError::InvalidJsonObject("JSON error: not an object"))?;
    for (name, id, conflict) in [
        (
            "session_id",
            path.session,
            "Conflicting session ID (payload and path)",
        ),
        (
            "handle_id",
            path.handle,
            "Conflicting handle ID (payload and path)",
        ),
    ] {
        let Some(id) = id else { continue };
        let id: u64 = id.parse().unwrap_or(0);
        match members.get(name) {
            None | Some(Value::Null) => {
                members.insert(name.into(), id.into());
            }
            Some(Value::Number(number)) if number.as_u64() == Some(id) => {}
            Some(Value::String(text)) if text.parse() == Ok(id) => {}
            Some(_) => return Err(ApiError::PathConflict(conflict)),
        }
    }
    Ok(message)
}

/// A transaction for requests without one.
pub(crate) fn transaction() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("http{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn unsupported(shared: &Shared, method: &Method) -> Response {
    shared.counters.refused.add(1);
    let error = ApiError::Transport(format!("Unsupported method {method}"));
    let mut response = json_response(&error.reply(None, None));
    let allow = HeaderValue::from_static("GET, POST, OPTIONS");
    response.headers_mut().insert(ALLOW, allow);
    response
}

pub(crate) fn json_response(value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the response with a reply. If the server accepts no new clients, it says when to retry.
pub(crate) fn reply_response(reply: &Value) -> Response {
    let mut response = json_response(reply);
    if reply.pointer("/error/code").and_then(Value::as_u64) == Some(NOT_ACCEPTING) {
        let later = HeaderValue::from(DRAIN_RETRY_SECONDS);
        response.headers_mut().insert(RETRY_AFTER, later);
    }
    response
}

pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_names_a_session_and_a_handle() {
        let path = |session, handle| Some(Path { session, handle });
        assert_eq!(Path::parse(""), path(None, None));
        assert_eq!(Path::parse("/"), path(None, None));
        assert_eq!(Path::parse("/1"), path(Some("1"), None));
        assert_eq!(Path::parse("/1/2/"), path(Some("1"), Some("2")));
        assert_eq!(Path::parse("/1/2/3"), None);
    }

    #[test]
    fn ids_of_the_path_are_put_into_the_message() {
        let path = Path::parse("/12/34").unwrap();
        let message = merged(br#"{"janus":"detach"}"#, path).unwrap();
        assert_eq!(
            message,
            json!({ "janus": "detach", "session_id": 12, "handle_id": 34 })
        );
        let repeated = merged(br#"{"session_id":12,"handle_id":"34"}"#, path).unwrap();
        assert_eq!(repeated, json!({ "session_id": 12, "handle_id": "34" }));
    }

    #[test]
    fn ids_that_contradict_the_path_are_refused() {
        let path = Path::parse("/12/34").unwrap();
        for body in [
            r#"{"session_id":13}"#,
            r#"{"handle_id":1}"#,
            r#"{"handle_id":"x"}"#,
        ] {
            assert_eq!(merged(body.as_bytes(), path).unwrap_err().code(), 457);
        }
    }
}
