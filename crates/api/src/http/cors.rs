//! Cross-origin requests (https://fetch.spec.whatwg.org/#http-cors-protocol), since applications
//! have other origins than the server.
//! origins than the server.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, REFERER, VARY,
};
use axum::http::{HeaderMap, HeaderValue};

use crate::HttpConfig;

/// Whether the request's origin may use the API. Always true unless the configuration enforces it.
pub(crate) fn allowed(config: &HttpConfig, request: &HeaderMap) -> bool {
    if !config.enforce_origin || config.allow_origin == "*" {
        return true;
    }
    let allowed = config.allow_origin.as_str();
    let text = |name| request.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text(ORIGIN) {
        return origin == allowed;
    }
    // Browsers send no Origin with a GET of the same origin.
    let rest = text(REFERER).and_then(|referer| referer.strip_prefix(allowed));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Adds the headers that let the application read the response.
pub(crate) fn add_headers(config: &HttpConfig, request: &HeaderMap, response: &mut HeaderMap) {
    let Ok(origin) = HeaderValue::from_str(&config.allow_origin) else {
        return;
    };
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if config.allow_origin != "*" {
        response.insert(
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
        response.insert(VARY, HeaderValue::from_static("Origin"));
    }
    response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    for (asked, allow) in [
        (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
    ] {
        if let Some(value) = request.get(asked) {
            response.insert(allow, value.clone());
        }
    }
}
