//! The web pages, built into the binary.

use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

/// What `make web` has built; nothing if it has not.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Pages;

/// Answers whatever is no part of the API.
pub(crate) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        let allow = [(ALLOW, "GET, HEAD")];
        return (StatusCode::METHOD_NOT_ALLOWED, allow).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if let Some((name, file)) = find(path) {
        return respond(&name, file, &headers);
    }
    // A folder's page without the slash at its end would resolve its links wrongly.
    if !path.is_empty()
        && !path.ends_with('/')
        && Pages::get(&format!("{path}/index.html")).is_some()
    {
        return (StatusCode::FOUND, [(LOCATION, format!("/{path}/"))]).into_response();
    }
    if path.is_empty() {
        return Html(NOT_BUILT).into_response();
    }
    (StatusCode::NOT_FOUND, "There is no such page.\n").into_response()
}

/// The file for a path: itself, a folder's index, or a page without its `.html`.
fn find(path: &str) -> Option<(String, EmbeddedFile)> {
    let name = match path.is_empty() || path.ends_with('/') {
        true => format!("{path}index.html"),
        false => path.to_owned(),
    };
    let found = |name: String| Pages::get(&name).map(|file| (name, file));
    let page = format!("{name}.html");
    found(name).or_else(|| found(page))
}

fn respond(name: &str, file: EmbeddedFile, request: &HeaderMap) -> Response {
    let hash = file.metadata.sha256_hash();
    let tag: String = hash
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let tag = format!("\"{tag}\"");
    let known = request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().trim_start_matches("W/") == tag);
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Response::new(Body::from(file.data)),
    };
    let headers = response.headers_mut();
    // Names of files stay the same over releases, so that each use asks whether the file has changed.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    for (header, value) in [
        (ETAG, tag),
        (CONTENT_TYPE, content_type(name, file.metadata.mimetype())),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(header, value);
        }
    }
    response
}

fn content_type(name: &str, guessed: &str) -> String {
    let text = guessed.starts_with("text/") || name.ends_with(".js") || name.ends_with(".json");
    match text {
        true => format!("{guessed}; charset=utf-8"),
        false => guessed.to_owned(),
    }
}

const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Portunus</title>
<h1>Portunus runs</h1>
<p>This binary was built without its web pages. <code>make run</code> builds both;
<code>make web</code> builds the pages alone, for the next <code>cargo build</code>.</p>
<p>The Janus API is there: see <a href=\"/healthz\">/healthz</a> for a sign of life.</p>
</html>
";
