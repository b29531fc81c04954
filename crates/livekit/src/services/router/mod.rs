//! The HTTP edge of the services.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use portunus_core::{Purse, Requester, Share};

use crate::services::exchange::Format;
use crate::services::method::{self, Method};
use crate::services::room_service::Call;
use crate::services::{Code, ServiceError, Services};
use crate::token::{self, Keys, TokenFault, Verified};

/// The largest body of a request.
const MAX_BODY: usize = 10 << 20;

/// The header with the time in ms that a caller waits.
const TIMEOUT: &str = "x-twirp-timeout-ms";

/// What the handlers share.
struct Shared<S, K> {
    services: Arc<S>,
    keys: K,
}

/// Returns the routes of the services. `keys` returns the present API keys.
pub fn router<S, K>(services: Arc<S>, keys: K) -> Router
where
    S: Services,
    K: Fn() -> Keys + Send + Sync + 'static,
{
    let shared = Arc::new(Shared { services, keys });
    Router::new()
        .route("/twirp/{*method}", any(serve::<S, K>))
        .with_state(shared)
}

async fn serve<S, K>(State(shared): State<Arc<Shared<S, K>>>, request: Request) -> Response
where
    S: Services,
    K: Fn() -> Keys + Send + Sync + 'static,
{
    let verified = match verified(&(shared.keys)(), &request) {
        Ok(verified) => verified,
        Err(fault) => return (StatusCode::UNAUTHORIZED, fault.answer()).into_response(),
    };
    match answer(&*shared.services, verified.as_ref(), request).await {
        Ok((format, body)) => {
            let content_type = HeaderValue::from_static(format.content_type());
            ([(CONTENT_TYPE, content_type)], body).into_response()
        }
        Err(Refusal::TooLarge) => {
            let text = "request body too large";
            let error = ServiceError::new(Code::Malformed, text);
            failure(StatusCode::PAYLOAD_TOO_LARGE, &error)
        }
        Err(Refusal::Error(error)) => {
            let status = StatusCode::from_u16(error.code().status());
            failure(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &error)
        }
    }
}

/// Why a request has no answer.
enum Refusal {
    TooLarge,
    Error(ServiceError),
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        Refusal::Error(error)
    }
}

/// Returns the claims of the token of a request, or `None` if it has no token.
fn verified(keys: &Keys, request: &Request) -> Result<Option<Verified>, TokenFault> {
    let header = request.headers().get(AUTHORIZATION);
    let header = match header.map(HeaderValue::to_str) {
        None => None,
        Some(Ok(header)) => Some(header),
        Some(Err(_)) => return Err(TokenFault::NoBearer),
    };
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let in_query = pairs.find(|(name, _)| name == "access_token");
    let in_query = in_query.as_ref().map(|(_, token)| token.as_ref());
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.unwrap_or_default().as_secs();
    let token = token::of_request(header, in_query)?;
    token.map(|token| keys.verify(token, now)).transpose()
}

async fn answer<S: Services>(
    services: &S,
    verified: Option<&Verified>,
    request: Request,
) -> Result<(Format, Vec<u8>), Refusal> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let method = method::find(head.method.as_str(), path)?;
    let content_type = head.headers.get(CONTENT_TYPE);
    let content_type = content_type.map_or(Ok(""), HeaderValue::to_str);
    let format = Format::of(content_type.unwrap_or_default(), path)?;
    // Nobody without a token makes the server read 10 MiB.
    let grants = &verified.ok_or_else(ServiceError::denied)?.grants;
    if let Method::Missing(need) = method {
        let text = "method is not implemented";
        return Err(match need.is_met(grants) {
            true => ServiceError::unimplemented(text).into(),
            false => ServiceError::denied().into(),
        });
    }
    let requester = head.extensions.get::<Requester>().copied();
    let purse = requester.map(|requester| services.purse(requester));
    let (body, _paid) = read(&head.headers, body, &purse.unwrap_or_default()).await?;
    let call = Call {
        grants,
        format,
        body: &body,
    };
    let calling = call.any(method, services);
    let answer = match timeout(&head.headers) {
        None => calling.await,
        Some(timeout) => tokio::time::timeout(timeout, calling)
            .await
            .unwrap_or_else(|_| {
                let text = "request timed out";
                Err(ServiceError::new(Code::DeadlineExceeded, text))
            }),
    };
    Ok((format, answer?))
}

/// Reads a body, for which its client pays until the call is over.
async fn read(headers: &HeaderMap, body: Body, purse: &Purse) -> Result<(Bytes, Share), Refusal> {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_BODY) {
        return Err(Refusal::TooLarge);
    }
    let mut body = Limited::new(body, MAX_BODY);
    let (mut paid, mut read) = (purse.empty_share(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => Refusal::TooLarge,
            false => {
                let text = "failed to read request body";
                ServiceError::new(Code::Malformed, text).into()
            }
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        // A message takes about twice its size once it is read.
        paid.grow(data.len().saturating_mul(3)).map_err(|_| {
            let text = "there is no memory for the request now";
            ServiceError::new(Code::ResourceExhausted, text)
        })?;
        read.extend_from_slice(&data);
    }
    Ok((read.freeze(), paid))
}

fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(TIMEOUT)?.to_str().ok()?;
    text.parse().ok().map(Duration::from_millis)
}

fn failure(status: StatusCode, error: &ServiceError) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, json)], error.to_json().to_string()).into_response()
}

#[cfg(test)]
mod tests;
