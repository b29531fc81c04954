//! Sockets for batches.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use socket2::{Domain, Protocol, Type};

/// The buffer size requested from the kernel, for each direction.
const BUFFER_BYTES: usize = 8 << 20;

/// A non-blocking UDP socket that reports the destination address of each datagram.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// Local addresses with a dedicated socket for sending.
    apart: Vec<(IpAddr, OwnedFd)>,
    /// Whether it is an IPv6 socket that accepts IPv4 too.
    dual: bool,
    local: SocketAddr,
    receive_buffer: usize,
}

impl Socket {
    /// Binds `address`. The unspecified IPv6 address accepts IPv4 too.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::bind_as(address, false)
    }

    /// Binds `count` sockets to `address`. The kernel assigns each sender to one of them, always
    /// the same one, by a hash of both addresses and ports (SO_REUSEPORT).
    ///
    /// # Errors
    /// As [`Socket::bind`], and also if the port belongs to another group of sockets.
    pub fn bind_group(address: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        // The first one does not share yet, so that it fails if another program has the port.
        let first = Self::bind(address)?;
        let address = first.local;
        if count > 1 {
            set_option(&first, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        let others = (1..count).map(|_| Self::bind_as(address, true));
        std::iter::once(Ok(first)).chain(others).collect()
    }

    fn bind_as(address: SocketAddr, shares: bool) -> io::Result<Self> {
        let socket = open(address)?;
        let receive_buffer = ask_receive_buffer(&socket, BUFFER_BYTES);
        if shares {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        socket.bind(&address.into())?;
        let local = socket
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::Unsupported)?;
        let this = Self {
            fd: socket.into(),
            apart: Vec::new(),
            dual: address.is_ipv6(),
            local,
            receive_buffer,
        };
        match address.ip() {
            ip if !ip.is_unspecified() => {}
            IpAddr::V6(_) => set_option(&this, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?,
            IpAddr::V4(_) => set_option(&this, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?,
        }
        Ok(this)
    }

    /// Gives each of `addresses` a dedicated socket for sending, with that address and the same
    /// port. That is cheaper for the kernel: no poller is woken for each sent datagram, the address
    /// need not be passed with each message, and since the socket is connected, IPv4
    /// identifications (RFC 791) come from its own counter instead of a shared table. It is
    /// connected to itself, so that it never receives anything.
    ///
    /// Addresses that the kernel refuses are skipped, and use the main socket as before. Returns
    /// how many have a socket.
    pub fn send_apart(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> usize {
        Self::send_group_apart(std::slice::from_mut(self), addresses)
    }

    /// Does the same for each of a group of sockets that share an address. Returns how many
    /// addresses have a socket in each of them.
    pub fn send_group_apart(
        group: &mut [Self],
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> usize {
        // Only for this moment may sockets outside of the group bind the same port.
        let shared = group.iter().try_for_each(|socket| socket.share(1));
        for ip in addresses {
            for socket in &mut *group {
                let local = socket.local.ip();
                let is_ours = local == ip || local.is_unspecified() && !ip.is_unspecified();
                if shared.is_ok() && is_ours && socket.apart.iter().all(|(known, _)| *known != ip) {
                    let apart = connected_to_itself(SocketAddr::new(ip, socket.local.port()));
                    socket.apart.extend(apart.map(|apart| (ip, apart)));
                }
            }
        }
        for socket in &mut *group {
            if socket.share(0).is_err() {
                socket.apart.clear();
            }
        }
        group
            .iter()
            .map(|socket| socket.apart.len())
            .min()
            .unwrap_or(0)
    }

    /// Sets whether other sockets that allow it may be bound to its port.
    fn share(&self, shared: i32) -> io::Result<()> {
        let own = [self.fd.as_fd()].into_iter();
        let mut all = own.chain(self.apart.iter().map(|(_, apart)| apart.as_fd()));
        all.try_for_each(|fd| set_option(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, shared))
    }

    /// Returns whether the kernel supports UDP_SEGMENT.
    pub fn probe_gso(&self) -> bool {
        set_option(self, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
    }

    /// Returns the bytes that its receive buffer holds.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Returns the bound address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the descriptor for polling.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens an unbound socket with a large send buffer.
fn open(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED))?;
    }
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
    let _ = set_option(
        &socket,
        libc::SOL_SOCKET,
        libc::SO_SNDBUFFORCE,
        BUFFER_BYTES as i32,
    );
    Ok(socket)
}

/// Opens a socket with a local address that only sends. Its port is shared with sockets that allow
/// it, until sharing ends.
fn connected_to_itself(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(address)?;
    set_option(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    socket.bind(&address.into())?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

/// A way out for a [`SendBatch`](crate::SendBatch).
pub trait Outlet {
    /// Returns the socket for datagrams `from` a local address, or from the kernel's choice.
    fn exit(&self, from: Option<IpAddr>) -> Exit<'_>;
}

/// A socket for outgoing datagrams.
#[derive(Debug, Clone, Copy)]
pub struct Exit<'a> {
    /// The socket.
    pub(crate) fd: BorrowedFd<'a>,
    /// Whether it is an IPv6 socket, for which IPv4 addresses are mapped.
    pub(crate) dual: bool,
    /// Whether all its datagrams have the same local address without naming it.
    pub(crate) is_bound: bool,
}

impl Outlet for Socket {
    #[inline]
    fn exit(&self, from: Option<IpAddr>) -> Exit<'_> {
        let apart = from.and_then(|from| self.apart.iter().find(|(ip, _)| *ip == from));
        if let Some((ip, fd)) = apart {
            return Exit {
                fd: fd.as_fd(),
                dual: ip.is_ipv6(),
                is_bound: true,
            };
        }
        Exit {
            fd: self.fd.as_fd(),
            dual: self.dual,
            is_bound: from == Some(self.local.ip()),
        }
    }
}

/// A socket of one address family, which sends to addresses of that family.
impl Outlet for UdpSocket {
    fn exit(&self, _: Option<IpAddr>) -> Exit<'_> {
        Exit {
            fd: self.as_fd(),
            dual: false,
            is_bound: false,
        }
    }
}

/// Requests a receive buffer of `bytes`, without the kernel's overhead. Returns its size. That is
/// less if `net.core.rmem_max` is lower and the process lacks CAP_NET_ADMIN, which causes loss
/// under load, but no malfunction.
pub fn ask_receive_buffer(socket: &impl AsFd, bytes: usize) -> usize {
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    let (level, kind) = (libc::SOL_SOCKET, libc::SO_RCVBUF);
    let _ = set_option(socket, level, kind, wanted);
    let _ = set_option(socket, level, libc::SO_RCVBUFFORCE, wanted);
    // The kernel doubles the requested size for its overhead.
    let held = socket2::SockRef::from(socket).recv_buffer_size();
    held.unwrap_or(0) / 2
}

/// Makes the kernel join datagrams of one sender (UDP_GRO). Returns whether it does.
pub fn enable_gro(socket: &impl AsFd) -> bool {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Makes the kernel timestamp arrivals (SO_TIMESTAMPNS). Returns whether it does.
pub fn enable_timestamps(socket: &impl AsFd) -> bool {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).is_ok()
}

/// Makes the kernel keep ICMP errors of undelivered datagrams, also for a socket that is not
/// connected (IP_RECVERR, IPV6_RECVERR). Returns whether it does. [`take_errors`] has to take them.
pub fn keep_errors(socket: &impl AsFd) -> bool {
    let v4 = set_option(socket, libc::SOL_IP, libc::IP_RECVERR, 1).is_ok();
    let v6 = set_option(socket, libc::SOL_IPV6, libc::IPV6_RECVERR, 1).is_ok();
    v4 || v6
}

/// Takes up to `most` kept errors. Returns their number.
pub fn take_errors(socket: &impl AsFd, most: usize) -> usize {
    let socket = socket2::SockRef::from(socket);
    // The start of the undelivered datagram, which is not used.
    let mut rest = [std::mem::MaybeUninit::uninit(); 1];
    let taken = (0..most).take_while(|_| {
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        socket.recv_with_flags(&mut rest, flags).is_ok()
    });
    taken.count()
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

#[cfg(all(test, not(miri)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;
    use crate::{ReceiveBatch, SendBatch};

    /// Waits for messages and returns all that are there: sender, destination and data.
    fn take(socket: &Socket) -> Vec<(SocketAddr, Option<IpAddr>, Vec<u8>)> {
        let mut batch = ReceiveBatch::new(8, ReceiveBatch::WHOLE);
        loop {
            let received = batch.receive(socket).unwrap();
            if received > 0 {
                let messages = batch.iter(received);
                return messages
                    .map(|m| (m.remote, m.local, m.data.to_vec()))
                    .collect();
            }
        }
    }

    fn send(out: &mut SendBatch, socket: &Socket, (from, to): (IpAddr, SocketAddr), data: &[u8]) {
        let room = out.room(socket);
        room.get_mut(..data.len()).unwrap().copy_from_slice(data);
        let destination = out.destination(from, to);
        out.commit(data.len(), &destination);
        out.flush(socket);
    }

    #[test]
    fn what_is_sent_apart_comes_from_the_same_address_and_answers_come_back() {
        for (bind, ip) in [
            ("127.0.0.1", "127.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("::", "127.0.0.1"),
            ("::1", "::1"),
            ("::", "::1"),
        ] {
            let (bind, ip): (IpAddr, IpAddr) = (bind.parse().unwrap(), ip.parse().unwrap());
            let mut server = Socket::bind(SocketAddr::new(bind, 0)).unwrap();
            let others = ["192.0.2.77".parse().unwrap(), ip];
            assert_eq!(server.send_apart([ip, ip].into_iter().chain(others)), 1);
            let address = SocketAddr::new(ip, server.local().port());
            let came_to = bind.is_unspecified().then_some(ip);
            let other = Socket::bind(SocketAddr::new(ip, 0)).unwrap();
            let mut out = SendBatch::new(64 << 10, 16, true);
            for round in 0..3 {
                send(&mut out, &server, (ip, other.local()), &[round, 1]);
                assert_eq!(take(&other), [(address, None, vec![round, 1])]);
                send(&mut out, &other, (ip, address), &[round, 2]);
                assert_eq!(take(&server), [(other.local(), came_to, vec![round, 2])]);
            }
            assert_eq!((out.counters().refused, out.counters().dropped), (0, 0));
        }
    }

    #[test]
    fn a_group_shares_a_port_and_a_sender_is_always_given_to_the_same_socket() {
        for (bind, ip) in [
            ("127.0.0.1", "127.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("::", "127.0.0.1"),
            ("::", "::1"),
        ] {
            let (bind, ip): (IpAddr, IpAddr) = (bind.parse().unwrap(), ip.parse().unwrap());
            let mut group = Socket::bind_group(SocketAddr::new(bind, 0), 4).unwrap();
            assert_eq!(Socket::send_group_apart(&mut group, [ip]), 1);
            let server = SocketAddr::new(ip, group.first().unwrap().local().port());
            let clients: Vec<UdpSocket> = (0..40)
                .map(|_| UdpSocket::bind(SocketAddr::new(ip, 0)).unwrap())
                .collect();
            for round in 0..3 {
                for client in &clients {
                    client.send_to(&[round], server).unwrap();
                }
            }
            let mut batch = ReceiveBatch::new(128, ReceiveBatch::WHOLE);
            let mut by_socket = Vec::new();
            for socket in &group {
                let received = batch.receive(socket).unwrap();
                let remotes: Vec<SocketAddr> = batch.iter(received).map(|m| m.remote).collect();
                by_socket.push(remotes);
            }
            let all: usize = by_socket.iter().map(Vec::len).sum();
            assert_eq!(all, 3 * clients.len(), "{bind}");
            for client in &clients {
                let client = client.local_addr().unwrap();
                let times = |remotes: &Vec<SocketAddr>| {
                    remotes.iter().filter(|remote| **remote == client).count()
                };
                let mut times: Vec<usize> = by_socket.iter().map(times).collect();
                times.sort_unstable();
                assert_eq!(times, [0, 0, 0, 3], "{bind}");
            }
            let used = by_socket.iter().filter(|remotes| !remotes.is_empty());
            assert!(used.count() > 1, "{bind}: of 40 senders");
            // Each of them sends from the port.
            let other = Socket::bind(SocketAddr::new(ip, 0)).unwrap();
            let mut out = SendBatch::new(64 << 10, 16, true);
            for socket in &group {
                send(&mut out, socket, (ip, other.local()), &[7]);
                assert_eq!(take(&other), [(server, None, vec![7])]);
            }
        }
    }

    #[test]
    fn a_group_takes_no_port_of_others_and_lets_none_in() {
        let taken = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(Socket::bind_group(taken.local(), 2).is_err());
        let mut group = Socket::bind_group("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let address = group.first().unwrap().local();
        Socket::send_group_apart(&mut group, [address.ip()]);
        assert!(Socket::bind(address).is_err());
        assert!(Socket::bind_group(address, 2).is_err());
    }

    #[test]
    fn a_batch_leaves_from_several_addresses_in_order() {
        let mut server = Socket::bind("[::]:0".parse().unwrap()).unwrap();
        let ip = |n: u8| IpAddr::from([127, 0, 0, n]);
        assert_eq!(server.send_apart([ip(1), ip(2)]), 2);
        let other = Socket::bind("127.0.0.9:0".parse().unwrap()).unwrap();
        let mut out = SendBatch::new(64 << 10, 16, true);
        // The third and the fourth have no dedicated socket.
        let from = [1, 1, 2, 3, 4, 1];
        for (n, from) in from.iter().enumerate() {
            out.room(&server).fill(n as u8);
            let destination = out.destination(ip(*from), other.local());
            out.commit(10, &destination);
            out.part();
        }
        out.flush(&server);
        assert_eq!(out.counters().calls, 4);
        let mut got = Vec::new();
        while got.len() < from.len() {
            got.extend(
                take(&other)
                    .into_iter()
                    .map(|(from, _, data)| (from.ip(), data)),
            );
        }
        let sent = from
            .iter()
            .enumerate()
            .map(|(n, from)| (ip(*from), vec![n as u8; 10]));
        assert!(got.into_iter().eq(sent));
    }

    #[test]
    fn errors_are_kept_for_sockets_that_are_not_connected() {
        for (own, closed) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0")] {
            let bind = |address: &str| std::net::UdpSocket::bind(address).unwrap();
            let (socket, to) = (bind(own), bind(closed).local_addr().unwrap());
            assert_eq!(take_errors(&socket, 8), 0);
            assert!(keep_errors(&socket));
            let (mut errors, mut sent) = (0, 0);
            while errors < 3 {
                // The next send also reports a kept error once.
                sent += usize::from(socket.send_to(b"nobody", to).is_ok());
                errors += take_errors(&socket, 8);
            }
            assert!(sent >= 3);
            assert_eq!(take_errors(&socket, 8), 0);
        }
    }

    #[test]
    fn a_receive_buffer_is_as_large_as_the_kernel_says() {
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let small = ask_receive_buffer(&socket, 64 << 10);
        assert_eq!(small, 64 << 10);
        let large = ask_receive_buffer(&socket, 32 << 20);
        assert!(large > small && large <= 32 << 20, "{large}");
    }

    #[test]
    fn the_port_is_for_nobody_else_afterwards() {
        for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let mut server = Socket::bind(bind.parse().unwrap()).unwrap();
            let ip = IpAddr::from([127, 0, 0, 1]);
            assert_eq!(server.send_apart([ip]), 1);
            for ip in [ip, IpAddr::from([127, 0, 0, 2])] {
                let address = SocketAddr::new(ip, server.local().port());
                let intruder = open(address).unwrap();
                set_option(&intruder, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).unwrap();
                let bound = intruder.bind(&address.into());
                assert!(
                    bound.is_err() || server.local().ip() == IpAddr::from([127, 0, 0, 1]),
                    "{bind} {ip}"
                );
            }
        }
    }

    #[test]
    fn addresses_of_others_get_no_socket() {
        let mut server = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let addresses = ["127.0.0.2", "0.0.0.0", "::1"];
        let addresses = addresses.map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(server.send_apart(addresses), 0);
    }
}
