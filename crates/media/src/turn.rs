//! The allocation of a worker at a TURN server, as the control plane sees it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use portunus_turn_client::{Fault, Login};
use tokio::sync::watch;

use crate::sys::MediaSocket;

/// A TURN server, and the UDP socket by which a worker reaches it.
pub struct TurnServer {
    /// The address of the server, or of what carries messages to it by a stream.
    pub(crate) address: SocketAddr,
    pub(crate) socket: MediaSocket,
    pub(crate) login: Login,
}

impl TurnServer {
    /// Returns the server at `address`, which is reached from `from` by a port that the kernel
    /// chooses, with `login`.
    pub fn bind(address: SocketAddr, from: IpAddr, login: Login) -> io::Result<Self> {
        let socket = MediaSocket::bind(SocketAddr::new(from, 0))?;
        Ok(TurnServer {
            address,
            socket,
            login,
        })
    }

    /// The address from which it is reached.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }
}

impl fmt::Debug for TurnServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TurnServer");
        shown
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The state of a worker's allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TurnState {
    /// The worker has no server.
    #[default]
    Off,
    /// The server has not answered yet.
    Allocating,
    /// New peers are offered this relayed address.
    Allocated(SocketAddr),
    /// There is no allocation, or not any more. The worker does not retry by itself.
    Failed(Fault),
    /// There is no server. The text says why.
    Unavailable(String),
}

/// Totals of TURN servers since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelayedTotals {
    /// Workers with an allocation.
    pub allocations: u64,
    /// Addresses of peers with a channel.
    pub channels: u64,
    /// Datagrams received from peers.
    pub received_datagrams: u64,
    /// Datagrams sent to peers.
    pub sent_datagrams: u64,
    /// Datagrams dropped, because the server refuses the peer, there is no allocation or channel,
    /// or a stream to the server is full.
    pub dropped_datagrams: u64,
    /// Datagrams of the server that are not of TURN.
    pub refused_datagrams: u64,
}

/// The published state of a worker's allocation. Only the worker writes it.
#[derive(Debug, Default)]
pub(crate) struct TurnStatus {
    state: watch::Sender<TurnState>,
    channels: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
    /// Datagrams that a stream to a server dropped, which the worker does not see.
    stream_dropped: AtomicU64,
}

impl TurnStatus {
    pub(crate) fn set(&self, state: TurnState) {
        self.state.send_replace(state);
    }

    /// Resets the state, unless it says why there is no server.
    pub(crate) fn release(&self) {
        self.state.send_if_modified(|state| {
            let had_one = matches!(state, TurnState::Allocating | TurnState::Allocated(_));
            if had_one {
                *state = TurnState::Off;
            }
            had_one
        });
    }

    pub(crate) fn publish(&self, totals: &RelayedTotals) {
        self.channels.store(totals.channels, Relaxed);
        self.received.store(totals.received_datagrams, Relaxed);
        self.sent.store(totals.sent_datagrams, Relaxed);
        self.dropped.store(totals.dropped_datagrams, Relaxed);
        self.refused.store(totals.refused_datagrams, Relaxed);
    }

    pub(crate) fn dropped_by_stream(&self) {
        self.stream_dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn watch(&self) -> watch::Receiver<TurnState> {
        self.state.subscribe()
    }

    pub(crate) fn state(&self) -> TurnState {
        self.state.borrow().clone()
    }

    pub(crate) fn add_to(&self, sum: &mut RelayedTotals) {
        let is_allocated = matches!(*self.state.borrow(), TurnState::Allocated(_));
        sum.allocations += u64::from(is_allocated);
        sum.channels += self.channels.load(Relaxed);
        sum.received_datagrams += self.received.load(Relaxed);
        sum.sent_datagrams += self.sent.load(Relaxed);
        sum.dropped_datagrams += self.dropped.load(Relaxed);
        sum.dropped_datagrams += self.stream_dropped.load(Relaxed);
        sum.refused_datagrams += self.refused.load(Relaxed);
    }
}
