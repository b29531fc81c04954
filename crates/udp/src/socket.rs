//! Sockets that batches leave and come by.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use socket2::{Domain, Protocol, Type};

/// Asked of the kernel; it gives what net.core.rmem_max and wmem_max allow.
const BUFFER_BYTES: usize = 8 << 20;

/// A non-blocking UDP socket that tells which address each datagram came to.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// An IPv6 socket that takes IPv4 as well.
    dual: bool,
    local: SocketAddr,
}

impl Socket {
    /// Binds `address`; the unspecified IPv6 address takes IPv4 too.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let dual = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let socket = socket2::Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(!dual)?;
        }
        // A smaller buffer than asked for costs losses under load, not function.
        let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(BUFFER_BYTES);
        socket.bind(&address.into())?;
        let local = socket
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::Unsupported)?;
        let this = Self {
            fd: socket.into(),
            dual: address.is_ipv6(),
            local,
        };
        if address.is_ipv6() {
            set_option(&this, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        }
        if address.is_ipv4() {
            set_option(&this, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
        }
        Ok(this)
    }

    /// Whether the kernel knows UDP_SEGMENT.
    pub fn probe_gso(&self) -> bool {
        set_option(self, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
    }

    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The descriptor, to be polled.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket that a [`SendBatch`](crate::SendBatch) may leave by.
pub trait Outlet: AsFd {
    /// Whether it is of IPv6: addresses of IPv4 are mapped then.
    fn is_dual(&self) -> bool;
}

impl Outlet for Socket {
    #[inline]
    fn is_dual(&self) -> bool {
        self.dual
    }
}

/// A socket of one family: it sends to addresses of that family.
impl Outlet for UdpSocket {
    fn is_dual(&self) -> bool {
        false
    }
}

/// Asks the kernel to join datagrams of one sender (UDP_GRO); says whether it does.
pub fn enable_gro(socket: &impl AsFd) -> bool {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Asks the kernel to note when datagrams came (SO_TIMESTAMPNS); says whether it does.
pub fn enable_timestamps(socket: &impl AsFd) -> bool {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).is_ok()
}

pub(crate) fn set_option(socket: &impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            std::mem::size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
