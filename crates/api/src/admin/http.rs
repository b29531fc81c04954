//! Requests of the Admin API over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use portunus_admin::Administration;
use portunus_core::{ApiError, Client, Purse, Requester};
use serde_json::json;

use crate::bodies::RequestBody;
use crate::http::exchange::{self, Path, empty, json_response, unsupported};
use crate::http::{Shared, cors};
use crate::pace::Api;
use crate::{listener, notifications, websocket};

/// Answers requests at the base path and below it. A WebSocket may be opened there.
pub(super) async fn entry(
    State(shared): State<Arc<Shared>>,
    Extension(administration): Extension<Administration>,
    connection: Option<Extension<listener::Client>>,
    Extension(requester): Extension<Requester>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let allowed = cors::allowed(&shared.config, &headers);
    if let (Ok(upgrade), Some(connection), true) = (upgrade, connection.clone(), allowed) {
        let state = State(shared.websocket.clone());
        return websocket::upgrade(state, connection, Extension(requester), upgrade).await;
    }
    let caller = shared.client.on_behalf_of(requester);
    let purse = listener::purse(connection.as_ref());
    if let Some(Extension(connection)) = connection {
        let events = shared.gateway.events();
        notifications::request(events, &caller, Api::Admin, connection.address);
    }
    let mut response = match allowed {
        true => answer(&shared, &administration, &caller, purse, request).await,
        false => empty(StatusCode::FORBIDDEN),
    };
    cors::add_headers(&shared.config, &headers, response.headers_mut());
    response
}

async fn answer(
    shared: &Shared,
    administration: &Administration,
    client: &Client,
    purse: Purse,
    request: Request,
) -> Response {
    let (request, body) = request.into_parts();
    let body = RequestBody::new(body, purse);
    let base = &shared.config.base_path;
    let rest = request.uri.path().strip_prefix(base.as_str());
    let Some(path) = Path::parse(rest.unwrap_or_default()) else {
        return empty(StatusCode::NOT_FOUND);
    };
    match (request.method, path.session) {
        (Method::OPTIONS, _) => empty(StatusCode::OK),
        (Method::GET, Some(verb @ ("info" | "ping"))) => {
            let message = json!({ "janus": verb, "transaction": exchange::transaction() });
            json_response(&administration.request_value(client, message).await)
        }
        (Method::GET, _) => {
            let error = ApiError::InvalidJson("Request payload missing".into());
            json_response(&error.reply(None, None))
        }
        (_, Some("info")) => {
            let error = ApiError::Transport("Use GET for the info endpoint".into());
            json_response(&error.reply(None, None))
        }
        (_, Some("ping")) => empty(StatusCode::BAD_REQUEST),
        (Method::POST, _) => {
            shared.counters.http_requests.add(1);
            match exchange::message(shared, path, body).await {
                Ok((message, _paid)) => {
                    json_response(&administration.request_value(client, message).await)
                }
                Err(response) => response,
            }
        }
        (method, _) => unsupported(shared, &method),
    }
}
