//! Sockets of ingests. The control plane binds them, so that errors are known immediately.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use portunus_config::Probe;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// The size of the receive buffer to request.
const BUFFER_BYTES: usize = 4 << 20;

/// Where an ingest listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestBind {
    /// The UDP port. 0 chooses a free one from `range`.
    pub port: u16,
    /// Ports to choose from.
    pub range: RangeInclusive<u16>,
    /// The name or address of the interface to listen on, or to join the group on. `None` means
    /// all, IPv4 and IPv6.
    pub interface: Option<String>,
    /// An IPv4 multicast group to join, on a fixed port that others on the machine may share.
    /// Datagrams to other destinations are not received.
    pub multicast: Option<Ipv4Addr>,
}

impl IngestBind {
    /// Listens on all interfaces. Port 0 means a free one from 10,000 to 60,000.
    pub fn new(port: u16) -> Self {
        Self {
            port,
            range: 10_000..=60_000,
            interface: None,
            multicast: None,
        }
    }
}

/// Why an ingest cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// There is no such interface.
    #[error("there is no interface or address {0}")]
    Interface(String),
    /// The address is not that of a group, or the interface has no IPv4 address.
    #[error("{0} is no IPv4 multicast group")]
    Group(Ipv4Addr),
    /// The interface has no IPv4 address, which multicast needs.
    #[error("multicast needs an IPv4 address, and {0} has none")]
    NoIpv4(String),
    /// There is a group, but no port.
    #[error("a multicast group needs a fixed port")]
    GroupPort,
    /// No port of the range is free.
    #[error("no port from {start} to {end} is free")]
    NoPort {
        /// The first port.
        start: u16,
        /// The last port.
        end: u16,
    },
    /// The system refused the socket.
    #[error("cannot listen on {address}/udp: {error}")]
    Socket {
        /// The address to bind.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
}

/// A bound socket for an ingest.
#[derive(Debug)]
pub struct IngestSocket {
    socket: UdpSocket,
    local: SocketAddr,
}

impl IngestSocket {
    /// Binds a socket.
    pub fn bind(bind: IngestBind) -> Result<Self, IngestError> {
        let interface = bind.interface.as_deref().filter(|name| !name.is_empty());
        if let Some(group) = bind.multicast {
            return Self::join(group, bind.port, interface);
        }
        let only = interface.map(|name| address_of(name, false)).transpose()?;
        if bind.port > 0 {
            return open(only, bind.port);
        }
        let (start, end) = bind.range.into_inner();
        let count = u32::from(end.saturating_sub(start)) + 1;
        let first: u32 = rand::random_range(0..count);
        for n in 0..count {
            let port = u32::from(start) + (first + n) % count;
            match open(only, port as u16) {
                Err(IngestError::Socket { error, .. })
                    if error.kind() == io::ErrorKind::AddrInUse
                        || error.kind() == io::ErrorKind::PermissionDenied => {}
                bound => return bound,
            }
        }
        Err(IngestError::NoPort { start, end })
    }

    /// The bound address, which is the group if it joined one.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Receives from `remote` only, and sends to it.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        let remote = match remote.ip() {
            IpAddr::V4(ip) if self.local.is_ipv6() => (ip.to_ipv6_mapped(), remote.port()).into(),
            IpAddr::V4(_) | IpAddr::V6(_) => remote,
        };
        self.socket.connect(remote)
    }

    /// Sets the DSCP (RFC 2474), 0 to 63, of what is sent, if the system permits it.
    pub fn set_dscp(&self, dscp: u8) {
        let field = u32::from(dscp.min(63)) << 2;
        let socket = SockRef::from(&self.socket);
        // A socket of both families sends to both.
        let v6 = self.local.is_ipv6().then(|| socket.set_tclass_v6(field));
        for set in [Some(socket.set_tos_v4(field)), v6].into_iter().flatten() {
            if let Err(error) = set {
                tracing::debug!(%error, dscp, "a DSCP is not set");
            }
        }
    }

    /// Returns another handle of the socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            local: self.local,
        })
    }

    /// The UDP port.
    pub fn port(&self) -> u16 {
        self.local.port()
    }

    fn join(group: Ipv4Addr, port: u16, interface: Option<&str>) -> Result<Self, IngestError> {
        if !group.is_multicast() {
            return Err(IngestError::Group(group));
        }
        if port == 0 {
            return Err(IngestError::GroupPort);
        }
        let on = match interface.map(|name| address_of(name, true)).transpose()? {
            Some(IpAddr::V4(address)) => address,
            Some(IpAddr::V6(_)) => {
                return Err(IngestError::NoIpv4(
                    interface.unwrap_or_default().to_owned(),
                ));
            }
            None => {
                tracing::warn!(%group, "no interface is named for the multicast group: the system chooses one");
                Ipv4Addr::UNSPECIFIED
            }
        };
        let address = SocketAddr::from((group, port));
        let bound = socket(address).and_then(|socket| {
            socket.set_reuse_address(true)?;
            // Receives only from its own group, and not from groups that other sockets joined.
            socket.set_multicast_all_v4(false)?;
            socket.bind(&address.into())?;
            socket.join_multicast_v4(&group, &on)?;
            Self::new(socket)
        });
        bound.map_err(|error| IngestError::Socket { address, error })
    }

    fn new(socket: Socket) -> io::Result<Self> {
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        Ok(Self { socket, local })
    }

    /// Sends a datagram. An error means that it is lost.
    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.socket.send_to(datagram, to)
    }
}

/// A socket that several ingests or forwarders share.
#[derive(Debug, Clone)]
pub struct SharedSocket(Arc<IngestSocket>);

impl SharedSocket {
    /// The UDP port.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// The bound address, which is the group if it joined one.
    pub fn local(&self) -> SocketAddr {
        self.0.local()
    }

    /// Sends a datagram to the connected address.
    pub(crate) fn send_connected(&self, datagram: &[u8]) -> io::Result<usize> {
        self.0.socket.send(datagram)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends a datagram. An error means that it is lost.
    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.0.send(datagram, to)
    }
}

impl From<IngestSocket> for SharedSocket {
    fn from(socket: IngestSocket) -> Self {
        SharedSocket(Arc::new(socket))
    }
}

impl AsFd for SharedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for IngestSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn open(only: Option<IpAddr>, port: u16) -> Result<IngestSocket, IngestError> {
    let address = SocketAddr::new(only.unwrap_or(Ipv6Addr::UNSPECIFIED.into()), port);
    let bind = |address: SocketAddr| {
        let socket = socket(address)?;
        if address.is_ipv6() {
            socket.set_only_v6(only.is_some())?;
        }
        socket.bind(&address.into())?;
        IngestSocket::new(socket)
    };
    let bound = bind(address).or_else(|error| match error.raw_os_error() {
        // The kernel has no IPv6.
        Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) if only.is_none() => {
            bind((Ipv4Addr::UNSPECIFIED, port).into())
        }
        _ => Err(error),
    });
    bound.map_err(|error| IngestError::Socket { address, error })
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_nonblocking(true)?;
    portunus_udp::ask_receive_buffer(&socket, BUFFER_BYTES);
    Ok(socket)
}

/// Returns the address of an interface, given by its address or name. Prefers IPv4.
pub fn interface_address(name: &str) -> Result<IpAddr, IngestError> {
    address_of(name, false)
}

/// Checks that there is an interface with the address or name of a key.
pub fn probe_interface(probe: &mut Probe, key: &str, name: &str) {
    if !name.is_empty()
        && let Err(error) = interface_address(name)
    {
        probe.error(key, error);
    }
}

/// Returns the address of an interface, given by its address or name. Prefers or requires IPv4.
fn address_of(name: &str, only_v4: bool) -> Result<IpAddr, IngestError> {
    let unknown = || IngestError::Interface(name.to_owned());
    let interfaces = if_addrs::get_if_addrs().map_err(|_| unknown())?;
    if let Ok(address) = name.parse::<IpAddr>() {
        let known = interfaces.iter().any(|i| i.ip() == address);
        return (known || address.is_unspecified())
            .then_some(address)
            .ok_or_else(unknown);
    }
    let mut of_name = interfaces.iter().filter(|i| i.name == name).peekable();
    if of_name.peek().is_none() {
        return Err(unknown());
    }
    of_name
        .map(|interface| interface.ip())
        .filter(|ip| ip.is_ipv4() || !only_v4)
        .min_by_key(IpAddr::is_ipv6)
        .ok_or_else(|| IngestError::NoIpv4(name.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn a_port_in_use_is_told() {
        let first = IngestSocket::bind(IngestBind::new(0)).unwrap();
        let second = IngestSocket::bind(IngestBind::new(first.port()));
        assert!(matches!(second, Err(IngestError::Socket { .. })));
        // Of a range that has no other port, none is free.
        let range = IngestBind {
            range: first.port()..=first.port(),
            ..IngestBind::new(0)
        };
        assert!(matches!(
            IngestSocket::bind(range),
            Err(IngestError::NoPort { .. })
        ));
    }

    #[test]
    fn interfaces_are_found_by_name_and_by_address() {
        let on = |interface: &str| {
            let interface = Some(interface.to_owned());
            IngestSocket::bind(IngestBind {
                interface,
                ..IngestBind::new(0)
            })
        };
        assert!(on("lo").unwrap().local().ip().is_loopback());
        assert_eq!(
            on("127.0.0.1").unwrap().local().ip().to_string(),
            "127.0.0.1"
        );
        assert!(matches!(on("none7"), Err(IngestError::Interface(_))));
        assert!(matches!(on("192.0.2.77"), Err(IngestError::Interface(_))));
    }

    #[test]
    fn groups_are_checked() {
        let join = |group: &str, port| {
            IngestSocket::bind(IngestBind {
                multicast: Some(group.parse().unwrap()),
                interface: Some("lo".to_owned()),
                ..IngestBind::new(port)
            })
        };
        assert!(matches!(
            join("192.0.2.1", 5_000),
            Err(IngestError::Group(_))
        ));
        assert!(matches!(join("239.1.2.3", 0), Err(IngestError::GroupPort)));
        let port = IngestSocket::bind(IngestBind::new(0)).unwrap().port();
        let (one, two) = (join("239.1.2.3", port), join("239.1.2.3", port));
        assert_eq!(one.unwrap().local().ip().to_string(), "239.1.2.3");
        two.unwrap();
    }

    #[test]
    fn datagrams_to_other_groups_on_the_port_are_not_heard() {
        let port = IngestSocket::bind(IngestBind::new(0)).unwrap().port();
        let join = |group: &str| {
            let bind = IngestBind {
                multicast: Some(group.parse().unwrap()),
                interface: Some("lo".to_owned()),
                ..IngestBind::new(port)
            };
            IngestSocket::bind(bind).unwrap()
        };
        let (one, two) = (join("239.1.2.3"), join("239.1.2.4"));
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        sender.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        for group in ["239.1.2.4", "239.1.2.3"] {
            let to: SocketAddr = format!("{group}:{port}").parse().unwrap();
            sender.send_to(group.as_bytes(), &to.into()).unwrap();
        }
        let heard = |socket: &IngestSocket| {
            socket.socket.set_nonblocking(false).unwrap();
            let timeout = Some(std::time::Duration::from_secs(5));
            socket.socket.set_read_timeout(timeout).unwrap();
            let mut buffer = [0; 32];
            let len = socket.socket.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(buffer.get(..len).unwrap()).into_owned()
        };
        assert_eq!(heard(&one), "239.1.2.3");
        assert_eq!(heard(&two), "239.1.2.4");
    }
}
