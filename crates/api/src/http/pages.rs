//! The web pages, built into the binary.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::any;
use rust_embed::{EmbeddedFile, RustEmbed};

/// The output of `make web`. Empty if that did not run.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Pages;

/// The folder of the dashboard, which has a port of its own.
const DASHBOARD: &str = "admin/";

/// The sources that a page may load from: its own origin, including WebSocket, and media that the
/// page itself has made. Scripts injected by names or texts of clients do not run (Content Security
/// Policy, <https://www.w3.org/TR/CSP3/>).
const POLICY: &str = "default-src 'self'; connect-src 'self'; media-src 'self' blob:; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors";

/// The pages of one port.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    kind: SiteKind,
    /// The path of their API.
    api_path: String,
    /// The Content Security Policy of each page.
    policy: HeaderValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SiteKind {
    Calls,
    Dashboard,
}

impl Site {
    /// The pages for calls, with the path of the Janus API. Pages of these origins may show them in
    /// a frame, beside the server's own.
    pub(crate) fn calls(api_path: &str, frame_ancestors: &[String]) -> Self {
        let ancestors = frame_ancestors.iter().map(String::as_str);
        let ancestors: Vec<_> = ["'self'"].into_iter().chain(ancestors).collect();
        Site::new(SiteKind::Calls, api_path, &ancestors.join(" "))
    }

    /// The dashboard, with the path of the Admin API. It may not be framed, which prevents
    /// clickjacking.
    pub(crate) fn dashboard(api_path: &str) -> Self {
        Site::new(SiteKind::Dashboard, api_path, "'none'")
    }

    fn new(kind: SiteKind, api_path: &str, frame_ancestors: &str) -> Self {
        let policy = HeaderValue::from_str(&format!("{POLICY} {frame_ancestors}"));
        Site {
            kind,
            api_path: api_path.to_owned(),
            // The configuration accepts only valid header values.
            policy: policy.unwrap_or(HeaderValue::from_static("default-src 'none'")),
        }
    }

    /// Returns the file with this name.
    fn get(&self, name: &str) -> Option<EmbeddedFile> {
        match self.kind {
            SiteKind::Calls if name.starts_with(DASHBOARD) => None,
            SiteKind::Calls => Pages::get(name),
            SiteKind::Dashboard => Pages::get(&format!("{DASHBOARD}{name}")),
        }
    }

    /// Returns the file for a path: the file itself, a folder's index, or a page without its
    /// `.html`.
    fn find(&self, path: &str) -> Option<(String, EmbeddedFile)> {
        let name = match path.is_empty() || path.ends_with('/') {
            true => format!("{path}index.html"),
            false => path.to_owned(),
        };
        let found = |name: String| self.get(&name).map(|file| (name, file));
        let page = format!("{name}.html");
        found(name).or_else(|| found(page))
    }

    /// The placeholder of the API's path in built pages (`web/parts`), and its value.
    fn api_placeholder(&self) -> Option<(String, String)> {
        let (name, built) = match self.kind {
            SiteKind::Calls => ("portunus-api", "/janus"),
            SiteKind::Dashboard => ("portunus-admin", "/admin"),
        };
        let meta = |path: &str| format!("<meta name=\"{name}\" content=\"{path}\"");
        let quoted = self.api_path.replace('&', "&amp;").replace('"', "&quot;");
        (self.api_path != built).then(|| (meta(built), meta(&quoted)))
    }
}

/// Answers requests outside of the APIs.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(site: Site) -> Router<S> {
    Router::new().fallback(any(serve).with_state(Arc::new(site)))
}

async fn serve(
    State(site): State<Arc<Site>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if method != Method::GET && method != Method::HEAD {
        let allow = [(ALLOW, "GET, HEAD")];
        return (StatusCode::METHOD_NOT_ALLOWED, allow).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    let mut response = answer(&site, path, &headers);
    let is_page = |it: &HeaderValue| it.as_bytes().starts_with(b"text/html");
    let headers = response.headers_mut();
    if headers.get(CONTENT_TYPE).is_some_and(is_page) {
        headers.insert(CONTENT_SECURITY_POLICY, site.policy.clone());
    }
    response
}

fn answer(site: &Site, path: &str, headers: &HeaderMap) -> Response {
    if let Some((name, file)) = site.find(path) {
        return respond(&name, file, headers, site);
    }
    // A folder's page without a slash at its end would resolve its links wrongly.
    if !path.is_empty() && !path.ends_with('/') && site.get(&format!("{path}/index.html")).is_some()
    {
        return (StatusCode::FOUND, [(LOCATION, format!("/{path}/"))]).into_response();
    }
    if path.is_empty() {
        return Html(NOT_BUILT).into_response();
    }
    (StatusCode::NOT_FOUND, Html(NOT_FOUND)).into_response()
}

fn respond(name: &str, file: EmbeddedFile, request: &HeaderMap, site: &Site) -> Response {
    let told = site.api_placeholder().filter(|_| name.ends_with(".html"));
    let hash = file.metadata.sha256_hash();
    let mut tag: String = hash
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if told.is_some() {
        tag.push_str(&site.api_path);
    }
    let tag = format!("\"{tag}\"");
    let known = request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().trim_start_matches("W/") == tag);
    let mut response = match told {
        _ if known => StatusCode::NOT_MODIFIED.into_response(),
        Some((built, told)) => {
            let page = String::from_utf8_lossy(&file.data);
            Response::new(Body::from(page.replacen(&built, &told, 1)))
        }
        None => Response::new(Body::from(file.data)),
    };
    let headers = response.headers_mut();
    // File names do not change with releases, so browsers must check for changes.
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

const NOT_FOUND: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>There is no such page</title>
<h1>There is no such page.</h1>
<p><a href=\"./\">The pages that there are</a></p>
</html>
";

const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Portunus</title>
<h1>Portunus runs</h1>
<p>This binary was built without its web pages. <code>make run</code> builds both;
<code>make web</code> builds the pages alone, for the next <code>cargo build</code>.</p>
<p>The Janus API is there: see <a href=\"/livez\">/livez</a> for a sign of life.</p>
</html>
";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    /// Returns the Content Security Policy of the first page.
    async fn policy(site: Site) -> Vec<String> {
        let site = State(Arc::new(site));
        let response = serve(site, Method::GET, Uri::from_static("/"), HeaderMap::new()).await;
        let policy = response.headers().get(CONTENT_SECURITY_POLICY).unwrap();
        let parts = policy.to_str().unwrap().split("; ").map(str::to_owned);
        parts.collect()
    }

    #[tokio::test]
    async fn pages_run_their_own_scripts_only_and_in_frames_of_known_pages() {
        let origins = ["https://app.example.org", "https://*.example.com:8443"].map(str::to_owned);
        for (site, ancestors) in [
            (Site::dashboard("/admin"), "frame-ancestors 'none'"),
            (Site::calls("/janus", &[]), "frame-ancestors 'self'"),
            (
                Site::calls("/janus", &origins),
                "frame-ancestors 'self' https://app.example.org https://*.example.com:8443",
            ),
        ] {
            let policy = policy(site).await;
            for part in [
                "default-src 'self'",
                "object-src 'none'",
                "base-uri 'none'",
                ancestors,
            ] {
                assert!(policy.iter().any(|it| it == part), "{policy:?}");
            }
        }
    }

    #[test]
    fn pages_are_told_where_the_api_is() {
        let head = include_str!("../../../../web/parts/head.html");
        assert_eq!(Site::calls("/janus", &[]).api_placeholder(), None);
        let (built, told) = Site::calls("/api/v1", &[]).api_placeholder().unwrap();
        assert!(head.contains(&built), "{head}");
        assert_eq!(told, "<meta name=\"portunus-api\" content=\"/api/v1\"");
        let (_, told) = Site::calls("/\"><b", &[]).api_placeholder().unwrap();
        assert!(told.contains("content=\"/&quot;><b\""));
        assert_eq!(Site::dashboard("/admin").api_placeholder(), None);
    }
}
