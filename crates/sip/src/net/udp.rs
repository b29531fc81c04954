//! Datagrams, and the errors of those that did not arrive.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::flow::{Flow, Transport};
use crate::framing::datagram;
use crate::message::MAX_MESSAGE;

use super::sockets::Arrival;

/// The socket buffers to ask the kernel for, so that a burst waits there.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The buffer for the kernel's report of a lost datagram.
const CONTROL_ROOM: usize = 512;

/// Binds a socket that gets ICMP errors.
pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // A smaller buffer works, too.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
    }
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Sends a datagram at once.
///
/// # Errors
/// It cannot be sent there. A full buffer is no error: the datagram is lost as on the network.
pub(super) fn send(socket: &UdpSocket, bytes: &[u8], remote: SocketAddr) -> io::Result<()> {
    // tokio would wait for readiness before its first attempt.
    let socket = SockRef::from(socket);
    for _ in 0..8 {
        match socket.send_to(bytes, &remote.into()) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // Errors of earlier datagrams to others come first, once each.
            Err(error) if is_icmp(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether an error may be about an earlier datagram.
fn is_icmp(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable
    )
}

/// Receives until nobody listens.
pub(super) async fn receive(socket: Arc<UdpSocket>, local: SocketAddr, up: mpsc::Sender<Arrival>) {
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        let Ok(ready) = socket.ready(Interest::READABLE | Interest::ERROR).await else {
            return;
        };
        if ready.is_error() {
            while let Ok(lost) = socket.try_io(Interest::ERROR, || lost(&socket)) {
                if let Some(remote) = lost
                    && up
                        .send(Arrival::Unreachable(Transport::Udp, remote))
                        .await
                        .is_err()
                {
                    return;
                }
            }
        }
        // The error of a sent datagram is reported here, too; the error queue has its address.
        let Ok((length, remote)) = socket.try_recv_from(&mut buffer) else {
            continue;
        };
        let Some(message) = buffer.get(..length).and_then(datagram) else {
            continue;
        };
        let flow = Flow {
            transport: Transport::Udp,
            local,
            remote,
            connection: None,
        };
        if up
            .send(Arrival::Message(flow, message.to_vec()))
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Returns the address of the next datagram that did not arrive, or `Ok(None)` for another report
/// of the kernel.
fn lost(socket: &UdpSocket) -> io::Result<Option<SocketAddr>> {
    let mut control = vec![0; CONTROL_ROOM];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let told = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut [], Some(&mut control), flags)?;
    let errors = told.cmsgs().map(|all| {
        all.filter_map(|one| match one {
            ControlMessageOwned::Ipv4RecvErr(error, _)
            | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(io::Error::from_raw_os_error(
                i32::try_from(error.ee_errno).unwrap_or_default(),
            )),
            _ => None,
        })
        .any(|error| is_icmp(&error) || error.kind() == ErrorKind::NetworkUnreachable)
    });
    // The address in the report is that of the datagram, not of the host that sent the ICMP error.
    let address = told.address.and_then(|address| {
        address
            .as_sockaddr_in()
            .map(|v4| SocketAddr::new(IpAddr::V4(v4.ip()), v4.port()))
            .or_else(|| {
                address
                    .as_sockaddr_in6()
                    .map(|v6| SocketAddr::new(IpAddr::V6(v6.ip()), v6.port()))
            })
    });
    Ok(if errors.unwrap_or(false) {
        address
    } else {
        None
    })
}
