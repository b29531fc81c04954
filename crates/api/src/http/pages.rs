//! The web pages, built into the binary.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::Shared;

/// What `make web` has built; nothing if it has not.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Pages;

/// Where the pages look for the Janus API, as they are built.
const API_PATH: &str = "/janus";
/// What stands before it in a page (`web/parts/head.html`).
const API_PATH_PREFIX: &str = "<meta name=\"portunus-api\" content=\"";

/// Answers whatever is no part of the API.
pub(crate) async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if method != Method::GET && method != Method::HEAD {
        let allow = [(ALLOW, "GET, HEAD")];
        return (StatusCode::METHOD_NOT_ALLOWED, allow).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if let Some((name, file)) = find(path) {
        return respond(&name, file, &headers, &shared.config.base_path);
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

fn respond(name: &str, file: EmbeddedFile, request: &HeaderMap, api_path: &str) -> Response {
    let told = name.ends_with(".html") && api_path != API_PATH;
    let hash = file.metadata.sha256_hash();
    let mut tag: String = hash
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if told {
        tag.push_str(api_path);
    }
    let tag = format!("\"{tag}\"");
    let known = request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().trim_start_matches("W/") == tag);
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false if told => Response::new(Body::from(with_api_path(&file.data, api_path))),
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

/// A page that says where the Janus API is on this server.
fn with_api_path(page: &[u8], api_path: &str) -> String {
    let as_built = format!("{API_PATH_PREFIX}{API_PATH}\"");
    let quoted = api_path.replace('&', "&amp;").replace('"', "&quot;");
    let page = String::from_utf8_lossy(page);
    page.replacen(&as_built, &format!("{API_PATH_PREFIX}{quoted}\""), 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_where_the_api_is() {
        let head: &[u8] = include_bytes!("../../../../web/parts/head.html");
        let told = with_api_path(head, "/api/v1");
        let line = "<meta name=\"portunus-api\" content=\"/api/v1\">";
        assert!(told.contains(line), "{told}");
        assert!(!told.contains("/janus"), "{told}");
        assert!(with_api_path(head, "/\"><b").contains("content=\"/&quot;><b\""));
    }
}
