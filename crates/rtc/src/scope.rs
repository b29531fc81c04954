//! The reach of an IP address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// From where an IP address can be reached, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// From the machine itself: loopback.
    Machine,
    /// From its own network: private addresses (RFC 1918, RFC 4193), link-local ones, and those
    /// shared among a provider's customers (RFC 6598).
    Private,
    /// From the internet.
    Public,
}

impl Scope {
    /// Returns the scope of an address. An IPv4-mapped one has that of its IPv4 address.
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::of_v4(ip),
            IpAddr::V6(ip) => Self::of_v6(ip),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        let [first, second, ..] = ip.octets();
        let is_shared = first == 100 && second & 0xc0 == 64;
        match ip.is_loopback() {
            true => Scope::Machine,
            false if ip.is_private() || ip.is_link_local() || is_shared => Scope::Private,
            false => Scope::Public,
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        match ip.is_loopback() {
            true => Scope::Machine,
            false if ip.is_unique_local() || ip.is_unicast_link_local() => Scope::Private,
            false => Scope::Public,
        }
    }
}

/// Returns whether two addresses are probably in one network: they share 16 bits of IPv4, or 48
/// bits of IPv6.
pub(crate) fn are_neighbours(one: IpAddr, other: IpAddr) -> bool {
    match (one.to_canonical(), other.to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(other)) => one.octets().get(..2) == other.octets().get(..2),
        (IpAddr::V6(one), IpAddr::V6(other)) => one.octets().get(..6) == other.octets().get(..6),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn addresses_have_the_scope_of_their_range() {
        for (text, scope) in [
            ("127.0.0.1", Scope::Machine),
            ("::1", Scope::Machine),
            ("::ffff:127.0.0.1", Scope::Machine),
            ("10.0.0.5", Scope::Private),
            ("172.31.0.1", Scope::Private),
            ("192.168.1.1", Scope::Private),
            ("169.254.1.1", Scope::Private),
            ("100.64.0.1", Scope::Private),
            ("100.127.255.254", Scope::Private),
            ("fd00::1", Scope::Private),
            ("fe80::1", Scope::Private),
            ("100.128.0.1", Scope::Public),
            ("172.32.0.1", Scope::Public),
            ("203.0.113.7", Scope::Public),
            ("2001:db8::1", Scope::Public),
        ] {
            assert_eq!(Scope::of(text.parse().unwrap()), scope, "{text}");
        }
    }

    #[test]
    fn neighbours_share_their_first_bits() {
        for (one, other, expected) in [
            ("10.0.0.5", "10.0.9.9", true),
            ("10.0.0.5", "10.1.0.5", false),
            ("fd00:1:2::1", "fd00:1:2:9::1", true),
            ("fd00:1:2::1", "fd00:1:3::1", false),
            ("10.0.0.5", "fd00::1", false),
        ] {
            let are = are_neighbours(one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(are, expected, "{one} {other}");
        }
    }
}
