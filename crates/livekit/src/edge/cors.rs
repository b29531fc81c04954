//! Cross-origin requests: pages of all origins may use the door, as its tokens protect it.

use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

/// Returns the router with headers for pages of all origins.
pub(super) fn with(router: Router) -> Router {
    router.layer(from_fn(answer))
}

async fn answer(request: Request, next: Next) -> Response {
    let asks = request
        .headers()
        .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let is_preflight = request.method() == Method::OPTIONS && asks;
    let mut response = match is_preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    let any = HeaderValue::from_static("*");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
    match is_preflight {
        true => {
            let methods = HeaderValue::from_static("OPTIONS, HEAD, GET, POST, PATCH, DELETE");
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            // With credentials in a header, a star does not stand for that header.
            let allowed = HeaderValue::from_static("*, Authorization, Content-Type");
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        }
        false => {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, any);
        }
    }
    response
}
