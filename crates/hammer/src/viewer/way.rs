//! The way of a participant's datagrams: a socket of its own, or its thread's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use portunus_udp::{
    Destination, Exit, Outlet, SendBatch, Socket, ask_receive_buffer, enable_gro, enable_timestamps,
};

use crate::machine::Addresses;

/// The buffer requested for each socket. It holds a second of 8 Mbit/s with the kernel's overhead.
const OWN_BUFFER_BYTES: usize = 4 << 20;

/// The buffer requested for a shared socket.
const SHARED_BUFFER_BYTES: usize = 512 << 20;

/// A participant's way to the server.
#[derive(Debug)]
pub(super) enum Way {
    /// A socket of its own.
    Own(UdpSocket),
    /// Its thread's sockets, with an address of its own.
    Shared(Arc<Sockets>, IpAddr),
}

/// The sockets that the participants of a thread share, each with addresses of its own.
#[derive(Debug)]
pub(super) struct Sockets {
    /// The socket of participants that only count.
    pub(super) heads: Socket,
    /// The socket of participants that read packets whole.
    pub(super) whole: Socket,
    addresses: Addresses,
}

impl Way {
    /// Returns where datagrams to `to` are sent.
    pub(super) fn destination(&self, out: &mut SendBatch, to: SocketAddr) -> Destination {
        match self {
            Self::Own(_) => out.destination(None, to),
            Self::Shared(_, from) => out.destination(*from, to),
        }
    }

    /// Sends the batch: at once by a socket of its own, else when the thread is done with all
    /// participants.
    pub(super) fn leave(&self, out: &mut SendBatch) {
        if let Self::Own(socket) = self {
            // A packet that the kernel does not take is lost, and is missed by its receiver.
            out.flush(socket);
        }
    }
}

impl AsFd for Way {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(socket) => socket.as_fd(),
            Self::Shared(sockets, address) => sockets.of(Some(*address)).as_fd(),
        }
    }
}

impl Outlet for Way {
    fn exit(&self, from: Option<IpAddr>) -> Exit<'_> {
        match self {
            Self::Own(socket) => socket.exit(from),
            Self::Shared(sockets, _) => sockets.exit(from),
        }
    }
}

impl Sockets {
    /// Binds each socket to all addresses, on a port of its own.
    fn bind(addresses: Addresses) -> io::Result<Self> {
        let bind = || {
            let socket = Socket::bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
            tune(&socket, SHARED_BUFFER_BYTES);
            enable_timestamps(&socket);
            io::Result::Ok(socket)
        };
        Ok(Self {
            heads: bind()?,
            whole: bind()?,
            addresses,
        })
    }

    /// Returns the socket of an address.
    fn of(&self, address: Option<IpAddr>) -> &Socket {
        let reads_all = address.is_some_and(|address| self.addresses.reads_all(address));
        if reads_all { &self.whole } else { &self.heads }
    }
}

impl Outlet for Sockets {
    fn exit(&self, from: Option<IpAddr>) -> Exit<'_> {
        self.of(from).exit(from)
    }
}

/// The ports of a thread's sockets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) heads: u16,
    pub(super) whole: u16,
}

/// A thread's sockets, and the owners of addresses.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) sockets: Arc<Sockets>,
    /// The participants' keys, by the places of addresses.
    keys: [Vec<Option<usize>>; 2],
}

impl Shared {
    pub(super) fn new(addresses: Addresses) -> io::Result<Self> {
        Ok(Self {
            sockets: Arc::new(Sockets::bind(addresses)?),
            keys: Default::default(),
        })
    }

    pub(super) fn ports(&self) -> Ports {
        Ports {
            heads: self.sockets.heads.local().port(),
            whole: self.sockets.whole.local().port(),
        }
    }

    /// Returns the owner of an address.
    #[inline]
    pub(super) fn key(&self, address: IpAddr) -> Option<usize> {
        let (half, place) = self.sockets.addresses.place(address)?;
        let [heads, whole] = &self.keys;
        let keys = if half { whole } else { heads };
        keys.get(place).copied().flatten()
    }

    /// Assigns the address to the participant with this key, or frees it.
    pub(super) fn assign(&mut self, address: IpAddr, key: Option<usize>) {
        let Some((half, place)) = self.sockets.addresses.place(address) else {
            return;
        };
        let [heads, whole] = &mut self.keys;
        let keys = if half { whole } else { heads };
        if place >= keys.len() {
            keys.resize(place + 1, None);
        }
        if let Some(slot) = keys.get_mut(place) {
            *slot = key;
        }
    }
}

/// Opens a socket for one participant.
pub(super) fn own_socket(local: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((local, 0))?;
    socket.set_nonblocking(true)?;
    tune(&socket, OWN_BUFFER_BYTES);
    Ok(socket)
}

/// Sets useful options. It does not matter if the kernel refuses them.
fn tune(socket: &impl AsFd, buffer_bytes: usize) {
    enable_gro(socket);
    ask_receive_buffer(socket, buffer_bytes);
}
