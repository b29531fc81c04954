//! The HTTP paths of WHIP (RFC 9725) for ingresses.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use portunus_core::Requester;

use crate::door::Door;
use crate::whip::WhipError;

/// The longest description, in bytes.
const MAX_DESCRIPTION: usize = 256 << 10;

/// Begins a session of the ingress whose stream key is the bearer token.
pub(super) async fn begin_as_bearer(
    State(door): State<Arc<Door>>,
    requester: Option<Extension<Requester>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let header = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
    match header.and_then(|header| header.strip_prefix("Bearer ")) {
        Some(key) => begin(&door, key.trim(), requester, &headers, body).await,
        None => (StatusCode::UNAUTHORIZED, "the stream key is missing").into_response(),
    }
}

/// Begins a session of the ingress whose stream key is in the path.
pub(super) async fn begin_at_path(
    State(door): State<Arc<Door>>,
    Path(key): Path<String>,
    requester: Option<Extension<Requester>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    begin(&door, &key, requester, &headers, body).await
}

async fn begin(
    door: &Door,
    key: &str,
    requester: Option<Extension<Requester>>,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let requester = super::requester(requester);
    if let Err(error) = door.count(requester) {
        return error.into_response();
    }
    if !is_type(headers, "application/sdp") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let offer = match text(body).await {
        Ok(offer) => offer,
        Err(status) => return status.into_response(),
    };
    match door.begin_whip(key, offer, requester).await {
        Ok(begun) => {
            let location = HeaderValue::try_from(format!("/w/sessions/{}", begun.id));
            let location = location.unwrap_or(HeaderValue::from_static("/w"));
            let sdp = HeaderValue::from_static("application/sdp");
            let headers = [(LOCATION, location), (CONTENT_TYPE, sdp)];
            (StatusCode::CREATED, headers, begun.answer).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// Takes candidates of a session.
pub(super) async fn trickle(
    State(door): State<Arc<Door>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_type(&headers, "application/trickle-ice-sdpfrag") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let fragment = match text(body).await {
        Ok(fragment) => fragment,
        Err(status) => return status.into_response(),
    };
    match door.ingresses.whip().trickle(&id, &fragment).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => WhipError::from(error).into_response(),
    }
}

/// Ends a session.
pub(super) async fn end(State(door): State<Arc<Door>>, Path(id): Path<String>) -> Response {
    match door.ingresses.whip().end(&id) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => WhipError::from(error).into_response(),
    }
}

fn is_type(headers: &HeaderMap, expected: &str) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let given = given.and_then(|it| it.split(';').next());
    given.is_some_and(|given| given.trim().eq_ignore_ascii_case(expected))
}

async fn text(body: Body) -> Result<String, StatusCode> {
    let bytes = to_bytes(body, MAX_DESCRIPTION).await;
    let bytes = bytes.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    String::from_utf8(bytes.into()).map_err(|_| StatusCode::BAD_REQUEST)
}

impl IntoResponse for WhipError {
    fn into_response(self) -> Response {
        let status = match self {
            WhipError::Entry(error) => return error.into_response(),
            WhipError::NoKey | WhipError::NoSession(_) => StatusCode::NOT_FOUND,
            WhipError::Disabled => StatusCode::FORBIDDEN,
            WhipError::Offer => StatusCode::NOT_ACCEPTABLE,
        };
        (status, self.to_string()).into_response()
    }
}
