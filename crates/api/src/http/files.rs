//! Public files of plugins.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::SystemTime;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, IF_MODIFIED_SINCE,
    IF_RANGE, LAST_MODIFIED, RANGE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use portunus_core::{Gateway, PublicFile};

use super::disk::Disk;

/// Serves the files of plugins, and `rest` for other paths.
pub(crate) fn before<S: Clone + Send + Sync + 'static>(
    rest: Router<S>,
    gateway: Gateway,
) -> Router<S> {
    rest.layer(from_fn_with_state((gateway, Disk::default()), serve))
}

async fn serve(
    State((gateway, disk)): State<(Gateway, Disk)>,
    request: Request,
    next: Next,
) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let file = match reads {
        true => gateway.public_file(request.uri().path()),
        false => None,
    };
    let Some(file) = file else {
        return next.run(request).await;
    };
    match disk.ask(move || Opened::open(file)).await {
        Ok(Some(opened)) => opened.answer(&request, disk),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            let wait = [(RETRY_AFTER, "10")];
            (StatusCode::SERVICE_UNAVAILABLE, wait, format!("{error}\n")).into_response()
        }
    }
}

/// An open file.
#[derive(Debug)]
struct Opened {
    file: File,
    kind: String,
    /// Its length when it was opened. It may grow.
    len: u64,
    modified: Option<SystemTime>,
}

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    All,
    Part(RangeInclusive<u64>),
    /// A part that the file does not have.
    Beyond,
}

impl Opened {
    /// Opens the file. Blocks. Returns `None` if there is no such file.
    fn open(file: PublicFile) -> Option<Self> {
        let path = file.locate()?;
        // Opening a pipe would block.
        let is_file = path.metadata().is_ok_and(|it| it.is_file());
        let file = is_file.then(|| File::open(&path).ok()).flatten()?;
        let metadata = file.metadata().ok()?;
        Some(Opened {
            file,
            kind: kind(&path),
            len: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    fn answer(self, request: &Request, disk: Disk) -> Response {
        let asked = request.headers();
        let mut response = Response::default();
        let headers = response.headers_mut();
        // The file may grow.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        put(headers, CONTENT_TYPE, &self.kind);
        let modified = self.modified.map(httpdate::fmt_http_date);
        if let Some(modified) = &modified {
            put(headers, LAST_MODIFIED, modified);
        }
        if is_known(asked, self.modified) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        let (first, len) = match wanted(asked, self.len, modified.as_deref()) {
            Wanted::All => (0, self.len),
            Wanted::Part(part) => {
                let (first, last) = part.into_inner();
                put(
                    headers,
                    CONTENT_RANGE,
                    &format!("bytes {first}-{last}/{}", self.len),
                );
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                (first, last.saturating_sub(first).saturating_add(1))
            }
            Wanted::Beyond => {
                put(headers, CONTENT_RANGE, &format!("bytes */{}", self.len));
                *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
                return response;
            }
        };
        put(response.headers_mut(), CONTENT_LENGTH, &len.to_string());
        if *request.method() == Method::GET {
            *response.body_mut() = Body::from_stream(disk.read(self.file, first, len));
        }
        response
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Returns the media type for a file name.
fn kind(path: &Path) -> String {
    match path.extension().and_then(|it| it.to_str()) {
        Some("opus") => "audio/ogg".to_owned(),
        _ => mime_guess::from_path(path)
            .first_or_octet_stream()
            .to_string(),
    }
}

/// Whether the client has the last modification of the file, in whole seconds (RFC 9110 section
/// 13.1.3).
fn is_known(asked: &HeaderMap, modified: Option<SystemTime>) -> bool {
    let seconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    };
    let since = asked.get(IF_MODIFIED_SINCE).and_then(|it| it.to_str().ok());
    let since = since.and_then(|text| httpdate::parse_http_date(text).ok());
    // Clients request ranges of files that they know.
    let pair = since.zip(modified).filter(|_| !asked.contains_key(RANGE));
    pair.is_some_and(|(since, modified)| seconds(modified) <= seconds(since))
}

/// Returns the requested part of a file of `len` bytes (RFC 9110 section 14.2). Several parts yield
/// the whole file.
fn wanted(asked: &HeaderMap, len: u64, modified: Option<&str>) -> Wanted {
    let is_other = |it: &HeaderValue| it.to_str().ok() != modified;
    let range = asked.get(RANGE).and_then(|it| it.to_str().ok());
    let Some(range) = range.filter(|_| !asked.get(IF_RANGE).is_some_and(is_other)) else {
        return Wanted::All;
    };
    let Ok(parsed) = http_range_header::parse_range_header(range) else {
        return Wanted::All;
    };
    match parsed.validate(len).as_deref() {
        Ok([part]) => Wanted::Part(part.clone()),
        Ok(_) => Wanted::All,
        Err(_) => Wanted::Beyond,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    fn asking(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
        let headers = headers.iter().cloned();
        headers
            .map(|(name, value)| (name, HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn parts_are_found() {
        for (range, expected) in [
            ("bytes=0-3", Wanted::Part(0..=3)),
            ("bytes=90-", Wanted::Part(90..=99)),
            ("bytes=-5", Wanted::Part(95..=99)),
            ("bytes=100-", Wanted::Beyond),
            ("bytes=0-1,5-6", Wanted::All),
            ("lines=1-2", Wanted::All),
            ("bytes=x", Wanted::All),
        ] {
            assert_eq!(
                wanted(&asking(&[(RANGE, range)]), 100, None),
                expected,
                "{range}"
            );
        }
        assert_eq!(wanted(&HeaderMap::new(), 100, None), Wanted::All);
    }

    #[test]
    fn a_part_of_what_has_changed_is_all_of_it() {
        let date = "Thu, 26 Nov 2026 17:00:00 GMT";
        let asked = asking(&[(RANGE, "bytes=0-3"), (IF_RANGE, date)]);
        assert_eq!(wanted(&asked, 100, Some(date)), Wanted::Part(0..=3));
        let later = "Thu, 26 Nov 2026 17:00:01 GMT";
        assert_eq!(wanted(&asked, 100, Some(later)), Wanted::All);
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        let date = "Thu, 26 Nov 2026 17:00:00 GMT";
        let asked = asking(&[(IF_MODIFIED_SINCE, date)]);
        let modified = httpdate::parse_http_date(date).unwrap();
        let millis = std::time::Duration::from_millis;
        assert!(is_known(&asked, Some(modified + millis(300))));
        assert!(!is_known(&asked, Some(modified + millis(1_300))));
        assert!(!is_known(&asked, None));
    }

    #[test]
    fn kinds_are_told_by_names() {
        for (name, expected) in [
            ("a.opus", "audio/ogg"),
            ("a.webm", "video/webm"),
            ("a.mkv", "video/x-matroska"),
            ("a.mp4", "video/mp4"),
            ("a.mjr", "application/octet-stream"),
        ] {
            assert_eq!(kind(Path::new(name)), expected);
        }
    }
}
