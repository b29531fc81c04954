//! Socket addresses in the kernel's form.

use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Room for an address of either family.
pub(super) type RawAddress = libc::sockaddr_in6;

pub(super) const RAW_ADDRESS_BYTES: libc::socklen_t =
    mem::size_of::<RawAddress>() as libc::socklen_t;

/// An empty address.
pub(super) const EMPTY: RawAddress = libc::sockaddr_in6 {
    sin6_family: 0,
    sin6_port: 0,
    sin6_flowinfo: 0,
    sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
    sin6_scope_id: 0,
};

/// Writes `address`; returns its length.
pub(super) fn write(address: SocketAddr, raw: &mut RawAddress) -> libc::socklen_t {
    match address {
        SocketAddr::V4(v4) => {
            let value = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_in is smaller than sockaddr_in6 and no more strictly aligned, and both
            // are plain integers, so it may be written over the other's start.
            unsafe {
                std::ptr::from_mut(raw)
                    .cast::<libc::sockaddr_in>()
                    .write(value)
            };
            mem::size_of::<libc::sockaddr_in>() as libc::socklen_t
        }
        SocketAddr::V6(v6) => {
            *raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            RAW_ADDRESS_BYTES
        }
    }
}

/// Reads what the kernel wrote; none if it is of another family.
pub(super) fn read(raw: &RawAddress) -> Option<SocketAddr> {
    match i32::from(raw.sin6_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a sockaddr_in, which is smaller than
            // sockaddr_in6, no more strictly aligned, and plain integers.
            let v4 = unsafe { &*std::ptr::from_ref(raw).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let port = u16::from_be(raw.sin6_port);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}
