//! Binding the ports of TURN.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};

use super::StartError;
use crate::{MediaAddresses, TurnConfig};

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1_024;
/// The bytes that the kernel buffers for the socket of all clients.
const BUFFER: usize = 4 << 20;
/// The attempts to find a port that is free for both UDP and TCP, if the kernel chooses it.
const TRIES: usize = 16;

/// Bound sockets that are not served yet.
pub(super) struct Sockets {
    pub(super) udp: Vec<UdpSocket>,
    pub(super) tcp: Vec<TcpListener>,
    pub(super) tls: Vec<TcpListener>,
}

/// The bound addresses of the sockets.
#[derive(Debug)]
pub(super) struct Addresses {
    pub(super) udp: Vec<SocketAddr>,
    pub(super) tcp: Vec<SocketAddr>,
    pub(super) tls: Vec<SocketAddr>,
}

impl Sockets {
    pub(super) fn bind(config: &TurnConfig, media: &MediaAddresses) -> Result<Self, StartError> {
        let mut tries = TRIES;
        let (udp, tcp) = loop {
            match plain(config, media) {
                Err(StartError::Listen { error, .. })
                    if config.port == 0 && tries > 0 && is_taken(&error) =>
                {
                    tries -= 1;
                }
                outcome => break outcome?,
            }
        };
        let tls = match config.tls {
            true => listeners(&config.bind, config.tls_port, "turn.tls_port")?,
            false => Vec::new(),
        };
        Ok(Sockets { udp, tcp, tls })
    }

    /// Returns the bound addresses.
    pub(super) fn addresses(&self) -> Addresses {
        let of = |listeners: &[TcpListener]| {
            let addresses = listeners.iter().filter_map(|it| it.local_addr().ok());
            addresses.collect()
        };
        let udp = self.udp.iter().filter_map(|it| it.local_addr().ok());
        Addresses {
            udp: udp.collect(),
            tcp: of(&self.tcp),
            tls: of(&self.tls),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// Binds UDP and TCP on the same port.
fn plain(
    config: &TurnConfig,
    media: &MediaAddresses,
) -> Result<(Vec<UdpSocket>, Vec<TcpListener>), StartError> {
    let tcp = listeners(&config.bind, config.port, "turn.port")?;
    let bound = tcp.first().and_then(|it| it.local_addr().ok());
    let port = bound.map_or(config.port, |it| it.port());
    // A response has to come from the address of the request, so each address has a socket.
    let ips = match config.bind.is_empty() {
        true => media.bound_ips(),
        false => config.bind.clone(),
    };
    let mut sockets = Vec::new();
    for ip in ips {
        let address = SocketAddr::new(ip, port);
        let socket = udp(address, BUFFER).map_err(|error| StartError::Listen {
            address,
            key: "turn.port",
            error,
        })?;
        sockets.push(socket);
    }
    Ok((sockets, tcp))
}

fn listeners(
    bind: &[IpAddr],
    port: u16,
    key: &'static str,
) -> Result<Vec<TcpListener>, StartError> {
    let failed = |address| {
        move |error| StartError::Listen {
            address,
            key,
            error,
        }
    };
    if bind.is_empty() {
        // On Linux, an IPv6 wildcard socket accepts IPv4 too, unless the machine has no IPv6.
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let any_v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let listener = match tcp(any) {
            Err(error) if is_taken(&error) => Err(failed(any)(error)),
            Err(_) => tcp(any_v4).map_err(failed(any_v4)),
            Ok(listener) => Ok(listener),
        };
        return Ok(vec![listener?]);
    }
    let mut listeners = Vec::new();
    let mut port = port;
    for ip in bind {
        let address = SocketAddr::new(*ip, port);
        let listener = tcp(address).map_err(failed(address))?;
        // The kernel chooses only the first port.
        port = listener.local_addr().map_or(port, |it| it.port());
        listeners.push(listener);
    }
    Ok(listeners)
}

fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address, Type::STREAM)?;
    // Connections of an ended server do not block the port.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Binds a UDP socket with a kernel buffer of up to `buffer` bytes.
pub(super) fn udp(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = socket(address, Type::DGRAM)?;
    socket.set_recv_buffer_size(buffer)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

fn socket(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    Ok(socket)
}
