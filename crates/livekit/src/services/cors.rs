//! Cross-origin requests: applications have other origins than the server, and tokens guard it.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Answers preflight requests, and lets pages of any origin read the answers.
pub async fn allow_any_origin(request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match is_preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false => next.run(request).await,
    };
    add(response.headers_mut(), is_preflight);
    response
}

fn add(headers: &mut HeaderMap, is_preflight: bool) {
    let any = HeaderValue::from_static("*");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
    if !is_preflight {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, any);
        return;
    }
    // The asterisk stands for all headers but Authorization.
    for (name, value) in [
        (
            ACCESS_CONTROL_ALLOW_METHODS,
            "OPTIONS, HEAD, GET, POST, PATCH, DELETE",
        ),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
