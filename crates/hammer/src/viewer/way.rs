//! How a participant's datagrams leave and come: by a socket of its own, or by its thread's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use portunus_udp::{
    Destination, Exit, Outlet, SendBatch, Socket, ask_receive_buffer, enable_gro, enable_timestamps,
};

use super::addresses::Addresses;

/// Asked of the kernel for each socket: holds a second of 8 Mbit/s with what the kernel adds to it.
const OWN_BUFFER_BYTES: usize = 4 << 20;

/// Asked of the kernel for a socket that many share.
const SHARED_BUFFER_BYTES: usize = 512 << 20;

/// A participant's way to the server.
#[derive(Debug)]
pub(super) enum Way {
    /// A socket of its own.
    Own(UdpSocket),
    /// Its thread's socket, with an address of its own.
    Shared(Arc<Socket>, IpAddr),
}

impl Way {
    /// Where datagrams go to reach `to`.
    pub(super) fn destination(&self, out: &mut SendBatch, to: SocketAddr) -> Destination {
        match self {
            Self::Own(_) => out.destination(None, to),
            Self::Shared(_, from) => out.destination(*from, to),
        }
    }

    /// What was put into the batch may leave: at once by a socket of its own, else when the thread is
    /// through with all.
    pub(super) fn leave(&self, out: &mut SendBatch) {
        if let Self::Own(socket) = self {
            // What the kernel does not take is lost, and missed by whoever expects it.
            out.flush(socket);
        }
    }
}

impl AsFd for Way {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(socket) => socket.as_fd(),
            Self::Shared(socket, _) => socket.as_fd(),
        }
    }
}

impl Outlet for Way {
    fn exit(&self, from: Option<IpAddr>) -> Exit<'_> {
        match self {
            Self::Own(socket) => socket.exit(from),
            Self::Shared(socket, _) => socket.exit(from),
        }
    }
}

/// A thread's socket, and whose addresses are whose.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) socket: Arc<Socket>,
    addresses: Addresses,
    /// By the places of addresses: the participants' keys.
    keys: Vec<Option<usize>>,
}

impl Shared {
    /// A socket for all of `addresses`, on a port of its own.
    pub(super) fn new(addresses: Addresses) -> io::Result<Self> {
        let socket = Socket::bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        tune(&socket, SHARED_BUFFER_BYTES);
        enable_timestamps(&socket);
        Ok(Self {
            socket: Arc::new(socket),
            addresses,
            keys: Vec::new(),
        })
    }

    /// Whose the address is.
    #[inline]
    pub(super) fn key(&self, address: IpAddr) -> Option<usize> {
        let place = self.addresses.place(address)?;
        self.keys.get(place).copied().flatten()
    }

    /// From now on it is the one's with this key, or nobody's.
    pub(super) fn assign(&mut self, address: IpAddr, key: Option<usize>) {
        let Some(place) = self.addresses.place(address) else {
            return;
        };
        if place >= self.keys.len() {
            self.keys.resize(place + 1, None);
        }
        if let Some(slot) = self.keys.get_mut(place) {
            *slot = key;
        }
    }
}

/// A socket for one participant.
pub(super) fn own_socket(local: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((local, 0))?;
    socket.set_nonblocking(true)?;
    tune(&socket, OWN_BUFFER_BYTES);
    Ok(socket)
}

/// Sets what is of use and no harm if the kernel refuses it.
fn tune(socket: &impl AsFd, buffer_bytes: usize) {
    enable_gro(socket);
    ask_receive_buffer(socket, buffer_bytes);
}
