//! The requester of an HTTP request: the client's address, and whether it is on this machine.
//!
//! Trusted proxies name their clients. A request that passed any proxy is not local.
//!
//! A request from a loopback address may come from a proxy, or from any page in a browser. Browsers
//! reveal pages: by `Origin` in all requests but some of GET, and by `Host` if a page has its own
//! name resolved to a loopback address (DNS rebinding).
//!
//! WebSocket libraries set `Origin` to the address that they connect to, where no page of others
//! can be.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::header::{FORWARDED, HOST, ORIGIN, VIA};
use axum::http::{HeaderMap, Request, Uri, Version};
use portunus_core::{Network, Requester};

use crate::forwarded::Forwarded;

/// Headers that proxies add to requests.
const PROXY: [&str; 5] = [
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
];

/// Distinguishes local requests from others, and the clients of trusted proxies from each other.
#[derive(Debug, Default)]
pub(crate) struct Locality {
    ports: OnceLock<OwnPorts>,
    /// The proxies whose headers name the client.
    trusted_proxies: Vec<Network>,
    /// Set once an untrusted proxy was logged.
    unknown_logged: AtomicBool,
    /// Set once a trusted proxy without client addresses was logged.
    unnamed_logged: AtomicBool,
}

/// The requester of an HTTP request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) requester: Requester,
    /// The client's address. The port is 0 if a proxy does not name it.
    pub(crate) address: SocketAddr,
    /// Whether the address is that of a proxy that does not name its client.
    pub(crate) is_hidden: bool,
}

/// The ports of the server's own pages.
#[derive(Debug, Default)]
pub(crate) struct OwnPorts {
    pub(crate) http: Vec<u16>,
    pub(crate) https: Vec<u16>,
}

impl Locality {
    pub(crate) fn new(trusted_proxies: &[Network]) -> Self {
        Locality {
            trusted_proxies: trusted_proxies.to_vec(),
            ..Locality::default()
        }
    }

    /// Sets the ports of the server's own pages, once they are known.
    pub(crate) fn set_ports(&self, ports: OwnPorts) {
        // Set once, before anything is served.
        let _ = self.ports.set(ports);
    }

    /// Returns the requester of `request` in a connection from `peer`.
    pub(crate) fn sender<B>(&self, peer: SocketAddr, request: &Request<B>) -> Sender {
        let headers = request.headers();
        let is_trusted = |ip| self.trusted_proxies.iter().any(|it| it.contains(ip));
        let is_loopback = peer.ip().to_canonical().is_loopback();
        let forwarded = match is_trusted(peer.ip()) {
            true => Forwarded::read(headers, is_trusted),
            false => Forwarded::No,
        };
        let by_proxy = is_by_proxy(request.version(), headers);
        let (address, is_hidden) = match forwarded {
            Forwarded::For(client) => (client, false),
            Forwarded::No => (peer, by_proxy),
            Forwarded::Unreadable | Forwarded::Contradictory => (peer, true),
        };
        if is_hidden {
            self.log_once(peer.ip(), is_trusted(peer.ip()));
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
        Sender {
            requester: Requester::at(address.ip(), is_local),
            address,
            is_hidden,
        }
    }

    /// Logs how to configure a proxy whose clients cannot be distinguished. Remote strangers that
    /// look like proxies are not logged.
    fn log_once(&self, proxy: IpAddr, is_trusted: bool) {
        if is_trusted && !self.unnamed_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %proxy,
                "a proxy of server.trusted_proxies does not name its client, or names two: have it set X-Forwarded-For, and \
                 remove Forwarded, or the other way round. Until then the proxy counts as the client"
            );
        } else if !is_trusted
            && proxy.to_canonical().is_loopback()
            && !self.unknown_logged.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                %proxy,
                "a proxy on this machine hands requests on: name it in server.trusted_proxies, so that each of its clients \
                 counts by its own address. Until then all of them count as one"
            );
        }
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

/// Whether the request passed a proxy. Many proxies that add no header speak HTTP/1.0.
fn is_by_proxy(version: Version, headers: &HeaderMap) -> bool {
    let named = headers.contains_key(FORWARDED) || headers.contains_key(VIA);
    named || version < Version::HTTP_11 || PROXY.iter().any(|name| headers.contains_key(*name))
}

/// Whether the request was sent to a loopback name, if it has a name.
fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let by_uri = uri.host().is_none_or(is_loopback_name);
    by_uri
        && headers.get_all(HOST).iter().all(|host| {
            let host = host.to_str().ok().and_then(|host| host.parse::<Uri>().ok());
            let host = host.as_ref().and_then(Uri::host);
            host.is_some_and(is_loopback_name)
        })
}

/// Whether resolvers always map a name to a loopback address (RFC 6761 section 6.3).
fn is_loopback_name(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn is_local_at(locality: &Locality, from: SocketAddr, request: &Request<()>) -> bool {
        locality.sender(from, request).requester.is_local()
    }

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
        is_local_at(&locality, address, &request)
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

    /// Python's websocket-client writes `http`, ws4py `ws`, each with an unusual port.
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
        assert!(!is_local_at(&Locality::default(), from, &request));
    }

    #[test]
    fn proxies_are_not_local() {
        for name in PROXY.into_iter().chain(["forwarded", "via"]) {
            assert!(!is_local("127.0.0.1", &[(name, "x")]), "{name}");
        }
        let request = Request::builder().version(Version::HTTP_10);
        let request = request.uri("/janus").body(()).unwrap();
        let from = "127.0.0.1:4000".parse().unwrap();
        assert!(!is_local_at(&Locality::default(), from, &request));
    }
    /// Returns the requester of a request with these headers by a proxy, at 127.0.0.1 or in
    /// 10.0.0.0/8.
    fn sender(peer: &str, headers: &[(&str, &str)]) -> Sender {
        let networks = ["127.0.0.1", "10.0.0.0/8"].map(|it| it.parse().unwrap());
        let mut request = Request::builder().uri("/janus").header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let peer = SocketAddr::new(peer.parse().unwrap(), 40_000);
        Locality::new(&networks).sender(peer, &request.body(()).unwrap())
    }

    #[test]
    fn clients_of_a_trusted_proxy_count_by_their_own_address() {
        for peer in ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.3"] {
            let sent = sender(peer, &[("x-forwarded-for", "127.0.0.1, 198.51.100.7")]);
            assert_eq!(sent.address, "198.51.100.7:0".parse().unwrap(), "{peer}");
            let client = Requester::at(sent.address.ip(), false);
            assert_eq!(sent.requester, client, "{peer}");
            assert!(!sent.is_hidden);
        }
        // Other addresses are not trusted, so their headers name nobody.
        let sent = sender("192.0.2.1", &[("x-forwarded-for", "198.51.100.7")]);
        assert_eq!(sent.address, "192.0.2.1:40000".parse().unwrap());
        assert!(sent.is_hidden);
    }

    #[test]
    fn what_a_trusted_proxy_hands_on_is_never_of_this_machine() {
        let programs = sender("127.0.0.1", &[]);
        assert!(programs.requester.is_local() && !programs.is_hidden);
        for headers in [
            &[("x-forwarded-for", "127.0.0.1")][..],
            &[("x-forwarded-for", "::1")],
            &[("forwarded", "for=127.0.0.1")],
            &[("x-forwarded-for", "unknown")],
            &[("x-forwarded-for", "")],
            &[("x-real-ip", "127.0.0.1")],
            &[("via", "1.1 proxy")],
            &[
                ("x-forwarded-for", "198.51.100.7"),
                ("forwarded", "for=127.0.0.1"),
            ],
        ] {
            let sent = sender("127.0.0.1", headers);
            assert!(!sent.requester.is_local(), "{headers:?}");
        }
    }

    #[test]
    fn a_proxy_that_names_nobody_counts_as_the_client() {
        for headers in [
            &[("x-forwarded-for", "unknown")][..],
            &[("via", "1.1 proxy")],
            &[
                ("x-forwarded-for", "198.51.100.7"),
                ("forwarded", "for=1.1.1.1"),
            ],
        ] {
            let sent = sender("10.0.0.3", headers);
            assert_eq!(sent.address, "10.0.0.3:40000".parse().unwrap());
            assert!(sent.is_hidden, "{headers:?}");
        }
    }
}
