//! The HTTP paths and the WebSockets of the door.

mod agent;
mod cors;
mod socket;
mod upgrade;
mod whip;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use portunus_core::Requester;
use portunus_room::CreateError;
use tower::ServiceExt;

use crate::door::{Door, EntryError, Resumed};
use crate::hall::EntryRefusal;
use crate::refusals::BadInput;
use crate::services;
use crate::token;
use upgrade::Upgrade;

/// Returns the paths of the door.
pub(crate) fn router(door: Arc<Door>) -> Router {
    let router = Router::new()
        .route("/", get(async || "OK"))
        .route("/rtc", get(rtc))
        .route("/rtc/v1", get(rtc))
        .route("/rtc/validate", get(validate))
        .route("/agent", get(agent::agent))
        .route("/rtc/v1/validate", get(validate))
        .route("/w", post(whip::begin_as_bearer))
        .route("/w/{key}", post(whip::begin_at_path))
        .route("/w/sessions/{id}", patch(whip::trickle).delete(whip::end))
        .with_state(door.clone());
    let keys = door.keys.clone();
    let router = router.merge(services::router(door, move || keys.clone()));
    let router = cors::with(router);
    Router::new().fallback_service(router.map_request(with_one_slash))
}

/// SDKs that are given a URL with a slash at its end ask for paths with two at their start.
fn with_one_slash(mut request: Request) -> Request {
    let uri = request.uri();
    let rest = uri
        .path_and_query()
        .and_then(|it| it.as_str().strip_prefix('/'));
    let rest = rest.filter(|rest| rest.starts_with('/'));
    if let Some(Ok(uri)) = rest.map(str::parse::<Uri>) {
        *request.uri_mut() = uri;
    }
    request
}

/// Returns the token of a request, from its header or its query.
fn token(headers: &HeaderMap, query: &str) -> Result<Option<String>, EntryError> {
    let header = headers.get(AUTHORIZATION);
    let header = header.map(|header| header.to_str().unwrap_or("?"));
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let in_query = pairs.find(|(name, _)| name == "access_token");
    let in_query = in_query.as_ref().map(|(_, token)| token.as_ref());
    Ok(token::of_request(header, in_query)?.map(str::to_owned))
}

impl IntoResponse for EntryError {
    fn into_response(self) -> Response {
        let status = match &self {
            EntryError::Access(_) => StatusCode::UNAUTHORIZED,
            EntryError::NotPermitted(fault) => {
                StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::UNAUTHORIZED)
            }
            EntryError::Parameters(_)
            | EntryError::Name(_)
            | EntryError::Create(CreateError::Name(_)) => StatusCode::BAD_REQUEST,
            EntryError::NoRoom => StatusCode::NOT_FOUND,
            EntryError::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            EntryError::Refused(EntryRefusal::Gone) => StatusCode::NOT_FOUND,
            EntryError::Refused(EntryRefusal::Taken) => StatusCode::CONFLICT,
            EntryError::Full(_)
            | EntryError::NoHome(_)
            | EntryError::Create(CreateError::Refused(_))
            | EntryError::Refused(EntryRefusal::Full) => StatusCode::SERVICE_UNAVAILABLE,
            EntryError::Join(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        tracing::debug!(%status, error = %self, "a client is not let in");
        let text = match &self {
            EntryError::Access(fault) => fault.answer(),
            _ => self.to_string(),
        };
        (status, text).into_response()
    }
}

/// Returns who makes a request.
fn requester(extension: Option<Extension<Requester>>) -> Requester {
    let nowhere = || Requester::at(std::net::Ipv4Addr::UNSPECIFIED.into(), false);
    extension.map_or_else(nowhere, |Extension(requester)| requester)
}

/// Whether a request is for the signalling with one PeerConnection.
fn is_v1(uri: &Uri) -> bool {
    uri.path().starts_with("/rtc/v1")
}

/// Tells a client whether it would be let in.
async fn validate(State(door): State<Arc<Door>>, uri: Uri, headers: HeaderMap) -> Response {
    let query = uri.query().unwrap_or_default();
    let admitted = token(&headers, query)
        .and_then(|token| door.admit(token.as_deref(), query, is_v1(&uri)))
        .and_then(|admitted| door.check_room(&admitted))
        .and_then(|()| door.check_drain());
    match admitted {
        Ok(()) => "success".into_response(),
        Err(error) => error.into_response(),
    }
}

/// Lets a client in. Its request is upgraded once its first message is there.
async fn rtc(
    State(door): State<Arc<Door>>,
    requester: Option<Extension<Requester>>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Upgrade,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let requester = self::requester(requester);
    let admitted = door
        .count(requester)
        .and_then(|()| token(&headers, query))
        .and_then(|token| door.admit(token.as_deref(), query, is_v1(&uri)));
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(error) => {
            door.refusals.count(BadInput::Join);
            return error.into_response();
        }
    };
    if admitted.parameters.reconnect {
        return match door.resume(&admitted, requester).await {
            Resumed::Session(joined) => upgrade.accept(|it| socket::run(it, joined)),
            Resumed::Gone => upgrade.accept(socket::refuse),
        };
    }
    match door.join(admitted, requester).await {
        Ok(joined) => upgrade.accept(|it| socket::run(it, joined)),
        Err(error) => {
            door.refusals.count(BadInput::Join);
            error.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn two_slashes_at_the_start_count_as_one() {
        for (path, expected) in [
            ("//twirp/a?b=//c", "/twirp/a?b=//c"),
            ("/rtc//validate", "/rtc//validate"),
            ("/", "/"),
            ("//", "/"),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.parse().unwrap_or_default();
            assert_eq!(with_one_slash(request).uri().to_string(), expected);
        }
    }
}
