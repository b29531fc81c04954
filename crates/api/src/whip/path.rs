//! The paths of endpoints and resources.

use axum::body::Body;
use axum::http::header::{ALLOW, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use percent_encoding::percent_decode_str;

use super::{FRAGMENT, SDP};

/// The plugin of paths without a plugin.
const DEFAULT_PLUGIN: &str = "streaming";
/// The segment before a resource's id, in place of the plugin in an endpoint's path.
const RESOURCE: &str = "resource";
/// The longest stream id or part, in bytes.
const MAX_ID: usize = 256;
/// The most parameters of a query that are read.
const MAX_PARAMETERS: usize = 32;

/// The direction of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// From the client.
    Whip,
    /// To the client.
    Whep,
}

impl Kind {
    /// The start of its paths.
    pub(super) const fn base(self) -> &'static str {
        match self {
            Kind::Whip => "/whip",
            Kind::Whep => "/whep",
        }
    }

    /// The media types of PATCH for its resources, as in a header. A viewer may answer an offer of
    /// the server.
    pub(super) const fn accept_patch(self) -> &'static str {
        match self {
            Kind::Whip => FRAGMENT,
            Kind::Whep => "application/trickle-ice-sdpfrag, application/sdp",
        }
    }

    /// Returns the path of a resource.
    pub(super) fn location(self, id: &str) -> String {
        format!("{}/{RESOURCE}/{id}", self.base())
    }
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Endpoint(Endpoint),
    /// A resource's id.
    Resource(String),
}

/// A stream of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) plugin: String,
    /// The stream's id or name, decoded.
    pub(super) id: String,
    /// The decoded rest of the path.
    pub(super) part: Option<String>,
}

impl Target {
    /// Parses a request's path. Returns `None` if it has no target.
    pub(super) fn parse(path: &str) -> Option<(Kind, Self)> {
        let mut segments = path.strip_prefix('/')?.split('/');
        let kind = match segments.next()? {
            "whip" => Kind::Whip,
            "whep" => Kind::Whep,
            _ => return None,
        };
        let rest: Vec<&str> = segments.filter(|segment| !segment.is_empty()).collect();
        let target = match rest.as_slice() {
            [RESOURCE, id] => Target::Resource((*id).to_owned()),
            [id] => Target::endpoint(DEFAULT_PLUGIN, id, None)?,
            [plugin, id] => Target::endpoint(plugin, id, None)?,
            [plugin, id, part] if *plugin != RESOURCE => Target::endpoint(plugin, id, Some(part))?,
            _ => return None,
        };
        Some((kind, target))
    }

    fn endpoint(plugin: &str, id: &str, part: Option<&str>) -> Option<Self> {
        let id = decoded(id)?;
        let part = match part {
            Some(part) => Some(decoded(part)?),
            None => None,
        };
        let plugin = plugin.to_owned();
        Some(Target::Endpoint(Endpoint { plugin, id, part }))
    }

    /// The supported methods.
    pub(super) const fn allow(&self) -> &'static str {
        match self {
            Target::Endpoint(_) => "POST, OPTIONS",
            Target::Resource(_) => "PATCH, DELETE, OPTIONS",
        }
    }

    /// The response to OPTIONS. [`super::headers::Cors`] adds the headers for browsers.
    pub(super) fn options(&self, kind: Kind) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static(self.allow()));
        let (name, value) = match self {
            Target::Endpoint(_) => ("accept-post", SDP),
            Target::Resource(_) => ("accept-patch", kind.accept_patch()),
        };
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        response
    }
}

/// Decodes a segment of a path. Returns `None` if it is too long or not text.
fn decoded(segment: &str) -> Option<String> {
    let text = percent_decode_str(segment).decode_utf8().ok()?;
    (text.len() <= MAX_ID).then(|| text.into_owned())
}

/// Decodes the names and values of a query, and ignores those that are not text.
pub(super) fn parameters(query: Option<&str>) -> Vec<(String, String)> {
    let text = |part: &str| {
        let spaced = part.replace('+', " ");
        let text = percent_decode_str(&spaced).decode_utf8().ok()?;
        Some(text.into_owned())
    };
    let pairs = query.unwrap_or_default().split('&').take(MAX_PARAMETERS);
    let read = pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((text(name)?, text(value)?))
    });
    read.filter(|(name, _)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(plugin: &str, id: &str) -> Option<Target> {
        part(plugin, id, None)
    }

    fn part(plugin: &str, id: &str, part: Option<&str>) -> Option<Target> {
        let (plugin, id) = (plugin.to_owned(), id.to_owned());
        let part = part.map(str::to_owned);
        Some(Target::Endpoint(Endpoint { plugin, id, part }))
    }

    #[test]
    fn a_query_has_names_and_values() {
        let read = parameters(Some("pin=1%202&display=Al+Bo&flag&=x&bad=%ff"));
        let expected = [("pin", "1 2"), ("display", "Al Bo"), ("flag", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read, expected);
        assert!(parameters(None).is_empty());
        assert_eq!(
            parameters(Some(&"a=b&".repeat(1_000))).len(),
            MAX_PARAMETERS
        );
    }

    #[test]
    fn a_path_names_an_endpoint_or_a_resource() {
        let target = |path| Target::parse(path).map(|(_, target)| target);
        assert_eq!(target("/whip/7"), endpoint("streaming", "7"));
        assert_eq!(target("/whep/7/"), endpoint("streaming", "7"));
        assert_eq!(target("/whip/videoroom/7"), endpoint("videoroom", "7"));
        assert_eq!(
            target("/whep/videoroom/7/1%201"),
            part("videoroom", "7", Some("1 1"))
        );
        let spaced = target("/whip/streaming/my%20room%2F1");
        assert_eq!(spaced, endpoint("streaming", "my room/1"));
        let resource = Some(Target::Resource("ab12".into()));
        assert_eq!(target("/whep/resource/ab12"), resource);
        for path in [
            "/whip",
            "/whip/",
            "/whip/a/b/c/d",
            "/whip/resource/b/c",
            "/whip/%ff",
            "/wish/7",
            "",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }
}
