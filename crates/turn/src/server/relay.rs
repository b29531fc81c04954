//! Relay sockets: the addresses of clients towards the media plane.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

use super::sockets;
use crate::counters::{Counters, count};

/// The bytes that the kernel buffers for a relay socket.
const BUFFER: usize = 512 << 10;

/// Opens a relay socket on a port that the kernel chooses. Returns `None` if that fails, which is
/// logged.
pub(super) fn open(ip: IpAddr) -> Option<(UdpSocket, SocketAddr)> {
    let opened = sockets::udp(SocketAddr::new(ip, 0), BUFFER).and_then(|socket| {
        let address = socket.local_addr()?;
        Ok((socket, address))
    });
    opened
        .inspect_err(|error| tracing::warn!(%ip, %error, "cannot open a relay socket of TURN"))
        .ok()
}

/// Sends a datagram to the media plane. It is dropped if the socket does not accept it.
pub(super) fn send(socket: &UdpSocket, to: SocketAddr, data: &[u8], counters: &Counters) {
    match socket.try_send_to(data, to) {
        Ok(_) => counters.relayed_to_media(data.len()),
        Err(error) => dropped(&error, counters),
    }
}

pub(super) fn dropped(error: &io::Error, counters: &Counters) {
    count(&counters.dropped);
    if error.kind() != io::ErrorKind::WouldBlock {
        tracing::debug!(%error, "a datagram of TURN was not sent");
    }
}
