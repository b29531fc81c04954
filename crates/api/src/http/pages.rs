//! The web pages, built from `web/` and held in the program.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Pages;

const NOT_BUILT: &str = "<!doctype html><title>Portunus</title><p>The server runs; its web pages are not in \
this build. Build them with <code>make web</code>, then build the server again.</p>";

/// Answers whatever no other route does.
pub(crate) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let path = uri.path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    match Pages::get(path).or_else(|| Pages::get(&format!("{path}.html"))) {
        Some(file) => page(path, file, &headers),
        None if path == "index.html" => {
            ([(CONTENT_TYPE, "text/html; charset=utf-8")], NOT_BUILT).into_response()
        }
        None => (StatusCode::NOT_FOUND, "There is no such page.\n").into_response(),
    }
}

fn page(path: &str, file: EmbeddedFile, headers: &HeaderMap) -> Response {
    let hash: String = file
        .metadata
        .sha256_hash()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect();
    let etag = format!("\"{hash}\"");
    let fixed = [
        (ETAG, etag.clone()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (CONTENT_TYPE, content_type(path, &file)),
    ];
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|tag| tag.trim() == etag)) {
        return (StatusCode::NOT_MODIFIED, fixed).into_response();
    }
    (fixed, Body::from(file.data.into_owned())).into_response()
}

fn content_type(path: &str, file: &EmbeddedFile) -> String {
    match file.metadata.mimetype() {
        "application/octet-stream" if !path.contains('.') => "text/html; charset=utf-8".to_owned(),
        mime if mime.starts_with("text/") => format!("{mime}; charset=utf-8"),
        mime => mime.to_owned(),
    }
}
