//! Conversion of socket addresses to and from the kernel's form.

use std::mem;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Room for any address of a UDP socket.
pub(crate) type RawAddress = libc::sockaddr_in6;

/// Returns an empty address.
pub(crate) fn zeroed() -> RawAddress {
    // SAFETY: sockaddr_in6 is plain integers; all zeros is a valid value.
    unsafe { mem::zeroed() }
}

/// Writes `address` for a socket: IPv4 mapped to IPv6 (RFC 4291 section 2.5.5.2) if `dual`, plain
/// otherwise. Returns the length used.
pub(crate) fn write(address: SocketAddr, dual: bool, raw: &mut RawAddress) -> libc::socklen_t {
    let (ip, scope) = match address {
        SocketAddr::V4(v4) if !dual => {
            // SAFETY: sockaddr_in is smaller than sockaddr_in6 and less strictly aligned, and both
            // are plain integers, so writing one over the other's start stays inside `raw`.
            let v4_raw = unsafe { &mut *std::ptr::from_mut(raw).cast::<libc::sockaddr_in>() };
            v4_raw.sin_family = libc::AF_INET as libc::sa_family_t;
            v4_raw.sin_port = v4.port().to_be();
            v4_raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
            return mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
        }
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    raw.sin6_port = address.port().to_be();
    raw.sin6_flowinfo = 0;
    raw.sin6_addr.s6_addr = ip.octets();
    raw.sin6_scope_id = scope;
    mem::size_of::<RawAddress>() as libc::socklen_t
}

/// Reads an address from the kernel. Returns `None` for other families. Mapped IPv4 becomes plain
/// IPv4.
pub(crate) fn read(raw: &RawAddress) -> Option<SocketAddr> {
    match i32::from(raw.sin6_family) {
        libc::AF_INET6 => {
            let ip = unmap(Ipv6Addr::from(raw.sin6_addr.s6_addr));
            Some(SocketAddr::new(ip, u16::from_be(raw.sin6_port)))
        }
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a sockaddr_in, which is smaller than
            // sockaddr_in6, no more strictly aligned, and plain integers.
            let v4 = unsafe { &*std::ptr::from_ref(raw).cast::<libc::sockaddr_in>() };
            let ip = IpAddr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip, u16::from_be(v4.sin_port)))
        }
        _ => None,
    }
}

/// Returns the IPv4 address of a mapped one.
pub(crate) fn unmap(ip: Ipv6Addr) -> IpAddr {
    ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for (text, dual) in [
            ("192.0.2.7:4711", true),
            ("192.0.2.7:4711", false),
            ("[2001:db8::1]:9", true),
        ] {
            let address: SocketAddr = text.parse().unwrap();
            let mut raw = zeroed();
            write(address, dual, &mut raw);
            assert_eq!(read(&raw), Some(address));
        }
    }

    #[test]
    fn other_families_are_refused() {
        assert_eq!(read(&zeroed()), None);
    }
}
