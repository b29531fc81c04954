//! Who sends an HTTP request: whether it is somebody on this machine, or only looks so.
//!
//! What comes from a loopback address may be a proxy's, which speaks for anybody, or a browser's, in which a page from
//! anywhere asks. Pages cannot hide where they come from: browsers say it in `Origin` with all requests but some of
//! GET, and in `Host` if a page has its own name resolved to a loopback address (DNS rebinding).
//!
//! Libraries for WebSockets write the address that they connect to as `Origin`. No page of others is there.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::header::{FORWARDED, HOST, ORIGIN, VIA};
use axum::http::{HeaderMap, Request, Uri, Version};
use portunus_core::Requester;

/// What proxies add to requests.
const PROXY: [&str; 5] = [
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
];

/// What tells requests of this machine from others.
#[derive(Debug, Default)]
pub(crate) struct Locality {
    ports: OnceLock<OwnPorts>,
    /// It is in the log that there is a proxy.
    told: AtomicBool,
}

/// Where the server's own pages are.
#[derive(Debug, Default)]
pub(crate) struct OwnPorts {
    pub(crate) http: Vec<u16>,
    pub(crate) https: Vec<u16>,
}

impl Locality {
    /// Notes where the server's own pages are, once that is known.
    pub(crate) fn set_ports(&self, ports: OwnPorts) {
        // It is set once, before anything is served.
        let _ = self.ports.set(ports);
    }

    /// Who sends `request` from `address`.
    pub(crate) fn requester<B>(&self, address: SocketAddr, request: &Request<B>) -> Requester {
        let headers = request.headers();
        let is_loopback = address.ip().to_canonical().is_loopback();
        let by_proxy = is_loopback && is_by_proxy(request.version(), headers);
        if by_proxy && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "requests come by a proxy on this machine: set server.trust_loopback = false, \
                 so that none of them is taken for one of the machine's own"
            );
        }
        let is_local = is_loopback
            && !by_proxy
            && names_loopback(request.uri(), headers)
            && headers.get_all(ORIGIN).iter().all(|origin| {
                let origin = origin.to_str().ok().and_then(|origin| origin.parse().ok());
                origin.is_some_and(|origin| {
                    self.is_own_page(&origin) || is_asked(&origin, request.uri(), headers)
                })
            });
        Requester::at(address.ip(), is_local)
    }

    fn is_own_page(&self, origin: &Uri) -> bool {
        let Some(ports) = self.ports.get() else {
            return false;
        };
        let (ports, default) = match origin.scheme_str() {
            Some("http") => (&ports.http, 80),
            Some("https") => (&ports.https, 443),
            _ => return false,
        };
        let port = origin.port_u16().unwrap_or(default);
        ports.contains(&port) && origin.host().is_some_and(is_loopback_name)
    }
}

/// Whether `origin` is the address that the request was sent to.
fn is_asked(origin: &Uri, uri: &Uri, headers: &HeaderMap) -> bool {
    let default = match origin.scheme_str() {
        Some("http" | "ws") => 80,
        Some("https" | "wss") => 443,
        _ => return false,
    };
    let at = |uri: &Uri| {
        let host = uri.host()?.to_ascii_lowercase();
        Some((host, uri.port_u16().unwrap_or(default)))
    };
    let mut hosts = headers.get_all(HOST).iter().map(|host| {
        let host = host.to_str().ok().and_then(|host| host.parse::<Uri>().ok());
        host.as_ref().and_then(at)
    });
    let asked = at(uri).or_else(|| hosts.next().flatten());
    asked.is_some() && at(origin) == asked
}

/// Whether a proxy has handed the request on. Many that add nothing still speak HTTP/1.0.
fn is_by_proxy(version: Version, headers: &HeaderMap) -> bool {
    let named = headers.contains_key(FORWARDED) || headers.contains_key(VIA);
    named || version < Version::HTTP_11 || PROXY.iter().any(|name| headers.contains_key(*name))
}

/// Whether the server was addressed by a loopback name, as far as the request says.
fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let by_uri = uri.host().is_none_or(is_loopback_name);
    by_uri
        && headers.get_all(HOST).iter().all(|host| {
            let host = host.to_str().ok().and_then(|host| host.parse::<Uri>().ok());
            let host = host.as_ref().and_then(Uri::host);
            host.is_some_and(is_loopback_name)
        })
}

/// A name that no resolver gives another address (RFC 6761 section 6.3).
fn is_loopback_name(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn is_local(address: &str, headers: &[(&str, &str)]) -> bool {
        let locality = Locality::default();
        locality.set_ports(OwnPorts {
            http: vec![8088],
            https: vec![443],
        });
        let mut request = Request::builder().uri("/janus");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let address = SocketAddr::new(address.parse().unwrap(), 40_000);
        locality.requester(address, &request).is_local()
    }

    #[test]
    fn programs_on_this_machine_are_local() {
        for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(is_local(address, &[]), "{address}");
        }
        for address in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "fe80::1", "0.0.0.0"] {
            assert!(!is_local(address, &[]), "{address}");
        }
    }

    #[test]
    fn own_pages_are_local_and_others_are_not() {
        for (origin, own) in [
            ("http://localhost:8088", true),
            ("http://127.0.0.1:8088", true),
            ("http://[::1]:8088", true),
            ("https://localhost", true),
            ("http://localhost", false),
            ("http://localhost:3000", false),
            ("https://localhost:8088", false),
            ("http://example.org:8088", false),
            ("http://localhost.example.org:8088", false),
            ("http://127.0.0.1.example.org:8088", false),
            ("http://localhost@example.org:8088", false),
            ("null", false),
            ("", false),
            ("file://", false),
            ("ws://localhost:8088", false),
        ] {
            assert_eq!(
                is_local("127.0.0.1", &[("origin", origin)]),
                own,
                "{origin:?}"
            );
            assert!(!is_local("192.0.2.1", &[("origin", origin)]), "{origin:?}");
        }
        let two = [
            ("origin", "http://localhost:8088"),
            ("origin", "http://example.org"),
        ];
        assert!(!is_local("127.0.0.1", &two));
    }

    /// Python's websocket-client writes `http`, ws4py `ws`, each with the port if it is not the usual one.
    #[test]
    fn programs_that_name_the_address_they_connect_to_are_local() {
        for (host, origin, local) in [
            ("127.0.0.1:8188", "http://127.0.0.1:8188", true),
            ("127.0.0.1:8188", "ws://127.0.0.1:8188", true),
            ("LocalHost:8188", "http://localhost:8188", true),
            ("localhost:8989", "https://localhost:8989", true),
            ("[::1]:8188", "http://[::1]:8188", true),
            ("localhost", "wss://localhost", true),
            ("localhost:80", "ws://localhost", true),
            ("127.0.0.1:8188", "http://localhost:8188", false),
            ("127.0.0.1:8188", "http://127.0.0.1:8189", false),
            ("127.0.0.1:8188", "http://127.0.0.1", false),
            ("127.0.0.1:8188", "http://example.org", false),
            ("127.0.0.1:8188", "127.0.0.1:8188", false),
            ("127.0.0.1:8188", "null", false),
            ("example.org:8188", "http://example.org:8188", false),
        ] {
            let headers = [("host", host), ("origin", origin)];
            assert_eq!(is_local("127.0.0.1", &headers), local, "{host} {origin}");
            assert!(!is_local("192.0.2.1", &headers), "{host} {origin}");
        }
        let two = [
            ("host", "127.0.0.1:8188"),
            ("origin", "http://127.0.0.1:8188"),
            ("origin", "http://example.org"),
        ];
        assert!(!is_local("127.0.0.1", &two));
    }

    #[test]
    fn other_names_of_this_machine_are_not_local() {
        for (host, local) in [
            ("localhost:8088", true),
            ("LOCALHOST", true),
            ("127.0.0.1:8088", true),
            ("[::1]:8088", true),
            ("[::1]", true),
            ("rebound.example.org:8088", false),
            ("localhost.example.org", false),
            ("192.0.2.1", false),
            ("", false),
        ] {
            assert_eq!(is_local("127.0.0.1", &[("host", host)]), local, "{host:?}");
        }
        let request = Request::builder().uri("http://example.org/janus");
        let request = request.body(()).unwrap();
        let from = "127.0.0.1:4000".parse().unwrap();
        assert!(!Locality::default().requester(from, &request).is_local());
    }

    #[test]
    fn proxies_are_not_local() {
        for name in PROXY.into_iter().chain(["forwarded", "via"]) {
            assert!(!is_local("127.0.0.1", &[(name, "x")]), "{name}");
        }
        let request = Request::builder().version(Version::HTTP_10);
        let request = request.uri("/janus").body(()).unwrap();
        let from = "127.0.0.1:4000".parse().unwrap();
        assert!(!Locality::default().requester(from, &request).is_local());
    }
}
