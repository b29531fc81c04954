//! The addresses that may be relayed to: those of this server's media.

use std::net::{IpAddr, SocketAddr};

/// A UDP address of the media plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaAddress {
    /// The announced address. It differs from `bound` behind a 1:1 NAT.
    pub announced: SocketAddr,
    /// The bound address of the socket.
    pub bound: SocketAddr,
}

/// All UDP addresses of the media plane, the most preferred first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaAddresses(Vec<MediaAddress>);

impl MediaAddresses {
    /// These addresses.
    pub fn new(addresses: impl IntoIterator<Item = MediaAddress>) -> Self {
        MediaAddresses(addresses.into_iter().collect())
    }

    /// Returns whether clients may send to some port of an IP address.
    pub(crate) fn has_ip(&self, ip: IpAddr) -> bool {
        let mut all = self.0.iter();
        all.any(|it| it.announced.ip() == ip || it.bound.ip() == ip)
    }

    /// Returns the bound address for a datagram to `peer`, which needs no NAT on the way. Returns
    /// `None` if `peer` is not of the media plane.
    pub(crate) fn bound(&self, peer: SocketAddr) -> Option<SocketAddr> {
        let mut all = self.0.iter();
        let found = all.find(|it| it.announced == peer || it.bound == peer);
        found.map(|it| it.bound)
    }

    /// Returns the addresses by which clients may know the socket bound at `bound`.
    pub(crate) fn known_as(&self, bound: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        let of_it = self.0.iter().filter(move |it| it.bound == bound);
        of_it.map(|it| it.announced).chain([bound])
    }

    /// Returns the address to bind relay sockets of an address family to. A loopback address is the
    /// last choice: browsers do not pair it with others.
    pub(crate) fn relay(&self, is_ipv4: bool) -> Option<IpAddr> {
        let of_family = self
            .0
            .iter()
            .filter(|it| it.bound.is_ipv4() == is_ipv4 && it.announced.is_ipv4() == is_ipv4);
        let best = of_family.min_by_key(|it| it.bound.ip().is_loopback())?;
        Some(best.bound.ip())
    }

    /// Returns the bound IP addresses of the sockets.
    pub(crate) fn bound_ips(&self) -> Vec<IpAddr> {
        let mut ips = Vec::new();
        for ip in self.0.iter().map(|it| it.bound.ip()) {
            if !ips.contains(&ip) {
                ips.push(ip);
            }
        }
        ips
    }

    /// Returns the IP address by which clients reach this machine. An announced address that
    /// differs from the bound one comes first.
    pub(crate) fn first(&self) -> Option<IpAddr> {
        let is_of_nat = |it: &&MediaAddress| it.announced.ip() != it.bound.ip();
        let of_nat = self.0.iter().find(is_of_nat);
        of_nat.or(self.0.first()).map(|it| it.announced.ip())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn media() -> MediaAddresses {
        let one = |announced, bound| MediaAddress {
            announced: address(announced),
            bound: address(bound),
        };
        MediaAddresses::new([
            one("127.0.0.1:10000", "127.0.0.1:10000"),
            one("203.0.113.7:20000", "10.0.0.5:10000"),
            one("203.0.113.7:20001", "10.0.0.5:10001"),
            one("[2001:db8::5]:10000", "[2001:db8::5]:10000"),
        ])
    }

    #[test]
    fn both_the_announced_and_the_bound_address_are_the_sockets() {
        let media = media();
        for peer in ["203.0.113.7:20001", "10.0.0.5:10001"] {
            assert_eq!(media.bound(address(peer)), Some(address("10.0.0.5:10001")));
            assert!(media.has_ip(address(peer).ip()));
        }
        let known: Vec<_> = media.known_as(address("10.0.0.5:10000")).collect();
        assert_eq!(
            known,
            [address("203.0.113.7:20000"), address("10.0.0.5:10000")]
        );
    }

    #[test]
    fn other_ports_and_addresses_are_not() {
        let media = media();
        for peer in [
            "203.0.113.7:10000",
            "10.0.0.5:22",
            "192.0.2.1:10000",
            "[::1]:10000",
        ] {
            assert_eq!(media.bound(address(peer)), None);
        }
        assert!(!media.has_ip(address("192.0.2.1:1").ip()));
    }

    #[test]
    fn a_relay_socket_is_on_the_loopback_interface_only_if_media_is_nowhere_else() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(media().relay(true), Some(ip("10.0.0.5")));
        assert_eq!(media().relay(false), Some(ip("2001:db8::5")));
        let loopback = MediaAddresses::new(media().0.into_iter().take(1));
        assert_eq!(loopback.relay(true), Some(ip("127.0.0.1")));
        assert_eq!(loopback.relay(false), None);
        assert_eq!(loopback.first(), Some(ip("127.0.0.1")));
        assert_eq!(media().first(), Some(ip("203.0.113.7")));
    }
}
