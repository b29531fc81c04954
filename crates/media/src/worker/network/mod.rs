//! The network of a worker: the UDP socket with its queued datagrams, TCP connections, and the
//! allocation at a TURN server.

mod allocation;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use portunus_rtc::streams::NtpClock;
use portunus_rtc::{Carrier, SelectedPair};
use portunus_rtp::extension::AbsSendTime;
use portunus_turn_client::Channel;

use super::tcp::{PipeKey, Pipes};
use crate::sys::{self, Destination, MediaSocket, ReceiveBatch, SendBatch, SendCounters};

pub(super) use allocation::Allocation;

/// The poll's token for the UDP socket.
const SOCKET: Token = Token(0);

/// The way to a peer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// By UDP.
    Udp(Destination),
    /// By a TCP connection.
    Tcp(PipeKey),
    /// Through a TURN server.
    Turn(Channel),
}

/// What a peer uses instead of plain UDP, if it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Its TCP connection.
    pub(super) pipe: Option<PipeKey>,
    /// Its channel at the TURN server.
    pub(super) channel: Option<Channel>,
}

/// Receives and sends datagrams. Each is written into [`Network::room`] and queued by
/// [`Network::commit`]. They leave in that order, at the latest by [`Network::flush`].
pub(super) struct Network {
    socket: MediaSocket,
    out: SendBatch,
    clock: NtpClock,
    /// The TCP connections of peers.
    pub(super) pipes: Pipes,
    /// The allocation at a TURN server.
    pub(super) turn: Allocation,
}

impl Network {
    /// Returns the network of a worker: a UDP socket, and up to `most_pipes` TCP connections from
    /// the listener or from another worker.
    pub(super) fn new(
        worker: u16,
        socket: MediaSocket,
        listener: Option<TcpListener>,
        most_pipes: Option<usize>,
        clock: NtpClock,
        turn: Allocation,
    ) -> Self {
        let gro = sys::enable_gro(&socket);
        let gso = socket.probe_gso();
        tracing::debug!(worker, gro, gso, local = %socket.local(), "media worker");
        Self {
            socket,
            out: sys::send_batch(gso),
            clock,
            pipes: Pipes::new(listener, most_pipes),
            turn,
        }
    }

    /// Registers the sockets with the poll.
    pub(super) fn listen(&mut self, registry: &Registry) -> io::Result<()> {
        let fd = self.socket.raw_fd();
        registry.register(&mut SourceFd(&fd), SOCKET, Interest::READABLE)?;
        self.pipes.listen(registry)
    }

    /// The address of the UDP socket.
    pub(super) fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Receives messages by UDP. Returns their number.
    pub(super) fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(&self.socket)
    }

    /// The value of abs-send-time for packets that leave now.
    pub(super) fn send_time(&self, now: Instant) -> AbsSendTime {
        AbsSendTime::from_duration(self.clock.since_1900(now))
    }

    /// Returns the way to a peer with this selected pair. `link` is what it uses instead of plain
    /// UDP.
    #[inline]
    pub(super) fn way(&mut self, pair: &SelectedPair, link: Link) -> Option<Way> {
        match pair.carrier {
            Carrier::Udp if pair.is_relayed => link.channel.map(Way::Turn),
            Carrier::Udp => Some(self.way_by_udp(pair.local.ip(), pair.remote)),
            Carrier::Tcp => link.pipe.map(Way::Tcp),
        }
    }

    /// Returns the way between two addresses by UDP.
    #[inline]
    pub(super) fn way_by_udp(&mut self, from: IpAddr, to: SocketAddr) -> Way {
        Way::Udp(self.out.destination(from, to))
    }

    /// Sends queued datagrams if `bytes` more would not fit beside them, so that a peer's share of a
    /// frame leaves as one message.
    #[inline]
    pub(super) fn keep_together(&mut self, bytes: usize) {
        self.out.keep_together(bytes, &self.socket);
    }

    /// Returns room for a datagram.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.out.room(&self.socket)
    }

    /// Queues the first `len` bytes of the room as a datagram.
    #[inline]
    pub(super) fn commit(&mut self, len: usize, way: &Way) {
        match way {
            Way::Udp(destination) => self.out.commit(len, destination),
            Way::Tcp(pipe) => self.push(len, *pipe),
            Way::Turn(channel) => self.relay(len, *channel),
        }
    }

    #[inline(never)]
    fn push(&mut self, len: usize, pipe: PipeKey) {
        let room = self.out.room(&self.socket);
        self.pipes.push(pipe, room.get(..len).unwrap_or_default());
    }

    /// Sends queued datagrams.
    pub(super) fn flush(&mut self) {
        self.out.flush(&self.socket);
        self.flush_turn();
    }

    /// Returns what was sent by UDP.
    pub(super) fn counters(&self) -> SendCounters {
        self.out.counters()
    }
}

#[cfg(feature = "testing")]
impl Network {
    /// Keeps datagrams for [`Network::take_kept`] instead of sending them.
    pub(super) fn keep(&mut self) {
        self.out.diverted = Some(sys::Diverted::Kept(Vec::new()));
    }

    /// Drops datagrams instead of sending them.
    pub(super) fn drop(&mut self) {
        self.out.diverted = Some(sys::Diverted::Dropped);
    }

    /// Returns the datagrams kept since the last call.
    pub(super) fn take_kept(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.flush();
        match &mut self.out.diverted {
            Some(sys::Diverted::Kept(kept)) => std::mem::take(kept),
            _ => Vec::new(),
        }
    }
}
