//! The network of a worker: the UDP socket, what is to leave by it at the end of the turn, and the connections of TCP.

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
use super::turn::Allocation;
use crate::sys::{self, Destination, MediaSocket, ReceiveBatch, SendBatch, SendCounters};

/// The poll's token for the socket; the waker has the other.
const SOCKET: Token = Token(0);

/// The way to a peer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// As datagrams, to be sent with those of others.
    Udp(Destination),
    /// In a connection.
    Tcp(PipeKey),
    /// By way of a TURN server.
    Turn(Channel),
}

/// What a peer uses if its selected pair is not one of plain UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Its TCP connection.
    pub(super) pipe: Option<PipeKey>,
    /// Its channel at the TURN server.
    pub(super) channel: Option<Channel>,
}

/// Where datagrams come from and go to. Each is written into [`Network::room`] and confirmed by [`Network::commit`]; what
/// was committed leaves in that order, at the latest when it is flushed.
pub(super) struct Network {
    pub(super) socket: MediaSocket,
    pub(super) out: SendBatch,
    clock: NtpClock,
    /// Connections of peers.
    pub(super) pipes: Pipes,
    /// The relayed address.
    pub(super) turn: Allocation,
}

impl Network {
    /// That of the worker with this number: a UDP socket, and up to `most_pipes` connections, which come by the listener or from
    /// another worker.
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

    /// Has the poll tell of what comes.
    pub(super) fn listen(&mut self, registry: &Registry) -> io::Result<()> {
        let fd = self.socket.raw_fd();
        registry.register(&mut SourceFd(&fd), SOCKET, Interest::READABLE)?;
        self.pipes.listen(registry)
    }

    /// Where the UDP socket is bound.
    pub(super) fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Takes messages from the UDP socket; gives their number.
    pub(super) fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(&self.socket)
    }

    /// What abs-send-time says of what leaves now.
    pub(super) fn send_time(&self, now: Instant) -> AbsSendTime {
        AbsSendTime::from_duration(self.clock.since_1900(now))
    }

    /// The way to a peer whose selected pair this is; the link is what it uses if that is not plain UDP.
    #[inline]
    pub(super) fn way(&mut self, pair: &SelectedPair, link: Link) -> Option<Way> {
        match pair.carrier {
            Carrier::Udp if pair.is_relayed => link.channel.map(Way::Turn),
            Carrier::Udp => Some(self.way_by_udp(pair.local.ip(), pair.remote)),
            Carrier::Tcp => link.pipe.map(Way::Tcp),
        }
    }

    /// The way between two addresses, by UDP.
    #[inline]
    pub(super) fn way_by_udp(&mut self, from: IpAddr, to: SocketAddr) -> Way {
        Way::Udp(self.out.destination(from, to))
    }

    /// Room for a datagram.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.out.room(&self.socket)
    }

    /// The first `len` bytes of the room are a datagram that goes this way.
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

    /// Sends what was committed to UDP.
    pub(super) fn flush(&mut self) {
        self.out.flush(&self.socket);
        self.flush_turn();
    }

    /// What has left by UDP.
    pub(super) fn counters(&self) -> SendCounters {
        self.out.counters()
    }
}

/// Without a network.
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

    /// What was kept since the last call.
    pub(super) fn take_kept(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.flush();
        match &mut self.out.diverted {
            Some(sys::Diverted::Kept(kept)) => std::mem::take(kept),
            _ => Vec::new(),
        }
    }
}
