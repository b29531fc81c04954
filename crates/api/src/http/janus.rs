//! Requests of the Janus API and long polls.

use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use portunus_core::{Client, Credentials, Purse, Requester};
use serde_json::{Value, json};

use super::exchange::{self, Path, empty, json_response, reply_response, transaction, unsupported};
use super::{Shared, cors};
use crate::bodies::RequestBody;
use crate::pace::Api;
use crate::{listener, notifications, websocket};

/// Answers requests at the base path and below it. A WebSocket may be opened there.
pub(crate) async fn entry(
    State(shared): State<Arc<Shared>>,
    client: Option<Extension<listener::Client>>,
    Extension(requester): Extension<Requester>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    match (upgrade, client) {
        (Ok(upgrade), Some(client)) if cors::allowed(&shared.config, request.headers()) => {
            let state = State(shared.websocket.clone());
            websocket::upgrade(state, client, Extension(requester), upgrade).await
        }
        (_, connection) => {
            let client = shared.client.on_behalf_of(requester);
            let purse = listener::purse(connection.as_ref());
            if let Some(Extension(connection)) = connection {
                let events = shared.gateway.events();
                notifications::request(events, &client, Api::Janus, connection.address);
            }
            handle(shared, client, purse, request).await
        }
    }
}

/// Answers a request.
async fn handle(shared: Arc<Shared>, client: Client, purse: Purse, request: Request) -> Response {
    let headers = request.headers().clone();
    let mut response = if cors::allowed(&shared.config, &headers) {
        answer(&shared, &client, purse, request).await
    } else {
        empty(StatusCode::FORBIDDEN)
    };
    cors::add_headers(&shared.config, &headers, response.headers_mut());
    response
}

async fn answer(shared: &Shared, client: &Client, purse: Purse, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let body = RequestBody::new(body, purse);
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
            poll(shared, client.requester(), path, query).await
        }
        (Method::POST, path) => post(shared, client, path, body).await,
        (method, _) => unsupported(shared, &method),
    }
}

/// Answers a request in the body of a POST.
async fn post(shared: &Shared, client: &Client, path: Path<'_>, body: RequestBody) -> Response {
    shared.counters.http_requests.add(1);
    match exchange::message(shared, path, body).await {
        Ok((message, paid)) => {
            reply_response(&shared.gateway.request_paid(client, message, paid).await)
        }
        Err(response) => response,
    }
}

/// Answers a long poll, which waits for events of a session.
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

/// The options of a long poll.
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
                // `rid` is there to bypass caches.
                _ => {}
            }
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = Query::parse("maxev=5&rid=1&apisecret=a%20b%26c&token=t+1");
        assert_eq!(query.max_events, 5);
        assert_eq!(query.api_secret.as_deref(), Some("a b&c"));
        assert_eq!(query.token.as_deref(), Some("t 1"));
        assert_eq!(Query::parse("maxev=-3").max_events, 1);
    }
}
