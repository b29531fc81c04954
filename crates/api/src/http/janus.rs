//! Requests of the Janus API and long polls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use portunus_core::request::parse_json;
use portunus_core::{ApiError, Client, Credentials, Requester};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Shared, cors};
use crate::{listen, reply, websocket};

/// Answers what comes to the base path or below it; a WebSocket may be opened there.
pub(crate) async fn entry(
    State(shared): State<Arc<Shared>>,
    client: Option<Extension<listen::Client>>,
    Extension(requester): Extension<Requester>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    match (upgrade, client) {
        (Ok(upgrade), Some(client)) if cors::allowed(&shared.config, request.headers()) => {
            let state = State(shared.websocket.clone());
            websocket::upgrade(state, client, Extension(requester), upgrade).await
        }
        _ => handle(shared, requester, request).await,
    }
}

/// Answers a request.
async fn handle(shared: Arc<Shared>, requester: Requester, request: Request) -> Response {
    let headers = request.headers().clone();
    let mut response = if cors::allowed(&shared.config, &headers) {
        answer(&shared, requester, request).await
    } else {
        empty(StatusCode::FORBIDDEN)
    };
    cors::add_headers(&shared.config, &headers, response.headers_mut());
    response
}

async fn answer(shared: &Shared, requester: Requester, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let base = &shared.config.base_path;
    let rest = request.uri.path().strip_prefix(base.as_str());
    let Some(path) = Path::parse(rest.unwrap_or_default()) else {
        return empty(StatusCode::NOT_FOUND);
    };
    match (request.method, path) {
        (Method::OPTIONS, _) => empty(StatusCode::OK),
        (
            Method::GET,
            Path {
                session: Some("info"),
                ..
            },
        ) => json_response(&shared.gateway.info(Some(&transaction()))),
        (
            Method::GET,
            Path {
                session: Some("ping"),
                ..
            },
        ) => json_response(&json!({ "janus": "pong", "transaction": transaction() })),
        (
            _,
            Path {
                session: Some("info" | "ping"),
                ..
            },
        ) => empty(StatusCode::BAD_REQUEST),
        (Method::GET, path) => {
            let query = request.uri.query().unwrap_or_default();
            poll(shared, requester, path, query).await
        }
        (Method::POST, path) => {
            let client = shared.client.on_behalf_of(requester);
            post(shared, &client, path, body).await
        }
        (method, _) => {
            shared.counters.refused.add(1);
            let error = ApiError::Transport(format!("Unsupported method {method}"));
            let mut response = json_response(&error.reply(None, None));
            let allow = HeaderValue::from_static("GET, POST, OPTIONS");
            response.headers_mut().insert(ALLOW, allow);
            response
        }
    }
}

/// The session and handle that a request's path names, as they are written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Path<'a> {
    session: Option<&'a str>,
    handle: Option<&'a str>,
}

impl<'a> Path<'a> {
    /// Parses what follows the base path; none if there is too much of it.
    fn parse(rest: &'a str) -> Option<Self> {
        let mut parts = rest.split('/').skip(1).filter(|part| !part.is_empty());
        let path = Self {
            session: parts.next(),
            handle: parts.next(),
        };
        parts.next().is_none().then_some(path)
    }
}

/// Answers a request in the body of a POST.
async fn post(shared: &Shared, client: &Client, path: Path<'_>, body: Body) -> Response {
    shared.counters.http_requests.add(1);
    let max = shared.config.max_body;
    // What a plugin takes its time for is not given up: it would be done all the same, and nobody told.
    let limit = shared.config.request_timeout;
    let Ok(body) = timeout(limit, to_bytes(body, max)).await else {
        shared.counters.refused.add(1);
        return empty(StatusCode::REQUEST_TIMEOUT);
    };
    let Ok(body) = body else {
        // The connection cannot be used any more: the rest of the body may still be on its way.
        shared.counters.refused.add(1);
        let mut response = json_response(&reply::too_large(max));
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return response;
    };
    match message(&body, path) {
        Ok(message) => {
            let gateway = &shared.gateway;
            json_response(&gateway.request_value(client, message).await)
        }
        Err(error) => {
            shared.counters.refused.add(1);
            json_response(&error.reply(None, None))
        }
    }
}

/// The message in a body, with the ids of the path put into it.
fn message(body: &[u8], path: Path<'_>) -> Result<Value, ApiError> {
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

/// Answers a long poll: waits for events of a session.
async fn poll(shared: &Shared, requester: Requester, path: Path<'_>, query: &str) -> Response {
    let Some(id) = path.session else {
        return empty(StatusCode::NOT_FOUND);
    };
    if path.handle.is_some() {
        // Events belong to sessions.
        let location = format!("{}/{id}", shared.config.base_path);
        let mut response = empty(StatusCode::FOUND);
        if let Ok(location) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(LOCATION, location);
        }
        return response;
    }
    let Some(session) = id.parse::<u64>().ok().filter(|id| *id > 0) else {
        return empty(StatusCode::NOT_FOUND);
    };
    shared.counters.http_polls.add(1);
    let query = Query::parse(query);
    let credentials = Credentials {
        api_secret: query.api_secret.as_deref(),
        token: query.token.as_deref(),
    };
    let wait = shared.config.long_poll;
    let events = shared
        .gateway
        .poll(session, requester, credentials, query.max_events, wait);
    match events.await {
        Ok(events) if query.max_events > 1 => json_response(&Value::Array(events)),
        Ok(events) => json_response(events.first().unwrap_or(&Value::Null)),
        Err(error) => {
            let mut response = json_response(&error);
            *response.status_mut() = match error.pointer("/error/code").and_then(Value::as_u64) {
                Some(403) => StatusCode::FORBIDDEN,
                Some(450) => StatusCode::TOO_MANY_REQUESTS,
                _ => StatusCode::NOT_FOUND,
            };
            response
        }
    }
}

/// What a long poll asks for.
#[derive(Debug)]
struct Query {
    max_events: usize,
    api_secret: Option<String>,
    token: Option<String>,
}

impl Query {
    fn parse(query: &str) -> Self {
        let mut parsed = Self {
            max_events: 1,
            api_secret: None,
            token: None,
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "maxev" => parsed.max_events = value.parse().unwrap_or(1).max(1),
                "apisecret" => parsed.api_secret = Some(value.into_owned()),
                "token" => parsed.token = Some(value.into_owned()),
                // `rid` is there to get around caches.
                _ => {}
            }
        }
        parsed
    }
}

/// A transaction for requests that come without one.
fn transaction() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("http{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn json_response(value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        let merged = message(br#"{"janus":"detach"}"#, path).unwrap();
        assert_eq!(
            merged,
            json!({ "janus": "detach", "session_id": 12, "handle_id": 34 })
        );
        let repeated = message(br#"{"session_id":12,"handle_id":"34"}"#, path).unwrap();
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
            assert_eq!(message(body.as_bytes(), path).unwrap_err().code(), 457);
        }
    }

    #[test]
    fn a_query_is_decoded() {
        let query = Query::parse("maxev=5&rid=1&apisecret=a%20b%26c&token=t+1");
        assert_eq!(query.max_events, 5);
        assert_eq!(query.api_secret.as_deref(), Some("a b&c"));
        assert_eq!(query.token.as_deref(), Some("t 1"));
        assert_eq!(Query::parse("maxev=-3").max_events, 1);
    }
}
