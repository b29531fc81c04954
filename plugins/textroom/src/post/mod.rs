//! Messages that are posted to HTTP back-ends, in order and one at a time for each room. No request
//! waits for them.

mod back_end;
mod failure;
mod queue;
mod tls;

use std::net::IpAddr;

use url::{Host, Url};

pub(crate) use back_end::{BackEnds, Outlet, Patience, Reachable};

/// The expected form of an address, for people.
pub(crate) const EXPECTED: &str = "an address that begins with http:// or https://";

/// Returns the address of a back-end, or `None` for a text that cannot be one.
pub(crate) fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    (is_http && url.has_host()).then_some(url)
}

/// Returns the host of an address, if it is an IP address.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn addresses_are_those_of_http() {
        for text in [
            "",
            "a",
            "/a",
            "ftp://a/",
            "http://",
            "mailto:a@b",
            "http:///",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
        for (text, ip) in [
            ("http://a.example.org/x?y=1", None),
            ("https://192.0.2.1:8443/", Some("192.0.2.1")),
            // Browsers read it as an IPv4 address.
            ("http://0x7f000001/", Some("127.0.0.1")),
            ("http://[2001:db8::1]/", Some("2001:db8::1")),
        ] {
            let url = address(text).unwrap();
            let expected = ip.map(|ip| ip.parse::<IpAddr>().unwrap());
            assert_eq!(literal(&url), expected, "{text}");
        }
    }
}
