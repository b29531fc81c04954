//! Errors with remedies for people (RFC 9457).

use std::fmt;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

/// The reason why a request is refused.
#[derive(Debug)]
pub(super) struct Problem(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    detail: String,
    /// The plugin's error code.
    code: Option<u64>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem(Box::new(Parts {
            status,
            detail: detail.into(),
            code: None,
            headers: Vec::new(),
        }))
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    pub(super) fn with_code(mut self, code: u64) -> Self {
        self.0.code = Some(code);
        self
    }

    pub(super) fn into_response(self) -> Response {
        let Parts {
            status,
            detail,
            code,
            headers,
        } = *self.0;
        let mut body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": status.as_u16(),
            "detail": detail,
        });
        if let (Some(members), Some(code)) = (body.as_object_mut(), code) {
            members.insert("error_code".to_owned(), code.into());
        }
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().extend(headers);
        response
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.status.as_u16(), self.0.detail)
    }
}
