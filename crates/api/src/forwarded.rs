//! The client that a proxy names in a request: in `X-Forwarded-For`, or in `Forwarded` (RFC 7239).
//!
//! Each proxy appends the address of its own connection, and clients can send any entries before
//! that. So the entries are read from the last one, as long as trusted proxies have written them.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::FORWARDED;
use axum::http::{HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client in the headers of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// There is no such header.
    No,
    /// The client at this address. The port is 0 if it is not named.
    For(SocketAddr),
    /// The header of the nearest proxy holds no address.
    Unreadable,
    /// `X-Forwarded-For` and `Forwarded` name different clients. A proxy writes one of them, and
    /// its client may have written the other.
    Contradictory,
}

impl Forwarded {
    /// Reads the headers of a request that came from a trusted proxy.
    pub(crate) fn read(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Self {
        let has = |name: &HeaderName| headers.contains_key(name);
        let by_x = has(&X_FORWARDED_FOR)
            .then(|| client(elements(headers, &X_FORWARDED_FOR).map(node), &is_trusted));
        let by_rfc = has(&FORWARDED)
            .then(|| client(elements(headers, &FORWARDED).map(for_node), &is_trusted));
        let ip = |found: Option<SocketAddr>| found.map(|it| it.ip());
        match (by_x, by_rfc) {
            (None, None) => Forwarded::No,
            (Some(x), Some(rfc)) if ip(x) != ip(rfc) => Forwarded::Contradictory,
            (Some(found), _) | (None, Some(found)) => {
                found.map_or(Forwarded::Unreadable, Forwarded::For)
            }
        }
    }
}

/// Returns the last address that is not a trusted proxy's, or the first one if all are proxies'.
fn client(
    nodes: impl Iterator<Item = Option<SocketAddr>>,
    is_trusted: &impl Fn(IpAddr) -> bool,
) -> Option<SocketAddr> {
    let mut found = None;
    for node in nodes {
        let Some(node) = node else { break };
        let node = SocketAddr::new(node.ip().to_canonical(), node.port());
        found = Some(node);
        if !is_trusted(node.ip()) {
            break;
        }
    }
    found
}

/// Returns the elements of all headers with this name, from the last one. A header that is not text
/// counts as an empty one.
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().rev();
    lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','))
}

/// Parses an IP address with an optional port. An IPv6 address may be in brackets.
fn node(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let ip = inner.unwrap_or(text).parse::<IpAddr>().ok()?;
    Some(SocketAddr::new(ip, 0))
}

/// Parses the address in `for` of an element of `Forwarded`. The whole element must be well-formed:
/// a part of a quoted text, in which a client may have put a comma, is no element.
fn for_node(element: &str) -> Option<SocketAddr> {
    let mut found = None;
    for pair in element.split(';') {
        let (name, value) = pair.trim().split_once('=')?;
        let value = match value.strip_prefix('"') {
            Some(rest) => rest
                .strip_suffix('"')
                .filter(|it| !it.contains(['"', '\\']))?,
            None => Some(value).filter(|it| is_token(it))?,
        };
        if !is_token(name) {
            return None;
        }
        if name.eq_ignore_ascii_case("for") && found.replace(node(value)?).is_some() {
            return None;
        }
    }
    found
}

/// Whether the text is a token (RFC 9110 section 5.6.2). `:` is allowed, because proxies write
/// ports without quotes.
fn is_token(text: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:".contains(&b);
    !text.is_empty() && text.bytes().all(token)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use proptest::prelude::*;

    use super::*;

    /// Returns the client of a request by the proxy 127.0.0.1, with the proxies 10.0.0.0/8.
    fn read(headers: &[(&'static str, &str)]) -> Forwarded {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Forwarded::read(&map, |ip| {
            ip.is_loopback() || matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 10)
        })
    }

    fn client(address: &str) -> Forwarded {
        Forwarded::For(node(address).unwrap())
    }

    #[test]
    fn a_client_cannot_choose_its_address_by_what_it_sends() {
        for (headers, expected) in [
            (&["198.51.100.7"][..], "198.51.100.7"),
            (&["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
            (&["127.0.0.1, 198.51.100.7"], "198.51.100.7"),
            (&["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
            (&["1.1.1.1, 198.51.100.7, 10.0.0.3"], "198.51.100.7"),
            (
                &["nonsense, 198.51.100.7,10.0.0.3 , 10.0.0.4"],
                "198.51.100.7",
            ),
            // Entries before an invalid one may be forged.
            (&["1.1.1.1, unknown, 10.0.0.3"], "10.0.0.3"),
            (&["1.1.1.1, , 10.0.0.3"], "10.0.0.3"),
            // A request of the proxy itself.
            (&["10.0.0.5, 10.0.0.3"], "10.0.0.5"),
            (&["198.51.100.7:4711"], "198.51.100.7:4711"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["[2001:db8::1]:4711"], "[2001:db8::1]:4711"),
            (&["::ffff:198.51.100.7"], "198.51.100.7"),
        ] {
            let lines: Vec<_> = headers.iter().map(|it| ("x-forwarded-for", *it)).collect();
            assert_eq!(read(&lines), client(expected), "{headers:?}");
        }
    }

    #[test]
    fn the_header_of_the_standard_counts_as_well() {
        for (header, expected) in [
            ("for=198.51.100.7", "198.51.100.7"),
            ("For=\"198.51.100.7:4711\";proto=https", "198.51.100.7:4711"),
            ("proto=http; by=10.0.0.1;for=198.51.100.7", "198.51.100.7"),
            (
                "for=1.1.1.1, for=\"[2001:db8::1]:4711\"",
                "[2001:db8::1]:4711",
            ),
            (
                "for=\"[2001:db8::1]\", for=10.0.0.3;proto=https",
                "2001:db8::1",
            ),
            ("for=_hidden, for=10.0.0.3", "10.0.0.3"),
            // The client has opened a quoted text that would include the proxy's entry.
            ("for=\"1.1.1.1, for=198.51.100.7", "198.51.100.7"),
        ] {
            assert_eq!(read(&[("forwarded", header)]), client(expected), "{header}");
        }
        for header in [
            "",
            "for",
            "for=",
            "for=unknown",
            "for=_hidden",
            "proto=https",
            "for=1.1.1.1;for=198.51.100.7",
            "for=198.51.100.7;",
            // A quoted host with a comma, chosen by a client.
            "for=198.51.100.7;host=\"a,for=1.1.1.1\"",
            "for=198.51.100.7;host=\"a,for=1.1.1.1;x=\"",
            "for=198.51.100.7;host=\"a,for=1.1.1.1;x=y\"",
            "for=198.51.100.7;host=\"a,for=\\\"1.1.1.1\"",
        ] {
            assert_eq!(
                read(&[("forwarded", header)]),
                Forwarded::Unreadable,
                "{header}"
            );
        }
    }

    #[test]
    fn two_headers_have_to_name_the_same_client() {
        assert_eq!(read(&[]), Forwarded::No);
        assert_eq!(read(&[("via", "1.1 proxy")]), Forwarded::No);
        let both = |x: &str, rfc: &str| read(&[("x-forwarded-for", x), ("forwarded", rfc)]);
        let same = both("198.51.100.7", "for=\"198.51.100.7:4711\"");
        assert_eq!(same, client("198.51.100.7"));
        let other = both("198.51.100.7", "for=1.1.1.1");
        assert_eq!(other, Forwarded::Contradictory);
        let hidden = both("1.1.1.1", "for=_hidden");
        assert_eq!(hidden, Forwarded::Contradictory);
        assert_eq!(read(&[("x-forwarded-for", "x")]), Forwarded::Unreadable);
    }

    proptest! {
        #[test]
        fn whatever_a_client_sends_the_proxy_names_it(sent in "[ -~]{0,60}") {
            let line = format!("{sent}, 198.51.100.7");
            prop_assert_eq!(read(&[("x-forwarded-for", &line)]), client("198.51.100.7"));
            let line = format!("{sent}, for=198.51.100.7");
            prop_assert_eq!(read(&[("forwarded", &line)]), client("198.51.100.7"));
        }
    }
}
