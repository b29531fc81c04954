//! The headers of requests and responses.

use axum::http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use portunus_core::turn::Turn;

use super::problem::Problem;
use crate::IceServer;

/// Methods and headers that a browser may send.
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, If-Match, ETag";
/// Headers that a page may read. Some clients check by OPTIONS whether PATCH is supported, which
/// candidates need.
const EXPOSED_HEADERS: &str = "Location, ETag, Link, Accept-Patch, WWW-Authenticate, Retry-After, \
     Access-Control-Allow-Methods";

/// Returns the media type of the body, in lower case and without parameters. Empty means none.
pub(super) fn content_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether the client accepts `application/sdp`.
pub(super) fn accepts_sdp(headers: &HeaderMap) -> bool {
    let mut any = false;
    for value in headers.get_all(ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            any = true;
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let refused = parts.any(|parameter| {
                let weight = parameter
                    .strip_prefix("q=")
                    .map(|q| q.trim_end_matches('0'));
                matches!(weight, Some("" | "0."))
            });
            let fits = ["application/sdp", "application/*", "*/*"].contains(&kind.as_str());
            if fits && !refused {
                return true;
            }
        }
    }
    !any
}

/// Returns the bearer token of a request (RFC 6750 section 2.1).
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Ok(None);
    };
    // Clients send names in UTF-8 without encoding.
    let token = std::str::from_utf8(value.as_bytes());
    let token = token.ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    });
    let detail = "the Authorization header has to be of the form `Bearer TOKEN`";
    token
        .map(Some)
        .ok_or_else(|| unauthorized(detail, true, StatusCode::UNAUTHORIZED))
}

/// The problem of a token that is missing or wrong (401), or insufficient (403); see RFC 6750
/// section 3.
pub(super) fn unauthorized(detail: &str, shown: bool, status: StatusCode) -> Problem {
    let challenge = match (shown, status) {
        (false, _) => "Bearer realm=\"portunus\"",
        (true, StatusCode::FORBIDDEN) => "Bearer realm=\"portunus\", error=\"insufficient_scope\"",
        (true, _) => "Bearer realm=\"portunus\", error=\"invalid_token\"",
    };
    Problem::new(status, detail).with_header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

/// The precondition in an `If-Match` header, or in `ETag`, which some clients send instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// There is no precondition.
    Absent,
    /// The tag matches, or the header is `*`.
    Yes,
    /// The tag does not match.
    No,
}

impl Match {
    /// Compares with `tag`, including its quotes.
    pub(super) fn of(headers: &HeaderMap, tag: &str) -> Self {
        let mut outcome = Match::Absent;
        let name = match headers.contains_key(IF_MATCH) {
            true => IF_MATCH,
            false => ETAG,
        };
        for value in headers.get_all(name) {
            for candidate in value.to_str().unwrap_or_default().split(',') {
                let candidate = candidate.trim();
                if candidate == "*" || candidate == tag {
                    return Match::Yes;
                }
                outcome = Match::No;
            }
        }
        outcome
    }
}

/// The Link header of an ICE server (RFC 9725 section 4.6).
pub(super) struct Link;

impl Link {
    /// Returns the header's value, or `None` if it has invalid characters.
    pub(super) fn value(server: &IceServer) -> Option<HeaderValue> {
        let login = server.username.as_deref().zip(server.credential.as_deref());
        Self::of(&server.url, login)
    }

    /// Returns the headers for this server's own TURN server, with credentials for one client.
    pub(super) fn values(turn: &Turn) -> impl Iterator<Item = HeaderValue> {
        let server = turn.ice_server();
        let (urls, username, credential) = (server.urls, server.username, server.credential);
        let value = move |url: String| Self::of(&url, Some((&username, &credential)));
        urls.into_iter().filter_map(value)
    }

    fn of(url: &str, login: Option<(&str, &str)>) -> Option<HeaderValue> {
        let mut text = format!("<{url}>; rel=\"ice-server\"");
        if let Some((username, credential)) = login {
            text.push_str(&format!(
                "; username=\"{}\"; credential=\"{}\"; credential-type=\"password\"",
                quoted(username),
                quoted(credential)
            ));
        }
        HeaderValue::from_str(&text).ok()
    }
}

/// Escapes text for a quoted string (RFC 9110 section 5.6.4).
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The CORS headers for the request's origin (https://fetch.spec.whatwg.org/#http-cors-protocol).
#[derive(Debug)]
pub(super) struct Cors {
    origin: Origin,
    /// Whether the request is OPTIONS: a browser's preflight, or a client that checks the methods.
    options: bool,
}

#[derive(Debug)]
enum Origin {
    /// Not from a page of another origin.
    None,
    /// All origins are allowed.
    Any,
    Allowed(HeaderValue),
    Refused,
}

impl Cors {
    /// Examines a request. `allowed` are origins, or `*`.
    pub(super) fn of(allowed: &[String], method: &Method, headers: &HeaderMap) -> Self {
        let any = allowed.iter().any(|origin| origin == "*");
        let origin = match headers.get(ORIGIN) {
            _ if any => Origin::Any,
            None => Origin::None,
            Some(origin) if allowed.iter().any(|allowed| origin == allowed.as_str()) => {
                Origin::Allowed(origin.clone())
            }
            Some(origin) if is_own(origin, headers) => Origin::None,
            Some(_) => Origin::Refused,
        };
        let options = method == Method::OPTIONS;
        Cors { origin, options }
    }

    /// Whether the request's origin is not allowed.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.origin, Origin::Refused)
    }

    /// Adds the headers that let the page read the response.
    pub(super) fn add_headers(&self, headers: &mut HeaderMap) {
        if self.is_refused() {
            return;
        }
        let mut add = |name: HeaderName, value| headers.insert(name, value);
        if self.options {
            let methods = HeaderValue::from_static("POST, PATCH, DELETE, OPTIONS");
            add(ACCESS_CONTROL_ALLOW_METHODS, methods);
            let allowed = HeaderValue::from_static(ALLOWED_HEADERS);
            add(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
            add(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        }
        let origin = match &self.origin {
            Origin::Any => HeaderValue::from_static("*"),
            Origin::Allowed(origin) => {
                add(VARY, HeaderValue::from_static("Origin"));
                origin.clone()
            }
            Origin::None | Origin::Refused => return,
        };
        add(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
        add(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Whether a page of this server sends the request. Browsers send the origin with a POST to it,
/// too.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let host = headers.get("host").and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok().and_then(|origin| {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
    });
    host.is_some() && host == origin
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn tokens_may_have_any_characters() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes("bearer grün".as_bytes()).unwrap();
        headers.insert(AUTHORIZATION, value);
        assert_eq!(bearer(&headers).ok(), Some(Some("grün")));
        for wrong in [&b"Bearer \xff"[..], b"Bearer ", b"Basic abc"] {
            let value = HeaderValue::from_bytes(wrong).unwrap();
            headers.insert(AUTHORIZATION, value);
            assert!(bearer(&headers).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_is_refused_only_to_those_who_say_so() {
        for (accept, taken) in [
            (&[][..], true),
            (&["*/*"], true),
            (&["application/SDP"], true),
            (&["text/html", "application/sdp;q=0.5"], true),
            (&["text/html, application/*"], true),
            (&["application/json"], false),
            (&["application/sdp;q=0"], false),
            (&["application/sdp; q=0.00"], false),
        ] {
            assert_eq!(accepts_sdp(&headers(ACCEPT, accept)), taken, "{accept:?}");
        }
    }

    #[test]
    fn tags_match_by_name_or_star() {
        let of = |values: &[&str]| Match::of(&headers(IF_MATCH, values), "\"a1\"");
        assert_eq!(of(&[]), Match::Absent);
        assert_eq!(of(&["*"]), Match::Yes);
        assert_eq!(of(&["\"b\", \"a1\""]), Match::Yes);
        assert_eq!(of(&["\"b\""]), Match::No);
        assert_eq!(of(&["a1"]), Match::No);
        // Eyevinn's client uses the wrong header.
        let mut both = headers(ETAG, &["\"a1\""]);
        assert_eq!(Match::of(&both, "\"a1\""), Match::Yes);
        assert_eq!(Match::of(&both, "\"b\""), Match::No);
        both.insert(IF_MATCH, HeaderValue::from_static("\"b\""));
        assert_eq!(Match::of(&both, "\"a1\""), Match::No);
    }

    #[test]
    fn ice_servers_become_links() {
        let mut server = IceServer {
            url: "turn:turn.example.net?transport=udp".into(),
            username: None,
            credential: None,
        };
        assert_eq!(
            Link::value(&server).unwrap(),
            "<turn:turn.example.net?transport=udp>; rel=\"ice-server\""
        );
        server.username = Some("me".into());
        server.credential = Some("a\"b".into());
        let link = Link::value(&server).unwrap();
        let link = link.to_str().unwrap();
        assert!(
            link.ends_with("username=\"me\"; credential=\"a\\\"b\"; credential-type=\"password\"")
        );
    }

    #[test]
    fn tokens_are_read_from_bearer_headers_only() {
        let of =
            |value: &str| bearer(&headers(AUTHORIZATION, &[value])).map(|t| t.map(str::to_owned));
        assert_eq!(of("Bearer abc").unwrap().as_deref(), Some("abc"));
        assert_eq!(of("bearer  abc ").unwrap().as_deref(), Some("abc"));
        assert!(of("Basic abc").is_err());
        assert!(of("Bearer ").is_err());
        assert_eq!(bearer(&HeaderMap::new()).unwrap(), None);
    }
}
