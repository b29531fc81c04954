//! The origin of a request, as its transport sees it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of clients, as far as limits distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientAddress {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address. A site has at least these (RFC 6177), so they identify
    /// one client.
    Ipv6([u16; 4]),
    /// Clients of the server's Unix socket, which count as one.
    Unix,
    /// Clients of this kind of message broker, which count as one.
    Broker(&'static str),
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => ClientAddress::Ipv4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                ClientAddress::Ipv6([a, b, c, d])
            }
        }
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ClientAddress::Ipv4(address) => address.fmt(f),
            // The only address of that network that a client can have.
            ClientAddress::Ipv6([0, 0, 0, 0]) => Ipv6Addr::LOCALHOST.fmt(f),
            ClientAddress::Ipv6([a, b, c, d]) => {
                write!(f, "{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            ClientAddress::Unix => f.write_str("unix"),
            ClientAddress::Broker(kind) => f.write_str(kind),
        }
    }
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Requester {
    address: ClientAddress,
    is_local: bool,
}

impl Requester {
    /// A client at `address`. `is_local`: it is a program on this machine, or one of the server's
    /// own pages in a browser on it. Proxies and pages of other origins are not local.
    pub fn at(address: IpAddr, is_local: bool) -> Self {
        Requester {
            address: address.into(),
            is_local,
        }
    }

    /// A client of the Unix socket, whose file permissions say who may use it.
    pub const fn unix() -> Self {
        Requester {
            address: ClientAddress::Unix,
            is_local: true,
        }
    }

    /// A client of a message broker of this kind, such as `mqtt`. It is never trusted, since the
    /// broker decides who may publish.
    pub const fn by_broker(kind: &'static str) -> Self {
        Requester {
            address: ClientAddress::Broker(kind),
            is_local: false,
        }
    }

    /// Its address.
    pub const fn address(&self) -> ClientAddress {
        self.address
    }

    /// Whether it is on this machine, and neither a proxy nor the page of another origin.
    pub const fn is_local(&self) -> bool {
        self.is_local
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_site_of_ipv6_is_one_client() {
        let at = |text: &str| ClientAddress::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(at("2001:db8:1:2::3"), at("2001:db8:1:2:ffff::"));
        assert_ne!(at("2001:db8:1:2::3"), at("2001:db8:1:3::3"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
        assert_eq!(at("2001:db8:1:2::3").to_string(), "2001:db8:1:2::/64");
        assert_eq!(at("::1").to_string(), "::1");
        assert_eq!(at("192.0.2.1").to_string(), "192.0.2.1");
    }
}
